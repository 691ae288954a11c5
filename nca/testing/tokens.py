"""What the test doubles count, as a provider with OpenAI's vocabulary does, and the pieces in which they stream."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from nca.vocabulary import count

MESSAGE_TOKENS = 4
"""Overhead of a message in common chat templates."""
REQUEST_TOKENS = 3

_PIECE = re.compile(r" ?(?:[^\W\d_]{1,6}|\d{1,3}|[^\s])|\s")


def split_text(text: str) -> list[str]:
    """Split the text into words, numbers and signs, as a stream brings them; joined, they are the text."""
    return _PIECE.findall(text)


def count_request_tokens(messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] = ()) -> int:
    """Tokens of an OpenAI-shaped request: texts, tool calls and tool definitions. Media are not counted."""
    total = REQUEST_TOKENS + sum(count(json.dumps(tool, ensure_ascii=False)) for tool in tools)
    for message in messages:
        total += MESSAGE_TOKENS + count(_text(message.get("content")))
        for call in message.get("tool_calls") or ():
            function = call.get("function") or {}
            total += count(f"{function.get('name')} {function.get('arguments')}")
    return total


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list | tuple) else ()
    return "\n".join(str(part.get("text", "")) for part in parts if isinstance(part, Mapping))
