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
    Reading,
    answer,
    attached,
    command_ran,
    joined,
    person,
    picture,
    printed,
    tool_call,
    tool_result,
)
from nca.transcripts.formats.parent_chain import Branches
from nca.transcripts.formats.records import About, Format, Record
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


class _Reading(Reading):
    """The state after the lines so far. `_entries` are the ids by number, the header first: version 1 counts them."""

    def __init__(self) -> None:
        self._branches = Branches()
        self._entries: list[str] = []
        self._shown: set[str] = set()

    def records(self, source: Source) -> Iterator[Record]:
        yield from self.lines(source)
        yield from self._branches.live()

    def record(self, row: Row) -> Iterator[Record]:
        kind = row.get("type")
        if kind == "session":
            self._entries.append("")
            yield About(
                session=row.text("id"),
                directory=row.text("cwd"),
                model=row.text("modelId"),
                parent=row.first("parentSession", "branchedFrom"),
                version=row.name("version"),
            )
            return
        own_id = row.text("id")
        self.id, self.at = own_id or self.place, row.seconds("timestamp")
        self._branches.add(self.id, row.text("parentId") if own_id else self._branches.last)
        self._entries.append(self.id)
        match kind:
            case "message":
                yield from self._message(row.row("message"))
            case "custom_message":
                yield from self._shows(person(_content(row.get("content")), "nca"))
            case "branch_summary":
                yield from self._shows(person(row.text("summary"), "nca"))
            case "compaction":
                yield self._compaction(row)
            case "model_change":
                yield About(model=row.text("modelId"))
            case "session_info":
                yield About(title=row.text("name"))

    def _compaction(self, row: Row) -> Record:
        first = row.text("firstKeptEntryId")
        index = row.get("firstKeptEntryIndex")
        if not first and isinstance(index, int) and 0 <= index < len(self._entries):
            first = self._entries[index]
        seen = self._branches.to(self.id)
        kept = tuple(one for one in seen[seen.index(first) :] if one in self._shown) if first in seen else ()
        return self.summarized(row.text("summary"), kept=kept, tokens_before=row.count("tokensBefore"))

    def _message(self, row: Row) -> Iterator[Record]:
        self.at = self.at or row.seconds("timestamp")
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
                yield self.unreadable("is a message without a known role")
                return
        cost = row.value("usage", "cost", "total")
        usage = row.row("usage").usage("input", "output", "cacheRead", "cacheWrite", cost=cost, adds_cache=True)
        if message is None and usage is not None:
            message = Message("assistant", "", is_interrupted=True)
        is_aside = row.get("excludeFromContext") is True
        yield from self._shows(message, usage=usage, model=row.text("model"), is_aside=is_aside)

    def _shows(self, message: Message | None, **facts: Any) -> Iterator[Record]:
        if message is not None:
            self._shown.add(self.id)
            yield self.said(message, **facts)


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
    """The message sent as the person's: before their text come the files and the skill that they named."""
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
