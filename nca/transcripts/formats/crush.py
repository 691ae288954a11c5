"""Read Crush's sessions: one database for each project. The first opencode, from which it comes, has the same.

A summary is a message: the model sees it and what follows
(charmbracelet/crush, internal/db/migrations, internal/message/content.go, internal/agent/agent.go).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from nca.messages import Message, Part, TextPart, ToolCall
from nca.transcripts.formats import building as make
from nca.transcripts.formats.records import About, DatabaseFormat, Reading, Record, Tables
from nca.transcripts.formats.row import Row, parsed, rows_of, texts_of
from nca.transcripts.formats.source import Source, data_folder, folders_above, row_file

_CUT = ("canceled", "error")


class Crush(DatabaseFormat):
    columns: ClassVar = {"sessions": ("id", "title"), "messages": ("session_id", "role", "parts")}

    def about_row(self, row: Row, source: Source) -> About:
        folder = source.path.parent if source.path else None
        directory = str(folder.parent) if folder and folder.name == ".crush" else ""
        given = Row(row, directory=directory)
        return About.of(given, session="id", title="title", directory="directory", parent=self.parent, at="updated_at")

    def messages(self, tables: Tables, row: Row) -> Iterator[Record]:
        reading = _Reading()
        for message in tables.rows("messages", ("created_at", "rowid"), session_id=row.text("id")):
            is_last = bool(message.get("id")) and message.get("id") == row.get("summary_message_id")
            yield from reading.message(message, is_summary=is_last or bool(message.get("is_summary_message")))

    def files(self, env: Mapping[str, str], home: Path) -> Iterable[Path]:
        """Those of the projects that Crush lists, and of the folder that one works in."""
        folders = [folder / ".crush" for folder in folders_above(env)]
        listed = row_file(data_folder(env, home) / "crush" / "projects.json").rows("projects")
        folders += [Path(one.text("data_dir")) for one in listed if one.get("data_dir")]
        found = (folder / "crush.db" for folder in dict.fromkeys(folders) if folder.is_absolute())
        return [path for path in found if path.is_file()]


FORMAT = Crush("crush")


class _Reading(Reading):
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
        for message in _messages(row.get("role"), parts):
            yield from self.said(message, model=row.text("model"))


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
