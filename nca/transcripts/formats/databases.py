"""Formats of SQLite databases; the sessions of goose and Crush, in which a message is a row with a JSON list of parts.

When goose compacts, earlier messages stay and are marked as not for the model; the summary, and a message that tells
the model of it, are marked as not for the person (block/goose, crates/goose/src/context_mgmt, conversation/message.rs).
Messages that are marked so and were not compacted were never sent: `/compact` and the line that answers it.

Crush has one database for each project. A summary is a message: the model sees it and what follows. The first opencode,
from which Crush comes, has the same tables
(charmbracelet/crush, internal/db/migrations, internal/message/content.go, internal/agent/agent.go).
"""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, ClassVar, Literal

from nca.errors import InvalidMessages
from nca.messages import Message, Part, TextPart, ToolCall
from nca.sessions.foreign_rows import MAGIC, ForeignDatabase, foreign_database, foreign_tables
from nca.transcripts.formats import building as make
from nca.transcripts.formats.records import About, Format, Live, Reading, Record, StoredSession, facts
from nca.transcripts.formats.row import Row, list_of, parsed, row_of, rows_of, texts_of
from nca.transcripts.formats.source import Source, chosen_folder, data_folder, folders_above, row_file
from nca.words import Source as Author


class Tables:
    """The tables of a database of another program."""

    def __init__(self, database: ForeignDatabase) -> None:
        self._database = database

    def rows(
        self, table: str, order: Sequence[str] = ("id",), *, columns: Sequence[str] = (), **where: Any
    ) -> Iterator[Row]:
        """As `ForeignDatabase.rows`."""
        return map(Row, self._database.rows(table, where, columns=columns, order=order))

    def one(self, table: str, **where: Any) -> Row:
        """An empty one if there is none."""
        return next(self.rows(table, **where), Row())


@contextmanager
def tables_of(source: Source) -> Iterator[Tables]:
    """The tables of a file that is a database. Raises as `foreign_database` does."""
    assert source.path is not None  # no bytes are known as a database
    with foreign_database(source.path) as database:
        yield Tables(database)


class DatabaseFormat(Format):
    """A format of SQLite databases with many sessions, each a row of a table.

    columns  the tables, and the columns that tell the format
    table    the table of sessions, in the order of `order`
    parent   its column that names the session of a subagent's
    """

    columns: ClassVar[Mapping[str, Sequence[str]]]
    table = "sessions"
    order: tuple[str, ...] = ("created_at", "id")
    parent = "parent_session_id"

    def knows(self, source: Source) -> bool:
        return is_database_with(source, **self.columns)

    def is_own(self, row: Row) -> bool:
        """Whether a row is a session of the person's: a subagent's belongs to another session."""
        return not row.text(self.parent)

    def about_row(self, row: Row, source: Source) -> About:
        """The facts about the session of a row."""
        return facts(self.name, row)

    @abstractmethod
    def messages(self, tables: Tables, row: Row) -> Iterable[Record]:
        """The records of the session of a row."""

    def sessions(self, source: Source) -> Iterable[StoredSession]:
        with tables_of(source) as tables:
            for row in filter(self.is_own, tables.rows(self.table, self.order)):
                about, key, path = self.about_row(row, source), row.name("id"), source.path or Path()
                directory, title = about.directory, about.title
                yield StoredSession(agent=self.name, path=path, key=key, directory=directory, title=title, at=about.at)

    def records(self, source: Source, key: str) -> Iterable[Record]:
        key = key or self.newest_key(source)
        with tables_of(source) as tables:
            row = tables.one(self.table, id=key) or Row(id=key)
            yield self.about_row(row, source)
            yield from self.messages(tables, row)


def is_database_with(source: Source, **tables: Sequence[str]) -> bool:
    """Whether the file is a SQLite database with these tables and columns. Never raises."""
    try:
        if source.path is None or not source.head.startswith(MAGIC):
            return False
        found = foreign_tables(source.path)
        return all(table in found and set(columns) <= set(found[table]) for table, columns in tables.items())
    except InvalidMessages:
        return False


