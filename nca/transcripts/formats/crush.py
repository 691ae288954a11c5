"""Read Crush's sessions: one database for each project. The first opencode, from which it comes, has the same.

A summary is a message: the model sees it and what follows
(charmbracelet/crush, internal/db/migrations, internal/message/content.go, internal/agent/agent.go).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from nca.messages import Message, Part, TextPart
from nca.sessions.foreign_rows import foreign_database
from nca.transcripts.formats.building import (
    Content,
    answer,
    command_ran,
    count_of,
    joined,
    media,
    object_of,
    objects_of,
    parsed,
    person,
    picture,
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
    Record,
    Said,
    StoredSession,
    Unreadable,
    data_folder,
    folders_above,
    is_database_with,
    json_file,
    newest_key,
)
from nca.transcripts.formats.source import Source

_CUT = ("canceled", "error")


class Crush:
    name = "crush"
    title = "Crush"

    def knows(self, source: Source) -> bool:
        return is_database_with(source, sessions=("id", "title"), messages=("session_id", "role", "parts"))

    def sessions(self, source: Source) -> Iterable[StoredSession]:
        """Without those of subagents: each belongs to a session."""
        if source.path is None:
            return
        with foreign_database(source.path) as database:
            for row in database.rows("sessions", order=("created_at", "id")):
                if not text_of(row.get("parent_session_id")):
                    yield StoredSession(
                        agent=self.name,
                        path=source.path,
                        key=text_of(row.get("id")),
                        directory=_directory(source),
                        title=text_of(row.get("title")),
                        at=seconds_of(row.get("updated_at")),
                    )

    def read(self, source: Source, key: str = "") -> Iterator[Record]:
        return some_messages(self._records(source, key), source, self.title)

    def files(self, env: Mapping[str, str], home: Path) -> Iterable[Path]:
        """Those of the projects that Crush lists, and of the folder that one works in."""
        folders = [folder / ".crush" for folder in folders_above(env)]
        listed = object_of(json_file(data_folder(env, home) / "crush" / "projects.json"))
        folders += [
            Path(text_of(one.get("data_dir"))) for one in objects_of(listed.get("projects")) if one.get("data_dir")
        ]
        found = (folder / "crush.db" for folder in dict.fromkeys(folders) if folder.is_absolute())
        return [path for path in found if path.is_file()]

    def _records(self, source: Source, key: str) -> Iterator[Record]:
        if source.path is None:
            return
        key = key or newest_key(self.sessions(source))
        with foreign_database(source.path) as database:
            session = next(database.rows("sessions", {"id": key}), {})
            yield About(
                session=key,
                title=text_of(session.get("title")),
                directory=_directory(source),
                parent=text_of(session.get("parent_session_id")),
            )
            for row in database.rows("messages", {"session_id": key}, order=("created_at", "rowid")):
                is_summary = bool(row.get("is_summary_message")) or (
                    bool(row.get("id")) and row.get("id") == session.get("summary_message_id")
                )
                yield from _message(row, is_summary=is_summary)


FORMAT = Crush()


def _directory(source: Source) -> str:
    folder = source.path.parent if source.path else None
    return str(folder.parent) if folder and folder.name == ".crush" else ""


def _message(row: Mapping[str, Any], *, is_summary: bool) -> Iterator[Record]:
    record_id, at = text_of(row.get("id")), seconds_of(row.get("created_at"))
    place = f"message {record_id}"
    given = parsed(row.get("parts"))
    if not isinstance(given, list):
        yield Unreadable(place, "has no list of parts")
        return
    parts = [(part.get("type"), object_of(part.get("data"))) for part in objects_of(given)]
    if is_summary:
        summary = "\n\n".join(filter(None, (text_of(data.get("text")) for kind, data in parts if kind == "text")))
        yield Compacted(summary=summary, id=record_id, is_unreadable=not summary, at=at, place=place)
        return
    for message in _messages(row.get("role"), parts):
        model = text_of(row.get("model")) if message.role == "assistant" else ""
        yield Said(message=message, id=record_id, at=at, model=model, place=place)


def _messages(role: Any, parts: list[tuple[Any, dict[str, Any]]]) -> Iterator[Message]:
    content = [_shown(kind, data) for kind, data in parts]
    calls = [
        tool_call(data.get("id"), data.get("name"), data.get("input")) for kind, data in parts if kind == "tool_call"
    ]
    thoughts = [text_of(data.get("thinking")) for kind, data in parts if kind == "reasoning"]
    if role == "assistant":
        was_cut = any(kind == "finish" and data.get("reason") in _CUT for kind, data in parts)
        message = answer(content, calls, "\n\n".join(filter(None, thoughts)), was_cut=was_cut)
    elif role == "system":
        said = joined(content)
        message = Message("system", said) if said else None
    else:
        message = person(joined(content))
    if message is not None:
        yield message
    for kind, data in parts:
        if kind == "tool_result" and text_of(data.get("tool_call_id")):
            shown: Content = joined(
                [TextPart(text_of(data.get("content"))), media(data.get("data"), data.get("mime_type"))]
            )
            is_error = data.get("is_error") is True
            yield tool_result(data.get("tool_call_id"), data.get("name"), shown, is_error=is_error)


def _shown(kind: Any, data: Mapping[str, Any]) -> Part | None:
    if kind == "text":
        return TextPart(text_of(data.get("text")))
    if kind == "image_url":
        return picture(data.get("url"))
    if kind == "binary":
        return media(data.get("Data"), data.get("MIMEType"), data.get("Path"))
    if kind == "shell_command":
        return text_by("tool", command_ran(data.get("command"), data.get("output"), count_of(data.get("exit_code"))))
    return None
