"""The interface of every shape of a conversation, and the way from a message to its source; OpenAI's chat messages.

A list of chat messages, or an object with `messages`. `as_chat_message` makes one of a message that was read from
another shape.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from nca.context.request import of_a_program, repair
from nca.context.rules.messages import NO_OUTPUT
from nca.errors import InvalidMessages
from nca.humanize import kind_name, shown_value
from nca.messages import AttachmentPart, MediaPart, Message, Part, TextPart, ToolCall
from nca.wire import content_text, is_note, message_to_dict, messages_from_list, part_text, part_to_wire, plain_json

Rows = list[dict[str, Any]]
_ANSWER_KEYS = ("max_tokens", "max_completion_tokens", "max_output_tokens")


class Written(NamedTuple):
    """Messages in a shape. `places` has the row of each message, from 0; -1 for a system prompt."""

    rows: Rows
    places: list[int]


class ShapedMessages(ABC):
    """A conversation that was read from one shape and can be written back in it: a list, or an object that holds one.

    shape      openai, anthropic or responses
    key        where an object holds the list
    rules      the rules that a request of this shape follows; "" if several providers take it: theirs
    messages   what was read; `known` below are the same messages, in the same order
    tools      the tool definitions that came along
    model, answer_tokens   which model the object names and how long its answer may be; "" and 0 where it says nothing
    """

    shape: str
    rules = ""
    key = "messages"
    messages: list[Message]

    def __init__(self, given: Any, *, may_be_empty: bool = False) -> None:
        """Raises InvalidMessages for what is not understood, and for an empty list unless it may be empty."""
        self._given: Mapping[str, Any] = given if isinstance(given, Mapping) else {}
        # The rows tell the shape, and items may be under `messages` too.
        self.key = self.key if self.key in self._given else "messages"
        self._list: Any = given[self.key] if self._given else given
        tools = self._given.get("tools")
        self.tools: list[Any] = tools if isinstance(tools, list) else []
        model = self._given.get("model")
        self.model = model if isinstance(model, str) else ""
        # What is no number above 0 says nothing: to some servers, -1 is an answer of any length.
        limits = [limit for key in _ANSWER_KEYS if type(limit := self._given.get(key)) is int and limit > 0]
        self.answer_tokens = min(limits, default=0)

    def repair(self, messages: Sequence[Message], provider: str) -> list[Message]:
        """The messages so that the shape's provider takes them; if it has none, the one of this name."""
        return repair(messages, of_a_program(self.rules or provider))

    @abstractmethod
    def write(self, messages: Sequence[Message], known: Sequence[Message]) -> Written:
        """The rows of these messages. One of `known` (the same object) comes back as it was handed in."""

    def in_rows(self, texts: Mapping[int, str], rest: str) -> Rows:
        """The rows that were handed in, each in its place, with other texts in these messages, by place from 0.

        Calls stay. Where a message has several rows of text, the first has its text and the others have `rest`.
        """
        rows, places = [dict(row) for row in self._list], self._places()
        for number, row in self._changed_rows(texts, rest):
            rows[places[number] - 1] = row
        return rows

    @abstractmethod
    def _changed_rows(self, texts: Mapping[int, str], rest: str) -> Iterator[tuple[int, dict[str, Any]]]:
        """The rows of `in_rows` that become others, each with its number."""

    def takes_text(self, number: int) -> bool:
        """Whether a message, from 0, has a row that its text can stand in."""
        return True

    @property
    def positions(self) -> list[int]:
        """By message: the place of its first row in the list that was handed in, from 1; 0 for a prompt beside it."""
        places = self._places()
        return [places[number] for number in self._row_numbers()]

    def _places(self) -> list[int]:
        """By number of a row: its place in the list that was handed in, which may hold notes too."""
        return [0, *(place for place, row in enumerate(self._list, 1) if not is_note(row))]

    def _row_numbers(self) -> list[int]:
        """By message: the number of its first row, from 1, without notes."""
        return list(range(1, len(self.messages) + 1))

    def request(self, rows: Rows) -> dict[str, Any] | None:
        """The object that was handed in with these rows instead of its own; None if a list was handed in."""
        return {**self._given, self.key: rows} if self._given else None


class Origins:
    """Finds a message among those that were read: by identity, or by its tool call where its content was changed."""

    def __init__(self, known: Sequence[Message]) -> None:
        self._places = {id(message): place for place, message in enumerate(known)}
        self._calls: dict[tuple[str, str], int] = {}
        self._repeated: set[tuple[str, str]] = set()
        for place, message in enumerate(known):
            if key := _call_of(message):
                self._repeated.update({key} & self._calls.keys())
                self._calls[key] = place

    def find(self, message: Message) -> int | None:
        """The place of a message among the known ones. An id shared by several calls finds nothing."""
        place = self._places.get(id(message))
        key = _call_of(message)
        if place is None and key and key not in self._repeated:
            place = self._calls.get(key)
        return place


def _call_of(message: Message) -> tuple[str, str] | None:
    if message.role == "tool":
        return "tool", message.tool_call_id
    return ("assistant", message.tool_calls[0].id) if message.tool_calls else None


