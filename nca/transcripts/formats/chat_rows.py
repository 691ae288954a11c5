"""Read rows in the shape of chat messages, as gptme, Kimi CLI and Mistral Vibe keep them. Nothing is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from nca.messages import Message, Part, TextPart
from nca.transcripts.formats.building import (
    answer,
    joined,
    list_of,
    object_of,
    objects_of,
    person,
    picture,
    printed,
    read_rows,
    shown,
    text_by,
    text_of,
    tool_call,
    tool_result,
)
from nca.transcripts.formats.records import Record, Said, Unreadable
from nca.transcripts.formats.source import Source


class ChatRows:
    """Turns rows into messages. It knows the calls before, whose results name no tool.

    added  how a message in the user's role begins that the program wrote
    """

    def __init__(self, *, added: tuple[str, ...] = ()) -> None:
        self._added = added
        self._names: dict[str, str] = {}
        self._has_begun = False

    def message(self, row: Mapping[str, Any]) -> Message | None:
        """None for a row without content. A later system row, and a result without a call, are what a program
        printed, and stay at their place in the user's role."""
        role = row.get("role")
        parts = [*_parts(row.get("content")), *_files(row.get("files"))]
        if role == "assistant":
            self._has_begun = True
            return self._answer(row, parts)
        if role == "tool" and (call_id := text_of(row.get("tool_call_id"))):
            name = text_of(row.get("name")) or self._names.get(call_id, "")
            return tool_result(call_id, name, joined(parts), is_error=row.get("is_error") is True)
        if role in ("system", "developer") and not self._has_begun:
            content = joined(parts)
            return Message("system", content) if content else None
        self._has_begun = True
        if role != "user":
            return printed(joined(parts))
        first = next((part.text for part in parts if isinstance(part, TextPart)), "").lstrip()
        is_added = row.get("injected") is True or (bool(self._added) and first.startswith(self._added))
        return person(joined(parts), "nca" if is_added else "")

    def records(self, source: Source, said: Callable[[Mapping[str, Any], Message, str], Said]) -> Iterator[Record]:
        """The records of JSON lines. `said` makes one of a row, its message and its place."""

        def read(row: Mapping[str, Any], place: str) -> Iterator[Record]:
            if not is_row(row):
                yield Unreadable(place, "is a message without a known role")
            elif (message := self.message(row)) is not None:
                yield said(row, message, place)

        return read_rows(source, read)

    def _answer(self, row: Mapping[str, Any], parts: list[Part | None]) -> Message | None:
        calls = []
        for one in objects_of(row.get("tool_calls")):
            function = object_of(one.get("function"))
            call = tool_call(one.get("id"), function.get("name"), function.get("arguments"))
            if call is not None:
                calls.append(call)
                self._names[call.id] = call.name
        thoughts = [text_of(row.get("reasoning_content")), *(_thought(one) for one in objects_of(row.get("content")))]
        return answer(parts, calls, "\n\n".join(filter(None, thoughts)))


def is_row(row: Mapping[str, Any]) -> bool:
    return row.get("role") in ("system", "user", "assistant", "tool") and ("content" in row or "tool_calls" in row)


def most(rows: Sequence[Mapping[str, Any]], is_own: Callable[[Mapping[str, Any]], bool]) -> bool:
    """Whether more than half of the rows are of a format; a damaged one must not hide the others."""
    return 2 * sum(map(is_own, rows)) > len(rows)


def _parts(content: Any) -> list[Part | None]:
    if not isinstance(content, list):
        return [TextPart(shown(content))]
    return [_part(object_of(one)) if not isinstance(one, str) else TextPart(text_of(one)) for one in content]


def _part(block: Mapping[str, Any]) -> Part | None:
    if block.get("type") == "think":
        return None
    if "image_url" in block:
        given = block["image_url"]
        return picture(object_of(given).get("url") if isinstance(given, dict) else given)
    return TextPart(text_of(block.get("text")))


def _thought(block: Mapping[str, Any]) -> str:
    return text_of(block.get("think")) if block.get("type") == "think" else ""


def _files(given: Any) -> list[Part | None]:
    return [text_by("nca", f"[file {text_of(one)}]") for one in list_of(given) if text_of(one)]
