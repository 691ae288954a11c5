"""Claude's own features: cache marks and compaction in requests; signed thinking, compaction and samplings in answers.

**Cache marks** (`cache_control`), at any provider that serves Claude. Claude caches a request only up to a mark, with
at most four marks; other providers cache prefixes automatically. The marks are set where the content before them stays
the same from request to request:

1. the end of the system prompt (tools come before it), or the last tool if there is none
2. the first message of the conversation: the summary, once there is one
3. the last message of the previous request, so that its cached end is found however much a step has added
4. the last message

The third and fourth mark move with every request. The cache still matches, because it compares content without marks.
Source: Anthropic's prompt caching guide (four marks; none on empty text or thinking; each looks back twenty blocks).

**Compaction** (`context.provider_side`). Anthropic compacts a conversation when its input reaches a number of tokens
(`compact_20260112`, beta). nca asks it to pause then: the answer is only a block with the summary, nca records which
messages it replaces, and the turn continues with the block and the other messages. litellm 1.105 supports this in its
chat call. OpenAI offers compaction only in its Responses API (`context_management` with `compact_threshold`). litellm's
chat call drops the request for it and the encrypted items in the answer, so the setting is refused for OpenAI.

**Answers.** litellm passes the blocks on in its own keys: `thinking_blocks`, `provider_specific_fields`, and
`iterations` in the usage.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nca.messages import Usage
from nca.models.catalog import ModelFacts

MARK: Mapping[str, str] = {"type": "ephemeral"}
"""Cached for five minutes after each use, which suits a chat; writing costs 1.25 times the input price."""
LIFE_SECONDS = 300.0
_SELLERS = frozenset({"anthropic", "bedrock", "vertex_ai", "azure_ai", "openrouter", "litellm_proxy"})
"""Providers that accept marks for Claude models, directly or through litellm."""
_IN_PARTS = frozenset({"openrouter", "litellm_proxy"})
"""Those that speak OpenAI's protocol: the mark goes on a content part."""
_KEY = "cache_control"

LEAST_TRIGGER_TOKENS = 50_000
"""Anthropic refuses a lower trigger."""
_EDIT = "compact_20260112"

_MOST_TOKENS = 100_000_000
"""A larger token count is not believed."""


class ClaudeBlocks:
    """Collects the special blocks of one answer from its deltas.

    thinking     complete signed blocks in order; they must be sent back with the tool calls that follow
    compaction   the provider's summary of the conversation so far, if it made one
    """

    def __init__(self) -> None:
        self.thinking: list[dict[str, Any]] = []
        self.compaction: dict[str, Any] | None = None

    def add(self, delta: Mapping[str, Any]) -> None:
        """Add the blocks of a delta."""
        blocks = delta.get("thinking_blocks")
        for block in blocks if isinstance(blocks, list | tuple) else ():
            # The pieces of a thinking block come unsigned; then the whole block is repeated with its signature.
            if isinstance(block, Mapping) and (block.get("signature") or block.get("type") == "redacted_thinking"):
                self.thinking.append({key: value for key, value in block.items() if value is not None})
        fields = delta.get("provider_specific_fields")
        if isinstance(fields, Mapping):
            self._add_compaction(fields)

    def _add_compaction(self, fields: Mapping[str, Any]) -> None:
        """A block starts empty and its content follows in one piece; a later block replaces an earlier one."""
        begun = fields.get("compaction_blocks")
        if isinstance(begun, list | tuple) and begun and isinstance(begun[-1], Mapping):
            self.compaction = {key: value for key, value in begun[-1].items() if value is not None}
        piece = fields.get("compaction_delta")
        if isinstance(piece, Mapping) and isinstance(piece.get("content"), str) and self.compaction is not None:
            self.compaction["content"] = self.compaction.get("content", "") + piece["content"]

    @property
    def summary(self) -> dict[str, Any] | None:
        """The compaction block, unless it is empty."""
        block = self.compaction
        return block if block and isinstance(block.get("content"), str) and block["content"].strip() else None