def changed_calls(before: Message, after: Message) -> dict[str, ToolCall]:
    """The calls of a message that compaction changed, by their ids."""
    was = {call.id: call for call in before.tool_calls}
    return {call.id: call for call in after.tool_calls if call != was[call.id]}


def objects(rows: Any, place: str) -> Rows:
    """Rows that are a list of objects. Raises InvalidMessages naming the entry that is none."""
    if isinstance(rows, str | bytes | Mapping) or not isinstance(rows, Sequence):
        raise InvalidMessages(f"{place}: expected a list, found {kind_name(rows)}.")
    for index, row in enumerate(rows, 1):
        if not isinstance(row, Mapping):
            raise InvalidMessages(f"{place} {index}: expected an object, found {kind_name(row)}.")
    return list(rows)


def copies(rows: Any, place: str) -> Rows:
    """Copies of rows, without notes and with lone surrogates replaced: the caller's own are never handed out."""
    checked = enumerate(objects(rows, place), 1)
    return [plain_json(without_notes(row), f"{place} {index}") for index, row in checked]


def without_notes(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row without the keys that annotate a transcript."""
    return {key: value for key, value in row.items() if not str(key).startswith("_")}


def with_text(row: Mapping[str, Any], text: str, part: Mapping[str, Any]) -> dict[str, Any]:
    """A row with another text. A list of parts stays one, of a `part` with the text, as whoever sent it expects."""
    return {**row, "content": [{**part, "text": text}] if isinstance(row.get("content"), list) else text}


def as_file(name: str, value: Any, place: str) -> AttachmentPart:
    """Something that belongs to a message and is neither its text nor a picture; counted by its text."""
    text = value if isinstance(value, str) else json_text(plain_json(value, place))
    return AttachmentPart(name, text, len(text.encode()))


def result_content(parts: Sequence[Part]) -> str | tuple[Part, ...]:
    """The content of a tool result. An empty one is valid in these shapes, and reads as what says that it is empty."""
    if not any(not isinstance(part, TextPart) or part.text.strip() for part in parts):
        return NO_OUTPUT
    if len(parts) == 1 and isinstance(parts[0], TextPart) and not parts[0].extra:
        return parts[0].text
    return tuple(parts)


def content_rows(content: str | tuple[Part, ...] | None, text_type: str) -> Any:
    """A text where it is text alone, else a row for each part; `text_type` is the type of the rows of text."""
    if content is None or isinstance(content, str):
        return content or ""
    has_more = any(not isinstance(part, TextPart | AttachmentPart) or getattr(part, "extra", None) for part in content)
    return [part_to_wire(part, text_type) for part in content] if has_more else content_text(content)


def arguments_of(call: ToolCall) -> Any:
    """A call's arguments as JSON; an empty object where they are none."""
    try:
        return msgspec.json.decode(call.arguments)
    except (msgspec.DecodeError, RecursionError):
        return {}


def json_text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def named(value: Any, key: str, place: str) -> str:
    """A text that must be there, such as a call's id. Raises InvalidMessages."""
    if not isinstance(value, str) or not value:
        raise InvalidMessages(f"{place}: {key} is {kind_name(value) if value != '' else 'empty'}; valid: text.")
    return value


def refused_type(place: str, found: Any, valid: Sequence[str]) -> InvalidMessages:
    """The error for a block or an item of a type that cannot be read."""
    return InvalidMessages(f"{place}: type {shown_value(found)} is not known here; valid: {', '.join(valid)}.")


class OpenAIMessages(ShapedMessages):
    """Chat messages. They are written again, because the rows follow from the messages alone."""

    shape = "openai"

    def __init__(self, given: Any, *, may_be_empty: bool = False) -> None:
        super().__init__(given, may_be_empty=may_be_empty)
        self.messages = [] if may_be_empty and not self._list else messages_from_list(self._list)

    def write(self, messages: Sequence[Message], known: Sequence[Message]) -> Written:
        return Written([message_to_dict(message) for message in messages], list(range(len(messages))))

    def _changed_rows(self, texts: Mapping[int, str], rest: str) -> Iterator[tuple[int, dict[str, Any]]]:
        rows = [row for row in self._list if not is_note(row)]
        for number, text in texts.items():
            yield number + 1, with_text(rows[number], text, {"type": "text"})


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
    # Its provider holds it under a number, or chat messages have no such file: it is named, as if none can be shown.
    return TextPart(part_text(part))


def _address(payload: Mapping[str, Any]) -> str:
    """The URL of a picture or file, which may hold it; empty if only its provider knows."""
    source = payload.get("source")
    if isinstance(source, Mapping):
        is_held = source.get("type") == "base64"
        return f"data:{source.get('media_type')};base64,{source.get('data')}" if is_held else str(source.get("url", ""))
    shown, file = payload.get("image_url"), payload.get("file", payload)
    if isinstance(shown, Mapping):
        return str(shown.get("url") or "")
    return str(shown or (file.get("file_data") if isinstance(file, Mapping) else "") or "")
