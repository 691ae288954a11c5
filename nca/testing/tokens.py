"""A simple tokenizer for the test doubles, close to real ones.

A token is a run of up to six letters, up to three digits, or one other character; a single space before it is included.
English prose has about 4.3 characters per token, code about 3.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

MESSAGE_TOKENS = 4
"""Overhead of a message in common chat templates."""
REQUEST_TOKENS = 3

_TOKEN = re.compile(r" ?(?:[^\W\d_]{1,6}|\d{1,3}|[^\s])|\s")


def split_tokens(text: str) -> list[str]:
    """Split the text into tokens; joined, they are the text."""
    return _TOKEN.findall(text)


def count_tokens(text: str) -> int:
    return sum(1 for _ in _TOKEN.finditer(text))


def count_request_tokens(messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] = ()) -> int:
    """Tokens of an OpenAI-shaped request: texts, tool calls and tool definitions. Media are not counted."""
    total = REQUEST_TOKENS + sum(count_tokens(json.dumps(tool, ensure_ascii=False)) for tool in tools)
    for message in messages:
        total += MESSAGE_TOKENS + count_tokens(_text(message.get("content")))
        for call in message.get("tool_calls") or ():
            function = call.get("function") or {}
            total += count_tokens(f"{function.get('name')} {function.get('arguments')}")
    return total


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list | tuple) else ()
    return "\n".join(str(part.get("text", "")) for part in parts if isinstance(part, Mapping))
