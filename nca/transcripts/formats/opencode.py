"""Read opencode's sessions: a SQLite database of all of them, in older versions a JSON file for each record, or what
`opencode export` writes of one.

All hold the same records: a session, its messages, and of each message its parts
(anomalyco/opencode, packages/opencode/src/session/message-v2.ts and session.sql.ts).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from nca.messages import Message, Part, TextPart, Usage
from nca.sessions.foreign_rows import ForeignDatabase, foreign_database
from nca.transcripts.formats.building import (
    answer,
    cost_of,
    count_of,
    joined,
    media,
    object_of,
    objects_of,
    parsed,
    person,
    seconds_of,
    some_messages,
    text_by,
    text_of,
    tool_call,
    tool_result,
)
from nca.transcripts.formats.records import (
    About,
    Compacted,
    Live,
    Record,
    Said,
    StoredSession,
    Unreadable,
    data_folder,
    is_database_with,
    json_file,
    newest_key,
    stored,
)
from nca.transcripts.formats.source import Source

_EXPORT = re.compile(rb'\s*\{\s*"info"\s*:\s*\{')
_OPEN = ("pending", "running")
_IN_THE_TEXT = ("text/plain", "application/x-directory")
"""Attached files of these types are text parts as well."""

Parts = list[dict[str, Any]]


class OpenCode:
    name = "opencode"
    title = "opencode"

    def knows(self, source: Source) -> bool:
        if is_database_with(
            source, session=("id", "title"), message=("session_id", "data"), part=("message_id", "data")
        ):
            return True
        return _is_export(source) or (source.path is not None and _is_session(source.path, json_of(source)))

    def sessions(self, source: Source) -> Iterable[StoredSession]:
        if source.path is None or not is_database_with(source, session=("id",)):
            row, _ = _one(source)
            yield stored(
                self.name,
                source,
                directory=text_of(row.get("directory")),
                title=text_of(row.get("title")),
                at=seconds_of(object_of(row.get("time")).get("updated")),
            )
            return
        with foreign_database(source.path) as database:
            for row in database.rows("session", order=("time_updated", "id")):
                if text_of(row.get("parent_id")):
                    continue  # a subagent's: it belongs to a session
                yield StoredSession(
                    agent=self.name,
                    path=source.path,
                    key=text_of(row.get("id")),
                    directory=text_of(row.get("directory")),
                    title=text_of(row.get("title")),
                    at=seconds_of(row.get("time_updated")),
                )

    def read(self, source: Source, key: str = "") -> Iterator[Record]:
        return some_messages(self._records(source, key), source, self.title)

    def files(self, env: Mapping[str, str], home: Path) -> Iterable[Path]:
        folder = data_folder(env, home) / "opencode"
        databases = sorted(folder.glob("opencode*.db"))
        # A newer version has taken the files into its database.
        return databases or sorted((folder / "storage" / "session").glob("*/*.json"))

    def _records(self, source: Source, key: str) -> Iterator[Record]:
        if source.path is None or not is_database_with(source, session=("id",)):
            session, messages = _one(source)
            yield from _Reading(session).records(messages)
            return
        with foreign_database(source.path) as database:
            key = key or newest_key(self.sessions(source))
            session = next(database.rows("session", {"id": key}), {})
            yield from _Reading(session).records(_rows(database, key))


FORMAT = OpenCode()


def json_of(source: Source) -> dict[str, Any]:
    """A small file of one object; empty if it is none."""
    return source.first_rows[0] if len(source.first_rows) == 1 else object_of(parsed(source.head))


def _is_session(path: Path, row: Mapping[str, Any]) -> bool:
    is_named = isinstance(row.get("id"), str) and "projectID" in row and "time" in row
    return is_named and path.parent.parent.name == "session"


def _is_export(source: Source) -> bool:
    return _EXPORT.match(source.head) is not None and b'"projectID"' in source.head


def _one(source: Source) -> tuple[dict[str, Any], Iterable[tuple[str, Any, Parts]]]:
    """The session of a file that holds one, and its messages."""
    if _is_export(source):
        whole = object_of(source.value())
        rows = [(object_of(one.get("info")), objects_of(one.get("parts"))) for one in objects_of(whole.get("messages"))]
        return object_of(whole.get("info")), [(text_of(row.get("id")), row, parts) for row, parts in rows]
    row = json_of(source)
    return row, _stored_messages(source.path, text_of(row.get("id"))) if source.path else ()


def _rows(database: ForeignDatabase, key: str) -> Iterator[tuple[str, Any, Parts]]:
    """Each message's id, itself and its parts."""
    for row in database.rows("message", {"session_id": key}, order=("time_created", "id")):
        found = database.rows("part", {"message_id": row.get("id")}, order=("id",))
        yield text_of(row.get("id")), parsed(row.get("data")), [object_of(parsed(part.get("data"))) for part in found]


