"""Set prompt cache marks (`cache_control`) for Claude models, at any provider that serves them.

Claude caches a request only up to a mark, with at most four marks; other providers cache prefixes automatically. The
marks are set where the content before them stays the same from request to request:

1. the end of the system prompt (tools come before it), or the last tool if there is none
2. the first message of the conversation: the summary, once there is one
3. the last message of the previous request, so that its cached end is found however much a step has added
4. the last message

The third and fourth mark move with every request. The cache still matches, because it compares content without marks.
Source: Anthropic's prompt caching guide (four marks; none on empty text or thinking; each looks back twenty blocks).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nca.messages import Usage

MARK: Mapping[str, str] = {"type": "ephemeral"}
"""Cached for five minutes after each use, which suits a chat; writing costs 1.25 times the input price."""
LIFE_SECONDS = 300.0
_SELLERS = frozenset({"anthropic", "bedrock", "vertex_ai", "azure_ai", "openrouter", "litellm_proxy"})
"""Providers that accept marks for Claude models, directly or through litellm."""
_IN_PARTS = frozenset({"openrouter", "litellm_proxy"})
"""Those that speak OpenAI's protocol: the mark goes on a content part."""
_KEY = "cache_control"


def wants_marks(provider: str, model: str) -> bool:
    """Whether to set marks in requests to this model."""
    return provider in _SELLERS and "claude" in model.lower()


def cache_seconds(provider: str, model: str, usage: Usage, age_seconds: float) -> float:
    """How long the provider still keeps what it cached for a request of this age; 0 where that is over or not known."""
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