_NOT_THE_PERSONS = ("sub_agent", "hidden")
_COMPACTED = "Your context was compacted"
"""The beginning of the message after a summary."""
_CUT = ("canceled", "error")


class Goose(DatabaseFormat):
    columns: ClassVar = {"sessions": ("id", "working_dir"), "messages": ("session_id", "role", "content_json")}

    def is_own(self, row: Row) -> bool:
        return row.get("session_type") not in _NOT_THE_PERSONS

    def about_row(self, row: Row, source: Source) -> About:
        return facts(self.name, Row(row, id=row.name("id"), model=parsed(row.get("model_config_json"))))

    def messages(self, tables: Tables, row: Row) -> Iterator[Record]:
        return _GooseReading().of_rows(tables.rows("messages", session_id=row.name("id")))

    def files(self, env: Mapping[str, str], home: Path) -> Iterable[Path]:
        own = chosen_folder(env.get("GOOSE_PATH_ROOT"), home)
        folders = [
            own / "data" if own else data_folder(env, home) / "goose",
            home / "Library" / "Application Support" / "Block" / "goose",
        ]
        return [path for folder in folders if os.path.isfile(path := folder / "sessions" / "sessions.db")]


class Crush(DatabaseFormat):
    columns: ClassVar = {"sessions": ("id", "title"), "messages": ("session_id", "role", "parts")}

    def about_row(self, row: Row, source: Source) -> About:
        folder = source.path.parent if source.path else None
        directory = str(folder.parent) if folder and folder.name == ".crush" else ""
        return facts(self.name, Row(row, directory=directory))

    def messages(self, tables: Tables, row: Row) -> Iterator[Record]:
        reading = _CrushReading()
        for message in tables.rows("messages", ("created_at", "rowid"), session_id=row.text("id")):
            is_last = bool(message.get("id")) and message.get("id") == row.get("summary_message_id")
            yield from reading.message(message, is_summary=is_last or bool(message.get("is_summary_message")))

    def files(self, env: Mapping[str, str], home: Path) -> Iterable[Path]:
        """Those of the projects that Crush lists, and of the folder that one works in."""
        folders = [folder / ".crush" for folder in folders_above(env)]
        listed = row_file(data_folder(env, home) / "crush" / "projects.json").rows("projects")
        folders += [Path(one.text("data_dir")) for one in listed if one.get("data_dir")]
        found = (folder / "crush.db" for folder in dict.fromkeys(folders) if folder.is_absolute())
        return [path for path in found if os.path.isfile(path)]


GOOSE, CRUSH = Goose("goose"), Crush("crush")


class _GooseReading(Reading):
    def __init__(self) -> None:
        self._seen: list[str] = []
        """The messages that the model still sees; `_unseen`: those since the last compaction that it does not."""
        self._unseen: list[str] = []
        self._ids: list[str] = []

    def of_rows(self, rows: Iterator[Row]) -> Iterator[Record]:
        for row, following in pairwise(chain(rows, [Row()])):
            yield from self._message(row, following)
        if self._unseen:
            yield Live(frozenset(self._ids).difference(self._unseen))

    def _message(self, row: Row, following: Row) -> Iterator[Record]:
        self.id, self.at = row.text("message_id") or row.name("id"), row.seconds("created_timestamp")
        self.place = f"message {self.id}"
        given = parsed(row.get("content_json"))
        if not isinstance(given, list):
            yield self.unreadable("has no list of contents")
            return
        blocks = rows_of(given)
        beside = row_of(parsed(row.get("metadata_json")))
        is_hidden = beside.get("userVisible") is False
        self._ids.append(self.id)
        if is_hidden and row.get("role") == "user" and _announces_summary(following):
            yield self.summarized(_text(blocks), kept=tuple(self._seen))
            self._seen, self._unseen = [*self._seen, self.id], []
            return
        (self._unseen if beside.get("agentVisible") is False else self._seen).append(self.id)
        names = ("inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens")
        usage = beside.row("usage").usage(*names, cost=beside.value("usage", "cost"))
        model, is_aside = beside.text("inference", "requestedModel"), is_hidden and _says_compacted(blocks)
        messages = _said(row.get("role"), blocks, "nca" if is_hidden else "")
        yield from self.said(*messages, usage=usage, model=model, is_aside=is_aside)