def samplings(usage: object) -> tuple[Usage, ...]:
    """The usage of each sampling of one answer; empty if the provider reports only the total.

    Anthropic counts a compaction as a separate sampling. litellm's usage is the total, which is charged; only
    the last sampling read the conversation as the next request will contain it.
    """
    rows = usage.get("iterations") if isinstance(usage, Mapping) else None
    found = [_usage(row) for row in rows if isinstance(row, Mapping)] if isinstance(rows, list | tuple) else []
    return tuple(found)


def _usage(row: Mapping[str, Any]) -> Usage:
    names = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    fresh, answer, read, written = (as_count(row.get(name)) or 0 for name in names)
    return Usage(fresh + read + written, answer, read, written)


def as_count(value: object) -> int | None:
    """A plausible token count: a whole number, not negative, not absurdly large; None for anything else."""
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if 0 <= value < _MOST_TOKENS else None


def wants_marks(provider: str, model: str) -> bool:
    """Whether to set marks in requests to this model."""
    return provider in _SELLERS and "claude" in model.lower()


def cache_seconds(provider: str, model: str, usage: Usage, age_seconds: float) -> float:
    """How long the provider still keeps what it cached for a request of this age; 0 if that is over or not known."""
    is_cached = bool(usage.cache_read_tokens or usage.cache_write_tokens)
    return max(0.0, LIFE_SECONDS - age_seconds) if is_cached and wants_marks(provider, model) else 0.0


def mark(messages: list[dict[str, Any]], tools: list[dict[str, Any]], provider: str) -> None:
    """Set the marks, in place, just before sending. Marks of imported messages are removed."""
    for row in (*messages, *tools):
        _clear(row)
    in_parts = provider in _IN_PARTS
    system = [row for row in messages if row.get("role") in ("system", "developer")]
    places = [*system[-1:], *_in_conversation(messages[len(system) :])]
    for row in places:
        _set(row, in_parts=in_parts)
    if tools and not system:
        tools[-1][_KEY] = dict(MARK)


def _in_conversation(talk: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The first message, the last one of the previous request, and the last one; without duplicates."""
    answers = [index for index, row in enumerate(talk) if row.get("role") == "assistant"]
    before = answers[-1] - 1 if answers else -1
    indexes = dict.fromkeys(index for index in (0, before, len(talk) - 1) if 0 <= index < len(talk))
    return [talk[index] for index in indexes if talk[index].get("role") != "assistant"]


def _set(row: dict[str, Any], *, in_parts: bool) -> None:
    """Mark the end of a message, unless it has nothing that may carry a mark."""
    content = row.get("content")
    if isinstance(content, str) and in_parts and content.strip():
        row["content"] = [{"type": "text", "text": content, _KEY: dict(MARK)}]
    elif isinstance(content, str):
        if content.strip():
            row[_KEY] = dict(MARK)
    elif row.get("role") == "tool" and not in_parts:
        row[_KEY] = dict(MARK)
    else:
        for part in reversed(content if isinstance(content, list) else []):
            if isinstance(part, dict) and (part.get("type") != "text" or str(part.get("text", "")).strip()):
                part[_KEY] = dict(MARK)
                return


def _clear(row: dict[str, Any]) -> None:
    row.pop(_KEY, None)
    content = row.get("content")
    for part in content if isinstance(content, list) else ():
        if isinstance(part, dict):
            part.pop(_KEY, None)


def context_management(trigger_tokens: int) -> dict[str, Any]:
    """The request's parameter to compact from this many input tokens on, and to pause after the summary."""
    trigger = {"type": "input_tokens", "value": max(LEAST_TRIGGER_TOKENS, trigger_tokens)}
    return {"edits": [{"type": _EDIT, "trigger": trigger, "pause_after_compaction": True}]}


def compaction_refusal(facts: ModelFacts, trigger_tokens: int) -> str:
    """Why this model's provider cannot compact at this number of tokens; "" if it can."""
    if not facts.can_compact:
        return f"the provider of {facts.name} cannot compact; through litellm only Claude at Anthropic can"
    if trigger_tokens < LEAST_TRIGGER_TOKENS:
        least = f"{LEAST_TRIGGER_TOKENS:,}"
        return f"{facts.name} compacts from {least} tokens on, but compaction is due at {trigger_tokens:,}"
    return ""
