"""Read pi's sessions: JSON lines with a header, then entries that name their parent.

Version 1 has neither ids nor parents: its entries follow one another, and a compaction counts them
(badlogic/pi-mono, packages/coding-agent/src/core/session-manager.ts).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from nca.messages import Message, Part, TextPart, Usage
from nca.transcripts.formats.building import (
    Content,
    answer,
    attached,
    command_ran,
    cost_of,
    count_of,
    joined,
    name_of,
    object_of,
    objects_of,
    person,
    picture,
    printed,
    read_rows,
    seconds_of,
    some_messages,
    text_of,
    tool_call,
    tool_result,
)
from nca.transcripts.formats.parent_chain import Branches
from nca.transcripts.formats.records import (
    About,
    Compacted,
    Live,
    Record,
    Said,
    StoredSession,
    Unreadable,
    chosen_folder,
    stored,
)
from nca.transcripts.formats.source import Source

_BEFORE = re.compile(r'<(file|skill) name="([^"\n]*)"[^>\n]*>(.*)</\1>(?:\n|\Z)', re.DOTALL)
"""Up to the last end: a file may hold the end of another one."""


class Pi:
    name = "pi"
    title = "pi"

    def knows(self, source: Source) -> bool:
        first = source.first_rows[:1]
        return any(row.get("type") == "session" and isinstance(row.get("id"), str) and "cwd" in row for row in first)

    def sessions(self, source: Source) -> Iterable[StoredSession]:
        header = next(iter(source.first_rows), {})
        return [stored(self.name, source, directory=text_of(header.get("cwd")))]

    def read(self, source: Source, key: str = "") -> Iterator[Record]:
        return some_messages(_Reading().records(source), source, self.title)

    def files(self, env: Mapping[str, str], home: Path) -> Iterable[Path]:
        folder = chosen_folder(env.get("PI_CODING_AGENT_DIR"), home) or home / ".pi" / "agent"
        return sorted((folder / "sessions").glob("*/*.jsonl"))


FORMAT = Pi()


class _Reading:
    """What is known of the lines before. `_entries` are the ids by number, the header first: version 1 counts them."""

    def __init__(self) -> None:
        self._branches = Branches()
        self._entries: list[str] = []
        self._shown: set[str] = set()

    def records(self, source: Source) -> Iterator[Record]:
        yield from read_rows(source, self._record)
        if not self._branches.are_linear:
            yield Live(frozenset(self._branches.to(self._branches.last)))

    def _record(self, entry: Mapping[str, Any], place: str) -> Iterator[Record]:
        kind = entry.get("type")
        if kind == "session":
            self._entries.append("")
            parent = text_of(entry.get("parentSession")) or text_of(entry.get("branchedFrom"))
            yield About(
                session=text_of(entry.get("id")),
                directory=text_of(entry.get("cwd")),
                model=text_of(entry.get("modelId")),
                parent=parent,
                version=name_of(entry.get("version")),
            )
            return
        record_id = self._take(entry, place)
        match kind:
            case "message":
                yield from self._message(entry, record_id, place)
            case "custom_message":
                yield from self._said(person(_content(entry.get("content")), "nca"), entry, record_id, place)
            case "branch_summary":
                yield from self._said(person(text_of(entry.get("summary")), "nca"), entry, record_id, place)
            case "compaction":
                yield self._compacted(entry, record_id, place)
            case "model_change":
                yield About(model=text_of(entry.get("modelId")))
            case "session_info":
                yield About(title=text_of(entry.get("name")))

    def _take(self, entry: Mapping[str, Any], place: str) -> str:
        record_id = text_of(entry.get("id"))
        self._branches.add(record_id or place, text_of(entry.get("parentId")) if record_id else self._branches.last)
        self._entries.append(record_id or place)
        return record_id or place

    def _compacted(self, entry: Mapping[str, Any], record_id: str, place: str) -> Record:
        first = text_of(entry.get("firstKeptEntryId"))
        index = entry.get("firstKeptEntryIndex")
        if not first and isinstance(index, int) and 0 <= index < len(self._entries):
            first = self._entries[index]
        seen = self._branches.to(record_id)
        kept = seen[seen.index(first) :] if first in seen else []
        summary = text_of(entry.get("summary"))
        return Compacted(
            summary=summary,
            id=record_id,
            kept=tuple(one for one in kept if one in self._shown),
            is_unreadable=not summary,
            tokens_before=count_of(entry.get("tokensBefore")),
            at=seconds_of(entry.get("timestamp")),
            place=place,
        )

    def _message(self, entry: Mapping[str, Any], record_id: str, place: str) -> Iterator[Record]:
        row = object_of(entry.get("message"))
        message: Message | None
        match row.get("role"):
            case "user":
                message = _asked(row.get("content"))
            case "custom" | "hookMessage":
                message = person(_content(row.get("content")), "nca")
            case "assistant":
                message = _answer(row)
            case "toolResult":
                message = tool_result(
                    row.get("toolCallId"),
                    row.get("toolName"),
                    _content(row.get("content")),
                    is_error=row.get("isError") is True,
                )
            case "bashExecution":
                message = printed(_command(row))
            case "branchSummary" | "compactionSummary":
                message = person(text_of(row.get("summary")), "nca")
            case _:
                yield Unreadable(place, "is a message without a known role")
                return
        yield from self._said(message, entry, record_id, place)

    def _said(self, message: Message | None, entry: Mapping[str, Any], record_id: str, place: str) -> Iterator[Record]:
        row = object_of(entry.get("message"))
        usage = _usage(row.get("usage"))
        if message is None and usage is None:
            return
        self._shown.add(record_id)
        message = message or Message("assistant", "", is_interrupted=True)
        yield Said(
            message=message,
            id=record_id,
            at=seconds_of(entry.get("timestamp")) or seconds_of(row.get("timestamp")),
            usage=usage,
            model=text_of(row.get("model")) if message.role == "assistant" else "",
            is_aside=row.get("excludeFromContext") is True,
            place=place,
        )


def _answer(row: Mapping[str, Any]) -> Message | None:
    parts, calls, thoughts = list[Part | None](), [], []
    content = row.get("content")
    for block in objects_of([{"type": "text", "text": content}] if isinstance(content, str) else content):
        match block.get("type"):
            case "toolCall":
                calls.append(tool_call(block.get("id"), block.get("name"), block.get("arguments")))
            case "thinking":
                thoughts.append(text_of(block.get("thinking")))
            case _:
                parts.append(_part(block))
    return answer(
        parts, calls, "\n\n".join(filter(None, thoughts)), was_cut=row.get("stopReason") in ("aborted", "error")
    )


def _content(content: Any) -> Content:
    return text_of(content) if isinstance(content, str) else joined([_part(block) for block in objects_of(content)])


def _asked(content: Any) -> Message | None:
    """What was sent as the person's: before their text stand the files and the skill that they named."""
    given = _content(content)
    parts: list[Part] = [TextPart(given)] if isinstance(given, str) else list(given)
    first = parts[0] if parts else None
    if isinstance(first, TextPart) and (found := _BEFORE.match(first.text)):
        parts[:1] = [attached(found[2], found[3].strip()), TextPart(first.text[found.end() :].strip())]
    return person(joined(parts))


def _part(block: Mapping[str, Any]) -> Part | None:
    if block.get("type") == "image":
        return picture(block.get("data"), block.get("mimeType"))
    return TextPart(text_of(block.get("text"))) if text_of(block.get("text")) else None


def _command(row: Mapping[str, Any]) -> str:
    is_stopped = row.get("cancelled") is True
    ran = command_ran(row.get("command"), row.get("output"), 0 if is_stopped else count_of(row.get("exitCode")))
    return f"{ran}\n(stopped by the person)" if is_stopped else ran


def _usage(given: Any) -> Usage | None:
    row = object_of(given)
    read, written = count_of(row.get("cacheRead")), count_of(row.get("cacheWrite"))
    prompt, completion = count_of(row.get("input")) + read + written, count_of(row.get("output"))
    cost = cost_of(object_of(row.get("cost")).get("total"))
    return Usage(prompt, completion, read, written, cost=cost) if prompt or completion else None
