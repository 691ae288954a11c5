"""Read pi's sessions: JSON lines with a header, then entries that name their parent.

Version 1 has neither ids nor parents: its entries follow one another, and a compaction counts them
(badlogic/pi-mono, packages/coding-agent/src/core/session-manager.ts).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from nca.messages import Message, Part, TextPart
from nca.transcripts.formats import building as make
from nca.transcripts.formats.parent_chain import Branches
from nca.transcripts.formats.records import About, Format, Live, Reading, Record, Said, facts
from nca.transcripts.formats.row import Row
from nca.transcripts.formats.source import Source

_BEFORE = re.compile(r'<(file|skill) name="([^"\n]*)"[^>\n]*>(.*)</\1>(?:\n|\Z)', re.DOTALL)
"""Up to the last end: a file may hold the end of another one."""


COUNTS = ("input", "output", "cacheRead", "cacheWrite")


class Pi(Format):
    def knows(self, source: Source) -> bool:
        first = source.first_row
        return first.get("type") == "session" and isinstance(first.get("id"), str) and "cwd" in first

    def about(self, source: Source) -> About:
        return About(directory=source.first_row.text("cwd"))


class _Reading(Reading):
    """The state after the lines so far. `_entries` are the ids by number, the header first: version 1 counts them."""

    def __init__(self) -> None:
        self._branches = Branches()
        self._entries: list[str] = []
        self._shown: set[str] = set()

    def ended(self) -> Iterator[Live]:
        return self._branches.live()

    def record(self, row: Row) -> Iterator[Record]:
        kind = row.get("type")
        if kind == "session":
            self._entries.append("")
            yield facts("pi", Row(row, version=row.name("version")))
            return
        own_id = row.text("id")
        self.id, self.at = own_id or self.place, row.seconds("timestamp")
        self._branches.add(self.id, row.text("parentId") if own_id else self._branches.last)
        self._entries.append(self.id)
        match kind:
            case "message":
                yield from self._message(row.row("message"))
            case "custom_message":
                yield from self._shows(make.person(_read(row.get("content")).said, "nca"))
            case "branch_summary":
                yield from self._shows(make.person(row.text("summary"), "nca"))
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
        found = _read(row.get("content"))
        message: Message | None
        match row.get("role"):
            case "user":
                message = _asked(found.said)
            case "custom" | "hookMessage":
                message = make.person(found.said, "nca")
            case "assistant":
                message = found.answer(was_cut=row.get("stopReason") in ("aborted", "error"))
            case "toolResult":
                is_error = row.get("isError") is True
                message = make.tool_result(row.get("toolCallId"), row.get("toolName"), found.said, is_error=is_error)
            case "bashExecution":
                message = make.printed(_command(row))
            case "branchSummary" | "compactionSummary":
                message = make.person(row.text("summary"), "nca")
            case _:
                yield self.unreadable("is a message without a known role")
                return
        cost = row.value("usage", "cost", "total")
        usage = row.row("usage").usage(*COUNTS, cost=cost, adds_cache=True)
        if message is None and usage is not None:
            message = Message("assistant", "", is_interrupted=True)
        is_aside = row.get("excludeFromContext") is True
        yield from self._shows(message, usage=usage, model=row.text("model"), is_aside=is_aside)

    def _shows(self, message: Message | None, **facts: Any) -> Iterator[Said]:
        if message is not None:
            self._shown.add(self.id)
        return self.said(message, **facts)


def _read(content: Any) -> make.Blocks:
    found = make.Blocks()
    for block in make.blocks_of(content):
        match block.get("type"):
            case "toolCall":
                found.add(make.tool_call(block.get("id"), block.get("name"), block.get("arguments")))
            case "thinking":
                found.thoughts.append(block.text("thinking"))
            case "image":
                found.add(make.picture(block.get("data"), block.get("mimeType")))
            case _:
                found.add(TextPart(block.text("text")))
    return found


def _asked(given: make.Content) -> Message | None:
    """The message sent as the person's: before their text come the files and the skill that they named."""
    parts: list[Part] = [TextPart(given)] if isinstance(given, str) else list(given)
    first = parts[0] if parts else None
    if isinstance(first, TextPart) and (found := _BEFORE.match(first.text)):
        parts[:1] = [make.attached(found[2], found[3].strip()), TextPart(first.text[found.end() :].strip())]
    return make.person(make.joined(parts))


def _command(row: Row) -> str:
    is_stopped = row.get("cancelled") is True
    ran = make.command_ran(row.get("command"), row.get("output"), 0 if is_stopped else row.count("exitCode"))
    return f"{ran}\n(stopped by the person)" if is_stopped else ran


FORMAT = Pi("pi", _Reading)