def _stored_messages(path: Path, session: str) -> Iterator[tuple[str, Any, Parts]]:
    storage = path.parent.parent.parent
    found = [(file.stem, json_file(file)) for file in sorted((storage / "message" / session).glob("*.json"))]
    found.sort(key=lambda one: (seconds_of(object_of(object_of(one[1]).get("time")).get("created")), one[0]))
    for message, row in found:
        parts = [json_file(file) for file in sorted((storage / "part" / message).glob("*.json"))]
        yield message, row, [object_of(part) for part in parts]


class _Reading:
    def __init__(self, session: Mapping[str, Any]) -> None:
        self._session = session
        self._ids: list[str] = []
        self._asked: dict[str, dict[str, Any]] = {}
        """The requests for a compaction, by the id of the message that holds them."""

    def records(self, messages: Iterable[tuple[str, Any, Parts]]) -> Iterator[Record]:
        session = self._session
        yield About(
            session=text_of(session.get("id")),
            title=text_of(session.get("title")),
            directory=text_of(session.get("directory")),
            parent=text_of(session.get("parent_id")) or text_of(session.get("parentID")),
            version=text_of(session.get("version")),
        )
        for record_id, row, parts in messages:
            place = f"message {record_id}"
            if not isinstance(row, dict):
                yield Unreadable(place, "is no JSON object")
                continue
            self._ids.append(record_id)
            yield from self._message(row, parts, record_id, place)
        reverted = text_of(object_of(parsed(session.get("revert"))).get("messageID"))
        if reverted in self._ids:
            yield Live(frozenset(self._ids[: self._ids.index(reverted)]))

    def _message(self, row: dict[str, Any], parts: Parts, record_id: str, place: str) -> Iterator[Record]:
        at = seconds_of(object_of(row.get("time")).get("created"))
        role = row.get("role")
        if role == "user":
            asked = next((part for part in parts if part.get("type") == "compaction"), None)
            if asked is not None:
                self._asked[record_id] = asked
                return
            message = person(joined([_shown(part) for part in parts]))
            if message is not None:
                yield Said(message=message, id=record_id, at=at, place=place)
        elif role == "assistant":
            if row.get("summary") is True and not row.get("error"):
                yield from self._compacted(row, parts, record_id, place)
            else:
                yield from _answer(row, parts, record_id, at, place)
        else:
            yield Unreadable(place, "is a message without a known role")

    def _compacted(self, row: dict[str, Any], parts: Parts, record_id: str, place: str) -> Iterator[Record]:
        """The summary. It keeps the messages from the first of the tail up to the request for it."""
        summary = "\n\n".join(filter(None, (text_of(part.get("text")) for part in parts if part.get("type") == "text")))
        asked_in = text_of(row.get("parentID"))
        asked = self._asked.get(asked_in, {})
        first = text_of(asked.get("tail_start_id"))
        before = self._ids[: self._ids.index(asked_in)] if asked_in in self._ids else []
        kept = before[before.index(first) :] if first in before else []
        if not summary:
            return
        usage = _usage(row)
        yield Compacted(
            summary=summary,
            id=record_id,
            kept=tuple(kept),
            trigger=("auto" if asked.get("auto") is True else "manual") if asked else "",
            tokens_before=usage.prompt_tokens if usage else 0,
            cost=usage.cost if usage else None,
            at=seconds_of(object_of(row.get("time")).get("created")),
            place=place,
        )