def _said(role: Any, blocks: list[Row], source: Author | Literal[""]) -> list[Message | None]:
    """The results, then what was said."""
    found = make.Blocks()
    for block in blocks:
        match block.get("type"):
            case "toolRequest" | "frontendToolRequest":
                # A call that goose could not read has an error in place of its value.
                value = block.row("toolCall", "value")
                found.add(make.tool_call(block.get("id"), value.text("name") or "unreadable", value.get("arguments")))
            case "toolResponse":
                found.add(_result(block))
            case "thinking" | "reasoning":
                found.thoughts.append(block.first("thinking", "text"))
            case _:
                found.add(_shown(block))
    return [*found.results, found.answer() if role == "assistant" else make.person(found.said, source)]


def _result(block: Row) -> Message:
    given = block.row("toolResult")
    value = given.get("value")
    content = list_of(value) or list_of(row_of(value).get("content"))
    parts = [*map(_shown, rows_of(content)), TextPart(make.shown(given.get("error")))]
    failed = given.get("status") == "error" or row_of(value).get("isError") is True
    return make.tool_result(block.name("id") or "unknown", "", make.joined(parts), is_error=failed)


def _shown(block: Row) -> Part | None:
    if block.get("type") == "image":
        return make.picture(block.get("data"), block.get("mimeType"))
    return TextPart(block.text("text") or block.text("resource", "text"))


def _text(blocks: Iterable[Row]) -> str:
    return texts_of(block for block in blocks if block.get("type") == "text")


def _says_compacted(blocks: Iterable[Row]) -> bool:
    return _text(blocks).startswith(_COMPACTED)


def _announces_summary(row: Row) -> bool:
    return row.get("role") == "assistant" and _says_compacted(rows_of(parsed(row.get("content_json"))))


class _CrushReading(Reading):
    def message(self, row: Row, *, is_summary: bool) -> Iterator[Record]:
        self.id, self.at = row.text("id"), row.seconds("created_at")
        self.place = f"message {self.id}"
        given = parsed(row.get("parts"))
        if not isinstance(given, list):
            yield self.unreadable("has no list of parts")
            return
        parts = [(part.get("type"), part.row("data")) for part in rows_of(given)]
        if is_summary:
            yield self.summarized(texts_of(data for kind, data in parts if kind == "text"))
            return
        yield from self.said(*_messages(row.get("role"), parts), model=row.text("model"))


def _messages(role: Any, parts: list[tuple[Any, Row]]) -> list[Message | None]:
    """What was said, then the results."""
    found = make.Blocks(thoughts=[data.text("thinking") for kind, data in parts if kind == "reasoning"])
    for kind, data in parts:
        found.add(_read(kind, data))
    if role == "assistant":
        was_cut = any(kind == "finish" and data.get("reason") in _CUT for kind, data in parts)
        return [found.answer(was_cut=was_cut), *found.results]
    return [found.system() if role == "system" else make.person(found.said), *found.results]


def _read(kind: Any, data: Row) -> Part | ToolCall | Message | None:
    match kind:
        case "text":
            return TextPart(data.text("text"))
        case "image_url":
            return make.picture(data.get("url"))
        case "binary":
            return make.media(data.get("Data"), data.get("MIMEType"), data.get("Path"))
        case "shell_command":
            ran = make.command_ran(data.get("command"), data.get("output"), data.count("exit_code"))
            return make.text_by("tool", ran)
        case "tool_call":
            return make.tool_call(data.get("id"), data.get("name"), data.get("input"))
        case "tool_result" if call_id := data.text("tool_call_id"):
            shown = make.joined([TextPart(data.text("content")), make.media(data.get("data"), data.get("mime_type"))])
            return make.tool_result(call_id, data.get("name"), shown, is_error=data.get("is_error") is True)
    return None
