"""Where a provider may keep what it has read of a request: cache marks for Claude, wherever it is served.

Claude caches only up to a marked place, at most four of them in a request; other providers cache prefixes by
themselves. The marks stand where the bytes before them stay the same from request to request:

1. the end of the system prompt (the tools stand before it), or the last tool where there is none
2. the conversation's first message: the summary, once there is one
3. the last message of the request before, so that however much a step has added, the cached end of it is found
4. the last message

The third and fourth move on with every request. That does not break the rule that between two compactions each
request is a prefix of the next: a provider matches on content, and a mark is none. Source: Anthropic's prompt
caching guide (four marks; empty text and thoughts cannot bear one; a look back of twenty blocks from each mark).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

MOST_MARKS = 4
MARK: Mapping[str, str] = {"type": "ephemeral"}
"""Kept for five minutes after each use: what a chat needs, and written at 1.25 times the price of input."""
_SELLERS = frozenset({"anthropic", "bedrock", "vertex_ai", "azure_ai", "openrouter", "litellm_proxy"})
"""Providers that take marks for the Claude models they serve, by their own wire or through litellm's translation."""
_IN_PARTS = frozenset({"openrouter", "litellm_proxy"})
"""Those that speak OpenAI's protocol: there a mark stands on a part of the content."""
_KEY = "cache_control"


def wants_marks(provider: str, model: str) -> bool:
    """Whether a request to this model should bear marks; `model` as a person or litellm names it."""
    return provider in _SELLERS and "claude" in model.lower()


def mark(messages: list[dict[str, Any]], tools: list[dict[str, Any]], provider: str) -> None:
    """Set the marks, in place: last of all before sending. Marks that came with imported messages give way."""
    for row in (*messages, *tools):
        _clear(row)
    in_parts = provider in _IN_PARTS
    system = [row for row in messages if row.get("role") in ("system", "developer")]
    places = [*system[-1:], *_in_conversation(messages[len(system) :])]
    marked = sum(_set(row, in_parts=in_parts) for row in places[:MOST_MARKS])
    if tools and not system and marked < MOST_MARKS:
        tools[-1][_KEY] = dict(MARK)


def _in_conversation(talk: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The first message, the last one of the request before, and the last one; each once."""
    answers = [index for index, row in enumerate(talk) if row.get("role") == "assistant"]
    before = answers[-1] - 1 if answers else -1
    indexes = dict.fromkeys(index for index in (0, before, len(talk) - 1) if 0 <= index < len(talk))
    return [talk[index] for index in indexes if talk[index].get("role") != "assistant"]


def _set(row: dict[str, Any], *, in_parts: bool) -> bool:
    """Mark a message's end; False where it has nothing that can bear a mark."""
    content = row.get("content")
    if isinstance(content, str):
        if not content.strip():
            return False
        if in_parts:
            row["content"] = [{"type": "text", "text": content, _KEY: dict(MARK)}]
        else:
            row[_KEY] = dict(MARK)
        return True
    if row.get("role") == "tool" and not in_parts:
        row[_KEY] = dict(MARK)
        return True
    for part in reversed(content if isinstance(content, list) else []):
        if isinstance(part, dict) and (part.get("type") != "text" or str(part.get("text", "")).strip()):
            part[_KEY] = dict(MARK)
            return True
    return False


def _clear(row: dict[str, Any]) -> None:
    row.pop(_KEY, None)
    content = row.get("content")
    for part in content if isinstance(content, list) else ():
        if isinstance(part, dict):
            part.pop(_KEY, None)
