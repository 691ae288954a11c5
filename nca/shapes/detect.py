"""Tell by its content in which shape a conversation is, and read it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from nca.errors import InvalidMessages
from nca.humanize import kind_name
from nca.shapes import responses
from nca.shapes.anthropic import OWN_TYPES, AnthropicMessages
from nca.shapes.responses import ResponsesItems
from nca.shapes.shaped import OpenAIMessages, ShapedMessages
from nca.wire import OBJECT

_PARTS = (list, tuple)
_OWN_PARTS = ("input_text", "output_text", "input_image", "input_file")
"""Types of parts that only items of the Responses API have."""


def read_shape(given: Any, *, may_be_empty: bool = False) -> ShapedMessages:
    """Read a conversation: a list, or an object that holds one. Raises InvalidMessages for what is not understood.

    A generator is refused: reading it would use up what was handed in.
    """
    return _READERS[shape_of(given)](given, may_be_empty=may_be_empty)


def shape_of(given: Any) -> str:
    """openai, anthropic or responses. Raises InvalidMessages if there is no list of messages at all."""
    if isinstance(given, Mapping) and isinstance(given.get("input"), str | list | tuple):
        return "responses"
    rows = given.get("messages", given) if isinstance(given, Mapping) else given
    if isinstance(rows, Mapping | str | bytes | bytearray) or not isinstance(rows, Sequence):
        raise InvalidMessages(f"messages: expected a list of messages, found {kind_name(rows)}.")
    if isinstance(given, Mapping) and given.get("system"):
        return "anthropic"
    # Nearly all messages of a long conversation have no type and no parts: they may be of any shape.
    telling = [
        row
        for row in rows
        if isinstance(row, OBJECT) and ("role" not in row or "type" in row or isinstance(row.get("content"), _PARTS))
    ]
    if any(_is_item(row) for row in telling):
        return "responses"
    return "anthropic" if any(_is_anthropic(row) for row in telling) else "openai"


def _is_item(row: Mapping[str, Any]) -> bool:
    """Whether a row is an item of the Responses API: of one of its types, or a message with one of its parts."""
    kind = row.get("type")
    if "role" not in row:
        return isinstance(kind, str) and (kind in responses.ITEM_TYPES or kind.endswith(("_call", "_output")))
    return kind == "message" or any(part.get("type") in _OWN_PARTS for part in _parts(row))


def _is_anthropic(row: Mapping[str, Any]) -> bool:
    """Whether a row has a block that only Anthropic's messages have."""
    return any(
        part.get("type") in OWN_TYPES or (part.get("type") == "image" and "source" in part) for part in _parts(row)
    )


def _parts(row: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    content = row.get("content")
    if isinstance(content, _PARTS):
        yield from (part for part in content if isinstance(part, Mapping))


_READERS: Mapping[str, type[OpenAIMessages | AnthropicMessages | ResponsesItems]] = {
    "openai": OpenAIMessages,
    "anthropic": AnthropicMessages,
    "responses": ResponsesItems,
}
