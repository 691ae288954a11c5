"""Read pi's sessions: JSON lines with a header, then entries that name their parent.

Version 1 has neither ids nor parents: its entries follow one another, and a compaction counts them
(badlogic/pi-mono, packages/coding-agent/src/core/session-manager.ts).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from nca.messages import Message, Part, TextPart
from nca.transcripts.formats.building import (
    Content,
    answer,
    attached,
    command_ran,
    joined,
    person,
    picture,
    printed,
    read_rows,
    tool_call,
    tool_result,
)
from nca.transcripts.formats.parent_chain import Branches
from nca.transcripts.formats.records import About, Compacted, Format, Record, Said, Unreadable
from nca.transcripts.formats.row import Row, rows_of, text_of
from nca.transcripts.formats.source import Source

_BEFORE = re.compile(r'<(file|skill) name="([^"\n]*)"[^>\n]*>(.*)</\1>(?:\n|\Z)', re.DOTALL)
"""Up to the last end: a file may hold the end of another one."""


class Pi(Format):
    name = title = "pi"
    variables = ("PI_CODING_AGENT_DIR",)
    own_folder = ".pi/agent"
    pattern = "sessions/*/*.jsonl"

    def knows(self, source: Source) -> bool:
        first = source.first_row
        return first.get("type") == "session" and isinstance(first.get("id"), str) and "cwd" in first

    def about(self, source: Source) -> About:
        return About(directory=source.first_row.text("cwd"))

    def records(self, source: Source, key: str) -> Iterator[Record]:
        return _Reading().records(source)


FORMAT = Pi()


class _Reading:
    """What is known of the lines before. `_entries` are the ids by number, the header first: version 1 counts them."""

    def __init__(self) -> None:
        self._branches = Branches()
        self._entries: list[str] = []
        self._shown: set[str] = set()

    def records(self, source: Source) -> Iterator[Record]:
        yield from read_rows(source, self._record)
        yield from self._branches.live()

    def _record(self, entry: Row, place: str) -> Iterator[Record]:
        kind = entry.get("type")
        if kind == "session":
            self._entries.append("")
            yield About(
                session=entry.text("id"),
                directory=entry.text("cwd"),
                model=entry.text("modelId"),
                parent=entry.first("parentSession", "branchedFrom"),
                version=entry.name("version"),
            )
            return
        record_id = self._take(entry, place)
        match kind:
            case "message":
                yield from self._message(entry, record_id, place)
            case "custom_message":
                yield from self._said(person(_content(entry.get("content")), "nca"), entry, record_id, place)
            case "branch_summary":
                yield from self._said(person(entry.text("summary"), "nca"), entry, record_id, place)
            case "compaction":
                yield self._compacted(entry, record_id, place)
            case "model_change":
                yield About(model=entry.text("modelId"))
            case "session_info":
                yield About(title=entry.text("name"))

    def _take(self, entry: Row, place: str) -> str:
        record_id = entry.text("id")
        self._branches.add(record_id or place, entry.text("parentId") if record_id else self._branches.last)
        self._entries.append(record_id or place)
        return record_id or place

    def _compacted(self, entry: Row, record_id: str, place: str) -> Record:
        first = entry.text("firstKeptEntryId")
        index = entry.get("firstKeptEntryIndex")
        if not first and isinstance(index, int) and 0 <= index < len(self._entries):
            first = self._entries[index]
        seen = self._branches.to(record_id)
        kept = seen[seen.index(first) :] if first in seen else []
        summary = entry.text("summary")
        return Compacted(
            summary=summary,
            id=record_id,
            kept=tuple(one for one in kept if one in self._shown),
            is_unreadable=not summary,
            tokens_before=entry.count("tokensBefore"),
            at=entry.seconds("timestamp"),
            place=place,
        )

    def _message(self, entry: Row, record_id: str, place: str) -> Iterator[Record]:
        row = entry.row("message")
        message: Message | None
        match row.get("role"):
            case "user":
                message = _asked(row.get("content"))
            case "custom" | "hookMessage":
                message = person(_content(row.get("content")), "nca")
            case "assistant":
                message = _answer(row)
            case "toolResult":
                content, is_error = _content(row.get("content")), row.get("isError") is True
                message = tool_result(row.get("toolCallId"), row.get("toolName"), content, is_error=is_error)
            case "bashExecution":
                message = printed(_command(row))
            case "branchSummary" | "compactionSummary":
                message = person(row.text("summary"), "nca")
            case _:
                yield Unreadable(place, "is a message without a known role")
                return
        yield from self._said(message, entry, record_id, place)

    def _said(self, message: Message | None, entry: Row, record_id: str, place: str) -> Iterator[Record]:
        row = entry.row("message")
        cost = row.value("usage", "cost", "total")
        usage = row.row("usage").usage("input", "output", "cacheRead", "cacheWrite", cost=cost, adds_cache=True)
        if message is None and usage is None:
            return
        self._shown.add(record_id)
        message = message or Message("assistant", "", is_interrupted=True)
        yield Said(
            message=message,
            id=record_id,
            at=entry.seconds("timestamp") or row.seconds("timestamp"),
            usage=usage,
            model=row.text("model"),
            is_aside=row.get("excludeFromContext") is True,
            place=place,
        )


def _answer(row: Row) -> Message | None:
    parts, calls, thoughts = list[Part | None](), [], []
    content = row.get("content")
    for block in rows_of([{"type": "text", "text": content}] if isinstance(content, str) else content):
        match block.get("type"):
            case "toolCall":
                calls.append(tool_call(block.get("id"), block.get("name"), block.get("arguments")))
            case "thinking":
                thoughts.append(block.text("thinking"))
            case _:
                parts.append(_part(block))
    return answer(parts, calls, *thoughts, was_cut=row.get("stopReason") in ("aborted", "error"))


def _content(content: Any) -> Content:
    return text_of(content) if isinstance(content, str) else joined([_part(block) for block in rows_of(content)])


def _asked(content: Any) -> Message | None:
    """What was sent as the person's: before their text stand the files and the skill that they named."""
    given = _content(content)
    parts: list[Part] = [TextPart(given)] if isinstance(given, str) else list(given)
    first = parts[0] if parts else None
    if isinstance(first, TextPart) and (found := _BEFORE.match(first.text)):
        parts[:1] = [attached(found[2], found[3].strip()), TextPart(first.text[found.end() :].strip())]
    return person(joined(parts))


def _part(block: Row) -> Part | None:
    if block.get("type") == "image":
        return picture(block.get("data"), block.get("mimeType"))
    return TextPart(block.text("text"))


def _command(row: Row) -> str:
    is_stopped = row.get("cancelled") is True
    ran = command_ran(row.get("command"), row.get("output"), 0 if is_stopped else row.count("exitCode"))
    return f"{ran}\n(stopped by the person)" if is_stopped else ran
