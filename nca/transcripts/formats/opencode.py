"""Read opencode's sessions: a SQLite database of all of them, in older versions a JSON file for each record, or what
`opencode export` writes of one.

All hold the same records: a session, its messages, and of each message its parts
(anomalyco/opencode, packages/opencode/src/session/message-v2.ts and session.sql.ts).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from nca.messages import Message, Part, TextPart, Usage
from nca.safe_files import paths_below
from nca.sessions.foreign_rows import MAGIC
from nca.transcripts.formats import building as make
from nca.transcripts.formats.databases import DatabaseFormat, Tables
from nca.transcripts.formats.records import Live, Reading, Record, StoredSession, facts
from nca.transcripts.formats.row import Row, parsed, row_of, text_of, texts_of
from nca.transcripts.formats.source import Source, data_folder, json_file

_EXPORT = re.compile(rb'\s*\{\s*"info"\s*:\s*\{')
_OPEN = ("pending", "running")
_IN_THE_TEXT = ("text/plain", "application/x-directory")
"""Attached files of these types are text parts as well."""

Parts = list[Row]


class OpenCode(DatabaseFormat):
    columns: ClassVar = {"session": ("id", "title"), "message": ("session_id", "data"), "part": ("message_id", "data")}
    table = "session"
    order = ("time_updated", "id")
    parent = "parent_id"

    def knows(self, source: Source) -> bool:
        if super().knows(source) or _is_export(source):
            return True
        return source.path is not None and _is_session(source.path, json_of(source))

    def messages(self, tables: Tables, row: Row) -> Iterator[Record]:
        return _Reading(row).of_messages(_rows(tables, row.text("id")))

    def sessions(self, source: Source) -> Iterable[StoredSession]:
        if source.head.startswith(MAGIC):
            return super().sessions(source)
        return [self.stored(source, facts(self.name, _one(source)[0]))]

    def records(self, source: Source, key: str) -> Iterable[Record]:
        if source.head.startswith(MAGIC):
            yield from super().records(source, key)
            return
        session, messages = _one(source)
        yield facts(self.name, session)
        yield from _Reading(session).of_messages(messages)

    def files(self, env: Mapping[str, str], home: Path) -> Iterable[Path]:
        folder = data_folder(env, home) / "opencode"
        databases = sorted(paths_below(folder, "opencode*.db"))
        # A newer version has taken the files into its database.
        return databases or sorted(paths_below(folder / "storage" / "session", "*/*.json"))


FORMAT = OpenCode("opencode")


def json_of(source: Source) -> Row:
    """A small file of one object; empty if it is none."""
    return source.first_rows[0] if len(source.first_rows) == 1 else row_of(parsed(source.head))


def _is_session(path: Path, row: Row) -> bool:
    is_named = isinstance(row.get("id"), str) and "projectID" in row and "time" in row
    return is_named and path.parent.parent.name == "session"


def _is_export(source: Source) -> bool:
    return _EXPORT.match(source.head) is not None and b'"projectID"' in source.head


def _one(source: Source) -> tuple[Row, Iterable[tuple[str, Any, Parts]]]:
    """The session of a file that holds one, and its messages."""
    if _is_export(source):
        whole = row_of(source.value())
        rows = [(one.row("info"), one.rows("parts")) for one in whole.rows("messages")]
        return whole.row("info"), [(row.text("id"), row, parts) for row, parts in rows]
    row = json_of(source)
    return row, _stored_messages(source.path, row.text("id")) if source.path else ()


def _rows(tables: Tables, key: str) -> Iterator[tuple[str, Any, Parts]]:
    """Each message's id, itself and its parts."""
    for row in tables.rows("message", ("time_created", "id"), session_id=key):
        found = tables.rows("part", message_id=row.get("id"))
        yield row.text("id"), parsed(row.get("data")), [row_of(parsed(part.get("data"))) for part in found]


def _stored_messages(path: Path, session: str) -> Iterator[tuple[str, Any, Parts]]:
    storage = path.parent.parent.parent
    found = [(file.stem, json_file(file)) for file in sorted(paths_below(storage / "message" / session, "*.json"))]
    found.sort(key=lambda one: (row_of(one[1]).seconds("time", "created"), one[0]))
    for message, row in found:
        parts = [json_file(file) for file in sorted(paths_below(storage / "part" / message, "*.json"))]
        yield message, row, [row_of(part) for part in parts]