def _answer(row: dict[str, Any], parts: Parts, record_id: str, at: float, place: str) -> Iterator[Record]:
    """An answer with the results of its calls. A message holds several requests; each step of it is one."""
    for step in _steps(parts):
        calls = [part for part in step if part.get("type") == "tool"]
        usage = next((_usage(part) for part in step if part.get("type") == "step-finish"), None)
        if usage is None and not any(part.get("type") == "step-finish" for part in parts):
            usage = _usage(row) if step is parts else None
        message = answer(
            [TextPart(text_of(part.get("text"))) for part in step if part.get("type") == "text"],
            [
                tool_call(part.get("callID"), part.get("tool"), object_of(part.get("state")).get("input"))
                for part in calls
            ],
            "\n\n".join(text_of(part.get("text")) for part in step if part.get("type") == "reasoning"),
            was_cut=bool(row.get("error")),
        )
        if message is None and usage is None:
            continue
        message = message or Message("assistant", "", is_interrupted=True)
        yield Said(message=message, id=record_id, at=at, usage=usage, model=text_of(row.get("modelID")), place=place)
        known = {call.id for call in message.tool_calls}
        for part in calls:
            result = _result(part)
            if result is not None and result.tool_call_id in known:
                known.remove(result.tool_call_id)
                yield Said(message=result, id=record_id, at=at, place=place)


def _steps(parts: Parts) -> list[Parts]:
    """The parts of each request; all together where no request's end is marked."""
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


def _result(part: Mapping[str, Any]) -> Message | None:
    """A call's result; None while it runs. A shell command that failed has completed, with its exit code beside."""
    state = object_of(part.get("state"))
    status, beside = state.get("status"), object_of(state.get("metadata"))
    if status not in ("completed", "error"):
        return None
    failed = status == "error"
    output = text_of(state.get("output")) or text_of(state.get("error")) or text_of(beside.get("output"))
    pictures = [_shown({"type": "file", **file}) for file in objects_of(state.get("attachments"))]
    return tool_result(
        part.get("callID"),
        part.get("tool"),
        joined([TextPart(output), *pictures]),
        is_error=failed or count_of(beside.get("exit")) > 0,
    )


def _shown(part: Mapping[str, Any]) -> Part | None:
    kind = part.get("type")
    if kind == "text" and part.get("ignored") is not True:
        return text_by("nca" if part.get("synthetic") is True else "typed", text_of(part.get("text")))
    if kind == "file" and part.get("mime") not in _IN_THE_TEXT:
        url = text_of(part.get("url"))
        if url.startswith(("data:", "http:", "https:")):
            return media(url, part.get("mime"), part.get("filename"))
        return text_by("nca", f"[file {text_of(part.get('filename')) or url}]")
    if kind == "subtask":
        return text_by("nca", text_of(part.get("prompt")))
    return None


def _usage(row: Mapping[str, Any]) -> Usage | None:
    """What a message or a step-finish part reports: the prompt without the cache, the answer without its reasoning."""
    tokens = object_of(row.get("tokens"))
    cache = object_of(tokens.get("cache"))
    read, written, thoughts = (
        count_of(cache.get("read")),
        count_of(cache.get("write")),
        count_of(tokens.get("reasoning")),
    )
    prompt, completion = count_of(tokens.get("input")) + read + written, count_of(tokens.get("output")) + thoughts
    if not prompt and not completion:
        return None
    return Usage(prompt, completion, read, written, thoughts, cost_of(row.get("cost")))
