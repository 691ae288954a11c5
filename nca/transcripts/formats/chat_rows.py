"""Read rows in the shape of chat messages, as gptme, Kimi CLI and Mistral Vibe keep them. Nothing is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from nca.messages import Message, Part, TextPart
from nca.transcripts.formats.building import (
    Reading,
    answer,
    joined,
    person,
    picture,
    printed,
    shown,
    text_by,
    tool_call,
    tool_result,
)
from nca.transcripts.formats.records import Record
from nca.transcripts.formats.row import Row, list_of, row_of, text_of


class ChatRows(Reading):
    """Turns rows into messages; some have ids or times. `added`: how one in the user's role begins that the program
    wrote."""

    added: tuple[str, ...] = ()
    _has_begun = False

    def record(self, row: Row) -> Iterator[Record]:
        self.id, self.at = row.text("message_id"), row.seconds("timestamp")
        if not is_row(row):
            yield self.unreadable("is a message without a known role")
        elif (message := self._message(row)) is not None:
            yield self.said(message, **self.facts(row))

    def facts(self, row: Row) -> dict[str, Any]:
        """The row's facts about its message, as in `Said`."""
        return {}

    def _message(self, row: Row) -> Message | None:
        """None for a row without content. A later system row, and a result without a call, are what a program
        printed, and stay at their place in the user's role."""
        role = row.get("role")
        parts = [*_parts(row.get("content")), *_files(row.get("files"))]
        if role == "assistant":
            self._has_begun = True
            return _answer(row, parts)
        if role == "tool" and (call_id := row.text("tool_call_id")):
            return tool_result(call_id, row.get("name"), joined(parts), is_error=row.get("is_error") is True)
        if role in ("system", "developer") and not self._has_begun:
            content = joined(parts)
            return Message("system", content) if content else None
        self._has_begun = True
        if role != "user":
            return printed(joined(parts))
        first = next((part.text for part in parts if isinstance(part, TextPart)), "").lstrip()
        is_added = row.get("injected") is True or first.startswith(self.added)
        return person(joined(parts), "nca" if is_added else "")


def _answer(row: Row, parts: list[Part | None]) -> Message | None:
    calls = [
        tool_call(one.get("id"), one.value("function", "name"), one.value("function", "arguments"))
        for one in row.rows("tool_calls")
    ]
    thoughts = (one.text("think") for one in row.rows("content") if one.get("type") == "think")
    return answer(parts, calls, row.text("reasoning_content"), *thoughts)


def is_row(row: Row) -> bool:
    return row.get("role") in ("system", "user", "assistant", "tool") and ("content" in row or "tool_calls" in row)


def most(rows: Sequence[Row], is_own: Callable[[Row], bool]) -> bool:
    """Whether more than half of the rows are of a format; a damaged one must not hide the others."""
    return 2 * sum(map(is_own, rows)) > len(rows)


def _parts(content: Any) -> list[Part | None]:
    if not isinstance(content, list):
        return [TextPart(shown(content))]
    return [_part(row_of(one)) if not isinstance(one, str) else TextPart(text_of(one)) for one in content]


def _part(block: Row) -> Part | None:
    if block.get("type") == "think":
        return None
    if "image_url" in block:
        given = block["image_url"]
        return picture(given.get("url") if isinstance(given, dict) else given)
    return TextPart(block.text("text"))


def _files(given: Any) -> list[Part | None]:
    return [text_by("nca", f"[file {text_of(one)}]") for one in list_of(given) if text_of(one)]
