"""Read and write Anthropic's messages: `system` beside `messages`, and blocks such as tool_use and tool_result.

One row of Anthropic's is several messages of nca where it holds tool results: each result is a message, and what the
person says beside them is one more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec

from nca.errors import InvalidMessages
from nca.humanize import kind_name, shown_value
from nca.messages import SIGNED_THOUGHTS, MediaPart, Message, Part, TextPart, ToolCall, clean_text, with_tool_names
from nca.shapes import shaped
from nca.wire import is_note, plain_json, text_part

THOUGHTS = ("thinking", "redacted_thinking")
SHOWN = ("image", "document", "search_result")
USER_TYPES = ("text", *SHOWN, "container_upload", "tool_result")
RESULT_TYPES = ("text", *SHOWN, "tool_reference")
ON_THE_SERVER = (
    "server_tool_use",
    "web_search_tool_result",
    "web_fetch_tool_result",
    "code_execution_tool_result",
    "bash_code_execution_tool_result",
    "text_editor_code_execution_tool_result",
    "tool_search_tool_result",
    "mcp_tool_use",
    "mcp_tool_result",
    "compaction",
)
"""Blocks of an answer that the provider made and answered by itself: they stay with their message."""
ASSISTANT_TYPES = ("text", *THOUGHTS, "tool_use", *ON_THE_SERVER)
OWN_TYPES = (*THOUGHTS, "tool_use", "tool_result", *ON_THE_SERVER, "document", "search_result", "container_upload")
"""Types that tell Anthropic's messages from OpenAI's."""


def system_content(system: Any) -> str | tuple[Part, ...]:
    """The system prompt: text, or blocks of text."""
    if isinstance(system, str):
        return clean_text(system)
    blocks = shaped.objects(system, "system, block")
    parts: list[Part] = []
    for index, block in enumerate(blocks, 1):
        if block.get("type") != "text":
            raise shaped.refused_type(f"system, block {index}", block.get("type"), ("text",))
        parts.append(text_part(block, f"system, block {index}"))
    return tuple(parts)


def user_messages(blocks: list[dict[str, Any]], place: str) -> Iterator[tuple[Message, list[dict[str, Any]]]]:
    """The messages of a user row: each result, and what is said before, between and after the results."""
    parts: list[Part] = []
    said: list[dict[str, Any]] = []
    for number, block in enumerate(blocks, 1):
        where = f"{place}, block {number}"
        if block.get("type") != "tool_result":
            parts.append(_part(block, where, USER_TYPES, is_result=False))
            said.append(block)
            continue
        if said:
            yield Message("user", tuple(parts)), said
            parts, said = [], []
        answered = clean_text(shaped.named(block.get("tool_use_id"), "tool_use_id", where))
        result = Message(
            "tool",
            _result(block.get("content"), where),
            tool_call_id=answered,
            is_error=bool(block.get("is_error")),
        )
        yield result, [block]
    if said or not blocks:
        yield Message("user", tuple(parts)), said


def answer(blocks: list[dict[str, Any]], place: str) -> Message:
    parts: list[Part] = []
    calls: list[ToolCall] = []
    thoughts: list[dict[str, Any]] = []
    for number, block in enumerate(blocks, 1):
        where, kind = f"{place}, block {number}", block.get("type")
        if kind == "text":
            parts.append(text_part(block, where))
        elif kind == "tool_use":
            calls.append(_call(block, where))
        elif kind in THOUGHTS:
            thoughts.append(plain_json(block, where))
        elif kind in ON_THE_SERVER:
            parts.append(shaped.as_file(str(kind), block, where))
        else:
            raise shaped.refused_type(where, kind, ASSISTANT_TYPES)
    if thoughts and not parts and not calls:
        # Thoughts alone are not an empty message.
        parts = [shaped.as_file(thought["type"], thought, place) for thought in thoughts]
    extra = {SIGNED_THOUGHTS: thoughts} if thoughts else {}
    return Message("assistant", tuple(parts) or None, tuple(calls), extra=extra)


def _call(block: Mapping[str, Any], place: str) -> ToolCall:
    call_id, name = shaped.named(block.get("id"), "id", place), shaped.named(block.get("name"), "name", place)
    given = block.get("input", {})
    if not isinstance(given, Mapping):
        raise InvalidMessages(f"{place}: input is {kind_name(given)}; valid: an object.")
    return ToolCall(clean_text(call_id), clean_text(name), shaped.json_text(plain_json(given, f"{place}: input")))


def _result(content: Any, place: str) -> str | tuple[Part, ...]:
    if content is None:
        return shaped.result_content([])
    if isinstance(content, str):
        return shaped.result_content([TextPart(clean_text(content))])
    return shaped.result_content(
        [
            _part(block, f"{place}, result block {number}", RESULT_TYPES, is_result=True)
            for number, block in enumerate(shaped.objects(content, f"{place}, result block"), 1)
        ]
    )


def _part(block: Mapping[str, Any], place: str, valid: Sequence[str], *, is_result: bool) -> Part:
    """Text, a picture, or a document. A document that came as text is counted and searched as text."""
    kind = block.get("type")
    if kind not in valid:
        raise shaped.refused_type(place, kind, valid)
    if kind == "text":
        return text_part(block, place)
    if (text := _document_text(block)) is not None:
        title = str(block.get("title") or kind)
        return TextPart(clean_text(text)) if is_result else shaped.as_file(title, clean_text(text), place)
    payload = plain_json(dict(block), place)
    return MediaPart("image" if kind == "image" else "document", payload)


def _document_text(block: Mapping[str, Any]) -> str | None:
    """The text of a document or of a search result; None for one that is not text, such as a PDF."""
    source = block.get("source")
    if block.get("type") == "search_result":
        inside = block.get("content")
    elif isinstance(source, Mapping) and source.get("type") == "text":
        inside = source.get("data")
    elif isinstance(source, Mapping) and source.get("type") == "content":
        inside = source.get("content")
    else:
        return None
    if isinstance(inside, list) and all(isinstance(one, Mapping) and one.get("type") == "text" for one in inside):
        return "\n".join(str(one.get("text", "")) for one in inside)
    return inside if isinstance(inside, str) else None


def new_blocks(message: Message) -> list[dict[str, Any]]:
    """The blocks of a message that replaces others, or that was changed beyond recognition."""
    content = shaped.content_rows(message.content, "text")
    if message.role == "tool":
        block = {"type": "tool_result", "tool_use_id": message.tool_call_id, "content": content}
        return [block | ({"is_error": True} if message.is_error else {})]
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    blocks = [block for block in blocks if block.get("type") != "text" or block["text"].strip()]
    calls = [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": shaped.arguments_of(call)}
        for call in message.tool_calls
    ]
    return [*message.extra.get(SIGNED_THOUGHTS, ()), *blocks, *calls]


def changed_blocks(blocks: list[dict[str, Any]], before: Message, after: Message) -> list[dict[str, Any]]:
    """The blocks of a message with what compaction changed in it: a result's content, a call's input, a text."""
    if after.role == "tool":
        if after.content == before.content:
            return blocks
        return [{**blocks[0], "content": shaped.content_rows(after.content, "text")}]
    if [call.id for call in before.tool_calls] != [call.id for call in after.tool_calls]:
        return new_blocks(after)
    changed = shaped.changed_calls(before, after)
    blocks = [_changed_call(block, changed) if block["type"] == "tool_use" else block for block in blocks]
    if after.content == before.content:
        return blocks
    thoughts = [block for block in blocks if block["type"] in THOUGHTS]
    text = new_blocks(msgspec.structs.replace(after, tool_calls=(), extra={}))
    return thoughts + text + [block for block in blocks if block["type"] == "tool_use"]


def _changed_call(block: dict[str, Any], changed: Mapping[str, ToolCall]) -> dict[str, Any]:
    call = changed.get(block["id"])
    return block if call is None else {**block, "name": call.name, "input": shaped.arguments_of(call)}


ROLES = ("user", "assistant")


class _Origin(NamedTuple):
    """The source of a message: its row, from 0, and its blocks there. Row -1 is the system prompt."""

    row: int
    blocks: list[dict[str, Any]]


@dataclass(slots=True)
class _Row:
    """A row that is being written. `origin` is the row that its blocks were read from; None for a new one."""

    role: str
    origin: int | None
    blocks: list[dict[str, Any]] = field(default_factory=list)


class AnthropicMessages(shaped.ShapedMessages):
    """A list of Anthropic's messages, or an object with `messages` and where there is one `system`."""

    shape = "anthropic"
    rules = "anthropic's blocks"

    def __init__(self, given: Any, *, may_be_empty: bool = False) -> None:
        super().__init__(given, may_be_empty=may_be_empty)
        self._rows = shaped.copies([row for row in self._list if not is_note(row)], "message")
        self.messages = []
        self._origins: list[_Origin] = []
        self._blocks: list[list[dict[str, Any]]] = []
        if self._given.get("system"):
            content = system_content(self._given["system"])
            self._take(Message("system", content), _Origin(-1, []))
        for index, row in enumerate(self._rows):
            self._read_row(index, row)
        self.messages = list(with_tool_names(self.messages))
        if not self._rows and not may_be_empty:
            raise InvalidMessages("messages: the list is empty; expected at least one message.")

    def write(self, messages: Sequence[Message], known: Sequence[Message]) -> shaped.Written:
        origins, rows, places = shaped.Origins(known), list[_Row](), list[int]()
        previous = ""
        for message in messages:
            place = origins.find(message)
            origin = None if place is None else self._origins[place]
            if origin is not None and origin.row < 0:
                places.append(-1)
                continue
            role = "assistant" if message.role == "assistant" else "user"
            row = origin.row if origin else None
            is_same_row = bool(rows) and rows[-1].role == role and row is not None and rows[-1].origin == row
            is_more_results = message.role == previous == "tool" and (row is None or rows[-1].origin is None)
            if not (is_same_row or is_more_results):
                rows.append(_Row(role, row))
            if origin is None or place is None:
                rows[-1].blocks += new_blocks(message)
            elif message is known[place]:
                rows[-1].blocks += origin.blocks
            else:
                rows[-1].blocks += changed_blocks(origin.blocks, known[place], message)
            previous = message.role
            places.append(len(rows) - 1)
        return shaped.Written([self._written(row) for row in rows], places)

    def _changed_rows(self, texts: Mapping[int, str], rest: str) -> Iterator[tuple[int, dict[str, Any]]]:
        contents: dict[int, list[dict[str, Any]]] = {self._origins[number].row: [] for number in texts}
        for number, (message, (row, blocks)) in enumerate(zip(self.messages, self._origins, strict=True)):
            if row in contents:
                changed = msgspec.structs.replace(message, content=texts.get(number, message.content))
                contents[row] += changed_blocks(blocks, message, changed)
        for row, blocks in contents.items():
            is_text = isinstance(self._rows[row]["content"], str)
            yield row + 1, {**self._rows[row], "content": blocks[0]["text"] if is_text else blocks}

    def request(self, rows: shaped.Rows) -> dict[str, Any] | None:
        return shaped.without_notes(super().request(rows) or {}) or None

    def _row_numbers(self) -> list[int]:
        return [origin.row + 1 for origin in self._origins]

    def _written(self, row: _Row) -> dict[str, Any]:
        if row.origin is None:
            alone = row.blocks[0] if len(row.blocks) == 1 else {}
            is_text = alone.keys() == {"type", "text"}
            return {"role": row.role, "content": alone["text"] if is_text else row.blocks}
        given, blocks = self._rows[row.origin], self._blocks[row.origin]
        if len(blocks) == len(row.blocks) and all(one is two for one, two in zip(blocks, row.blocks, strict=True)):
            return given
        return {**given, "content": row.blocks}

    def _take(self, message: Message, origin: _Origin) -> None:
        self.messages.append(message)
        self._origins.append(origin)

    def _read_row(self, index: int, row: Mapping[str, Any]) -> None:
        place, role = f"message {index + 1}", row.get("role")
        if role not in ROLES:
            raise InvalidMessages(
                f"{place}: role {shown_value(role)} is not valid among Anthropic's messages; valid: {', '.join(ROLES)}"
                " (the system prompt is the field system, beside the messages)."
            )
        for key in ("tool_calls", "tool_call_id", "function_call"):
            if row.get(key):
                raise InvalidMessages(
                    f"{place}: {key} is OpenAI's; valid: Anthropic's blocks tool_use and tool_result."
                )
        content = row.get("content")
        if isinstance(content, str):
            block = {"type": "text", "text": content}
            self._blocks.append([block])
            self._take(Message(role, clean_text(content)), _Origin(index, [block]))
            return
        if not isinstance(content, list):
            raise InvalidMessages(f"{place}: content is {kind_name(content)}; valid: text or a list of blocks.")
        blocks = shaped.objects(content, f"{place}, block")
        self._blocks.append(blocks)
        if role == "assistant":
            self._take(answer(blocks, place), _Origin(index, blocks))
            return
        for message, its_blocks in user_messages(blocks, place):
            self._take(message, _Origin(index, its_blocks))
