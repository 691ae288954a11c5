"""Read and write Anthropic's messages: `system` beside `messages`, and blocks such as tool_use and tool_result.

One row of Anthropic's is several messages of nca where it holds tool results: each result is a message, and what the
person says beside them is one more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from nca.context.rules.media import with_media_beside_results
from nca.context.rules.turn_order import with_one_assistant
from nca.errors import InvalidMessages
from nca.messages import Message, clean_text
from nca.shapes.anthropic_blocks import answer, changed_blocks, new_blocks, system_content, user_messages
from nca.shapes.shaped import Origins, Rows, Written, copies, objects, repaired, without_notes
from nca.wire import is_note, kind_name, shown_value

ROLES = ("user", "assistant")


class _Origin(NamedTuple):
    """Where a message was read: its row, from 0, and its blocks there. Row -1 is the system prompt."""

    row: int
    blocks: list[dict[str, Any]]


@dataclass(slots=True)
class _Row:
    """A row that is being written. `origin` is the row that its blocks were read from; None for a new one."""

    role: str
    origin: int | None
    blocks: list[dict[str, Any]] = field(default_factory=list)


class AnthropicMessages:
    """A list of Anthropic's messages, or an object with `messages` and where there is one `system`."""

    shape = "anthropic"
    provider = "anthropic"

    def __init__(self, given: Any) -> None:
        self._given = given if isinstance(given, Mapping) else None
        rows = given["messages"] if self._given else given
        self._rows = copies([row for row in rows if not is_note(row)], "message")
        tools = self._given.get("tools") if self._given else None
        self.tools: list[Any] = tools if isinstance(tools, list) else []
        self.messages: list[Message] = []
        self._origins: list[_Origin] = []
        self._blocks: list[list[dict[str, Any]]] = []
        if self._given and self._given.get("system"):
            content = system_content(self._given["system"])
            self._take(Message("system", content), _Origin(-1, []))
        names: dict[str, str] = {}
        for index, row in enumerate(self._rows):
            self._read_row(index, row, names)
        if not self._rows:
            raise InvalidMessages("messages: the list is empty; expected at least one message.")

    def repair(self, messages: Sequence[Message], provider: str) -> list[Message]:
        # Anthropic takes images inside of results, and answers that follow one another.
        return repaired(messages, self.provider, without=(with_media_beside_results, with_one_assistant))

    def write(self, messages: Sequence[Message], known: Sequence[Message]) -> Written:
        origins, rows, places = Origins(known), list[_Row](), list[int]()
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
        return Written([self._written(row) for row in rows], places)

    def request(self, rows: Rows) -> dict[str, Any] | None:
        return None if self._given is None else {**without_notes(self._given), "messages": rows}

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

    def _read_row(self, index: int, row: Mapping[str, Any], names: dict[str, str]) -> None:
        place, role = f"message {index + 1}", row.get("role")
        if role not in ROLES:
            raise InvalidMessages(
                f"{place}: role {shown_value(role)} is not valid among Anthropic's messages; valid: {', '.join(ROLES)}"
                " (the system prompt stands beside the messages, as system)."
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
        blocks = objects(content, f"{place}, block")
        self._blocks.append(blocks)
        if role == "assistant":
            self._take(answer(blocks, place, names), _Origin(index, blocks))
            return
        for message, its_blocks in user_messages(blocks, place, names):
            self._take(message, _Origin(index, its_blocks))