class _Reading(Reading):
    def __init__(self, session: Row) -> None:
        self._reverted = row_of(parsed(session.get("revert"))).text("messageID")
        self._ids: list[str] = []
        self._asked: dict[str, Row] = {}
        """The requests for a compaction, by the id of the message that holds them."""

    def of_messages(self, messages: Iterable[tuple[str, Any, Parts]]) -> Iterator[Record]:
        for self.id, row, parts in messages:
            self.place = f"message {self.id}"
            if not isinstance(row, dict):
                yield self.unreadable("is not a JSON object")
                continue
            self._ids.append(self.id)
            yield from self._message(row_of(row), parts)
        if self._reverted in self._ids:
            yield Live(frozenset(self._ids[: self._ids.index(self._reverted)]))

    def _message(self, row: Row, parts: Parts) -> Iterator[Record]:
        self.at, role = row.seconds("time", "created"), row.get("role")
        if role == "user":
            asked = next((part for part in parts if part.get("type") == "compaction"), None)
            if asked is not None:
                self._asked[self.id] = asked
                return
            yield from self.said(make.person(make.joined([_shown(part) for part in parts])))
        elif role == "assistant":
            if row.get("summary") is True and not row.get("error"):
                yield from self._compaction(row, parts)
            else:
                yield from self._answer(row, parts)
        else:
            yield self.unreadable("is a message without a known role")

    def _compaction(self, row: Row, parts: Parts) -> Iterator[Record]:
        """The summary. It keeps the messages from the first of the tail up to the request for it."""
        summary = texts_of(part for part in parts if part.get("type") == "text")
        asked_in = row.text("parentID")
        asked = self._asked.get(asked_in, Row())
        first = asked.text("tail_start_id")
        before = self._ids[: self._ids.index(asked_in)] if asked_in in self._ids else []
        kept = before[before.index(first) :] if first in before else []
        if not summary:
            return
        usage = _usage(row)
        yield self.compacted(
            summary,
            kept=tuple(kept),
            trigger=("auto" if asked.get("auto") is True else "manual") if asked else "",
            tokens_before=usage.prompt_tokens if usage else 0,
            cost=usage.cost if usage else None,
        )

    def _answer(self, row: Row, parts: Parts) -> Iterator[Record]:
        """An answer with the results of its calls. A message holds several requests; each step of it is one."""
        for step in _steps(parts):
            calls = [part for part in step if part.get("type") == "tool"]
            usage = next((_usage(part) for part in step if part.get("type") == "step-finish"), None)
            if usage is None and not any(part.get("type") == "step-finish" for part in parts):
                usage = _usage(row) if step is parts else None
            message = make.answer(
                [TextPart(part.text("text")) for part in step if part.get("type") == "text"],
                [make.tool_call(part.get("callID"), part.get("tool"), part.value("state", "input")) for part in calls],
                "\n\n".join(part.text("text") for part in step if part.get("type") == "reasoning"),
                was_cut=bool(row.get("error")),
            )
            if message is None and usage is None:
                continue
            message = message or Message("assistant", "", is_interrupted=True)
            yield from self.said(message, usage=usage, model=row.text("modelID"))
            known = {call.id for call in message.tool_calls}
            for result in filter(None, map(_result, calls)):
                if result.tool_call_id in known:
                    known.remove(result.tool_call_id)
                    yield from self.said(result)


def _steps(parts: Parts) -> list[Parts]:
    """The parts of each request; all together if no request's end is marked."""
    if not any(part.get("type") == "step-start" for part in parts):
        return [parts]
    steps: list[Parts] = [[]]
    for part in parts:
        if part.get("type") == "step-start" and any(
            one.get("type") in ("text", "tool", "reasoning") for one in steps[-1]
        ):
            steps.append([])
        steps[-1].append(part)
    return steps


def _result(part: Row) -> Message | None:
    """A call's result; None while it runs. A shell command that failed has completed, with its exit code beside."""
    state = part.row("state")
    status, beside = state.get("status"), state.row("metadata")
    if status not in ("completed", "error"):
        return None
    failed = status == "error"
    output = state.first("output", "error") or beside.text("output")
    pictures = [_shown(Row(file, type="file")) for file in state.rows("attachments")]
    return make.tool_result(
        part.get("callID"),
        part.get("tool"),
        make.joined([TextPart(output), *pictures]),
        is_error=failed or beside.count("exit") > 0,
    )


def _shown(part: Row) -> Part | None:
    kind = part.get("type")
    if kind == "text" and part.get("ignored") is not True:
        return make.text_by("nca" if part.get("synthetic") is True else "typed", part.text("text"))
    if kind == "file" and part.get("mime") not in _IN_THE_TEXT:
        url = part.text("url")
        if url.startswith(("data:", "http:", "https:")):
            return make.media(url, part.get("mime"), part.get("filename"))
        return make.text_by("nca", f"[file {text_of(part.get('filename')) or url}]")
    if kind == "subtask":
        return make.text_by("nca", part.text("prompt"))
    return None


def _usage(row: Row) -> Usage | None:
    """The usage in a message or a step-finish part: the prompt without the cache, the answer without its reasoning."""
    names, cost = ("input", "output", "cache.read", "cache.write", "reasoning"), row.get("cost")
    return row.row("tokens").usage(*names, cost=cost, adds_cache=True, adds_thoughts=True)
