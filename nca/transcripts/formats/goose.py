"""Read goose's sessions: one database of all of them.

When goose compacts, earlier messages stay and are marked as not for the model; the summary, and a message that tells
the model of it, are marked as not for the person (block/goose, crates/goose/src/context_mgmt, conversation/message.rs).
What is marked so and was not compacted was never sent: `/compact` and the line that answers it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from nca.messages import Message, Part, TextPart, ToolCall, Usage
from nca.sessions.foreign_rows import foreign_database
from nca.transcripts.formats.building import (
    answer,
    cost_of,
    count_of,
    joined,
    list_of,
    name_of,
    object_of,
    objects_of,
    parsed,
    person,
    picture,
    seconds_of,
    shown,
    some_messages,
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
    chosen_folder,
    data_folder,
    is_database_with,
    newest_key,
)
from nca.transcripts.formats.source import Source as Given
from nca.words import Source

_NOT_THE_PERSONS = ("sub_agent", "hidden")
_TOLD = "Your context was compacted"
"""How the message behind a summary begins."""


class Goose:
    name = "goose"
    title = "goose"

    def knows(self, source: Given) -> bool:
        return is_database_with(source, sessions=("id", "working_dir"), messages=("session_id", "role", "content_json"))

    def sessions(self, source: Given) -> Iterable[StoredSession]:
        if source.path is None:
            return
        with foreign_database(source.path) as database:
            for row in database.rows("sessions", order=("created_at", "id")):
                if row.get("session_type") in _NOT_THE_PERSONS:
                    continue
                yield StoredSession(
                    agent=self.name,
                    path=source.path,
                    key=name_of(row.get("id")),
                    directory=text_of(row.get("working_dir")),
                    title=_title(row),
                    at=seconds_of(row.get("updated_at")),
                )

    def read(self, source: Given, key: str = "") -> Iterator[Record]:
        return some_messages(self._records(source, key), source, self.title)

    def files(self, env: Mapping[str, str], home: Path) -> Iterable[Path]:
        own = chosen_folder(env.get("GOOSE_PATH_ROOT"), home)
        folders = [
            own / "data" if own else data_folder(env, home) / "goose",
            home / "Library" / "Application Support" / "Block" / "goose",
        ]
        found = (folder / "sessions" / "sessions.db" for folder in folders)
        return [path for path in found if path.is_file()]

    def _records(self, source: Given, key: str) -> Iterator[Record]:
        if source.path is None:
            return
        key = key or newest_key(self.sessions(source))
        with foreign_database(source.path) as database:
            session = next(database.rows("sessions", {"id": key}), {})
            config = object_of(parsed(session.get("model_config_json")))
            yield About(
                session=key,
                title=_title(session),
                directory=text_of(session.get("working_dir")),
                model=text_of(config.get("model_name")) or text_of(config.get("model")),
                parent=text_of(session.get("parent_session_id")),
            )
            yield from _Reading().records(database.rows("messages", {"session_id": key}, order=("id",)))


FORMAT = Goose()


def _title(row: Mapping[str, Any]) -> str:
    return text_of(row.get("name")) or text_of(row.get("description"))


class _Reading:
    def __init__(self) -> None:
        self._seen: list[str] = []
        """The messages that the model still sees; `_unseen`: those since the last compaction that it does not."""
        self._unseen: list[str] = []
        self._ids: list[str] = []
        self._names: dict[str, str] = {}

    def records(self, rows: Iterator[dict[str, Any]]) -> Iterator[Record]:
        row = next(rows, None)
        while row is not None:
            following = next(rows, None)
            yield from self._record(row, following or {})
            row = following
        if self._unseen:
            yield Live(frozenset(self._ids).difference(self._unseen))

    def _record(self, row: dict[str, Any], following: Mapping[str, Any]) -> Iterator[Record]:
        record_id = text_of(row.get("message_id")) or name_of(row.get("id"))
        place, at = f"message {record_id}", seconds_of(row.get("created_timestamp"))
        given = parsed(row.get("content_json"))
        if not isinstance(given, list):
            yield Unreadable(place, "has no list of contents")
            return
        blocks = objects_of(given)
        beside = object_of(parsed(row.get("metadata_json")))
        is_hidden = beside.get("userVisible") is False
        self._ids.append(record_id)
        if is_hidden and row.get("role") == "user" and _tells_of_a_summary(following):
            yield Compacted(
                summary=_text(blocks),
                id=record_id,
                kept=tuple(self._seen),
                is_unreadable=not _text(blocks),
                at=at,
                place=place,
            )
            self._seen, self._unseen = [*self._seen, record_id], []
            return
        (self._unseen if beside.get("agentVisible") is False else self._seen).append(record_id)
        usage, model = _usage(object_of(beside.get("usage"))), object_of(beside.get("inference")).get("requestedModel")
        for message in self._messages(row.get("role"), blocks, "nca" if is_hidden else ""):
            is_aside, is_answer = is_hidden and _is_told(blocks), message.role == "assistant"
            yield Said(
                message=message,
                id=record_id,
                at=at,
                usage=usage if is_answer else None,
                model=text_of(model) if is_answer else "",
                is_aside=is_aside,
                place=place,
            )

    def _messages(self, role: Any, blocks: list[dict[str, Any]], source: Source | Literal[""]) -> Iterator[Message]:
        parts: list[Part | None] = []
        calls: list[ToolCall | None] = []
        thoughts: list[str] = []
        for block in blocks:
            kind = block.get("type")
            if kind in ("toolRequest", "frontendToolRequest"):
                calls.append(self._call(block))
            elif kind == "toolResponse":
                yield self._result(block)
            elif kind in ("thinking", "reasoning"):
                thoughts.append(text_of(block.get("thinking")) or text_of(block.get("text")))
            elif kind == "image":
                parts.append(picture(block.get("data"), block.get("mimeType")))
            else:
                parts.append(TextPart(text_of(block.get("text"))))
        said = "\n\n".join(filter(None, thoughts))
        message = answer(parts, calls, said) if role == "assistant" else person(joined(parts), source)
        if message is not None:
            yield message

    def _call(self, block: Mapping[str, Any]) -> ToolCall | None:
        """A call that goose could not read has an error in place of its value."""
        made = object_of(block.get("toolCall"))
        value = object_of(made.get("value"))
        call = tool_call(block.get("id"), text_of(value.get("name")) or "unreadable", value.get("arguments"))
        if call is not None:
            self._names[call.id] = call.name
        return call

    def _result(self, block: Mapping[str, Any]) -> Message:
        given = object_of(block.get("toolResult"))
        value = given.get("value")
        content = list_of(value) or list_of(object_of(value).get("content"))
        parts = [_shown(one) for one in objects_of(content)]
        failed = given.get("status") == "error" or object_of(value).get("isError") is True
        error = TextPart(shown(given.get("error")))
        call_id = name_of(block.get("id")) or "unknown"
        return tool_result(call_id, self._names.get(call_id, ""), joined([*parts, error]), is_error=failed)


def _shown(block: Mapping[str, Any]) -> Part | None:
    if block.get("type") == "image":
        return picture(block.get("data"), block.get("mimeType"))
    resource = object_of(block.get("resource"))
    return TextPart(text_of(block.get("text")) or text_of(resource.get("text")))


def _usage(row: Mapping[str, Any]) -> Usage | None:
    read, written = count_of(row.get("cacheReadTokens")), count_of(row.get("cacheWriteTokens"))
    prompt, completion = count_of(row.get("inputTokens")), count_of(row.get("outputTokens"))
    return Usage(prompt, completion, read, written, cost=cost_of(row.get("cost"))) if prompt or completion else None


def _text(blocks: Iterable[Mapping[str, Any]]) -> str:
    return "\n\n".join(filter(None, (text_of(block.get("text")) for block in blocks if block.get("type") == "text")))


def _is_told(blocks: Iterable[Mapping[str, Any]]) -> bool:
    return _text(blocks).startswith(_TOLD)


def _tells_of_a_summary(row: Mapping[str, Any]) -> bool:
    return row.get("role") == "assistant" and _is_told(objects_of(parsed(row.get("content_json"))))
