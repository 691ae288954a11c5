"""Read and write OpenAI's chat messages: a list of them, or an object with `messages`.

`as_chat_message` makes one of a message that was read from another shape.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from nca.context.request import repair
from nca.messages import MediaPart, Message, Part, TextPart
from nca.shapes.shaped import Rows, Written
from nca.wire import content_text, message_to_dict, messages_from_list, part_text


class OpenAIMessages:
    """Chat messages. They are written anew, because the rows follow from the messages alone."""

    shape = "openai"
    provider = ""

    def __init__(self, given: Any, *, may_be_empty: bool = False) -> None:
        self._given = given if isinstance(given, Mapping) else None
        rows = given["messages"] if self._given else given
        self.messages: list[Message] = [] if may_be_empty and not rows else messages_from_list(rows)
        tools = self._given.get("tools") if self._given else None
        self.tools: list[Any] = tools if isinstance(tools, list) else []

    def repair(self, messages: Sequence[Message], provider: str) -> list[Message]:
        return repair(messages, provider)

    def write(self, messages: Sequence[Message], known: Sequence[Message]) -> Written:
        return Written([message_to_dict(message) for message in messages], list(range(len(messages))))

    def request(self, rows: Rows) -> dict[str, Any] | None:
        return None if self._given is None else {**self._given, "messages": rows}


def as_chat_message(message: Message) -> Message:
    """A message of another shape with its pictures and files as chat messages have them, and no keys of that shape."""
    if not isinstance(message.content, tuple):
        return message
    texts = [part.text for part in message.content if isinstance(part, TextPart) and not part.source]
    if len(texts) == len(message.content):  # nearly all messages: nothing else is asked of them
        return msgspec.structs.replace(message, content="\n\n".join(texts))
    parts = tuple(_chat_part(part) for part in message.content)
    has_more = any(not isinstance(part, TextPart) or part.source for part in parts)
    return msgspec.structs.replace(message, content=parts if has_more else content_text(parts))


def _chat_part(part: Part) -> Part:
    if isinstance(part, TextPart):
        return TextPart(part.text, source=part.source)
    if not isinstance(part, MediaPart) or part.kind == "audio":
        return part
    where = _address(part.payload)
    if part.kind == "image" and where:
        return MediaPart("image", {"type": "image_url", "image_url": {"url": where}})
    if where.startswith("data:"):
        named = part.payload.get("file") or part.payload
        name = str(named.get("filename") or named.get("title") or "document.pdf")
        return MediaPart("document", {"type": "file", "file": {"filename": name, "file_data": where}})
    # Its provider holds it under a number, or chat messages have no such file: it is named, as where none can be shown.
    return TextPart(part_text(part))


def _address(payload: Mapping[str, Any]) -> str:
    """Where a picture or a file is, as a URL that may hold it; empty where only its provider knows."""
    source = payload.get("source")
    if isinstance(source, Mapping):
        is_held = source.get("type") == "base64"
        return f"data:{source.get('media_type')};base64,{source.get('data')}" if is_held else str(source.get("url", ""))
    shown, file = payload.get("image_url"), payload.get("file", payload)
    if isinstance(shown, Mapping):
        return str(shown.get("url") or "")
    return str(shown or (file.get("file_data") if isinstance(file, Mapping) else "") or "")
