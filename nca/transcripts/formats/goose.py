"""Read goose's sessions: one database of all of them.

When goose compacts, earlier messages stay and are marked as not for the model; the summary, and a message that tells
the model of it, are marked as not for the person (block/goose, crates/goose/src/context_mgmt, conversation/message.rs).
Messages that are marked so and were not compacted were never sent: `/compact` and the line that answers it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, ClassVar, Literal

from nca.messages import Message, Part, TextPart, ToolCall
from nca.transcripts.formats import building as make
from nca.transcripts.formats.records import About, DatabaseFormat, Live, Reading, Record, Tables
from nca.transcripts.formats.row import Row, list_of, parsed, row_of, rows_of, texts_of
from nca.transcripts.formats.source import Source as Given
from nca.transcripts.formats.source import chosen_folder, data_folder
from nca.words import Source

_NOT_THE_PERSONS = ("sub_agent", "hidden")
_COMPACTED = "Your context was compacted"
"""The beginning of the message after a summary."""


class Goose(DatabaseFormat):
    columns: ClassVar = {"sessions": ("id", "working_dir"), "messages": ("session_id", "role", "content_json")}

    def is_own(self, row: Row) -> bool:
        return row.get("session_type") not in _NOT_THE_PERSONS

    def about_row(self, row: Row, source: Given) -> About:
        given = Row(row, id=row.name("id"), model=parsed(row.get("model_config_json")))
        places = {"session": "id", "title": "name description", "directory": "working_dir", "parent": self.parent}
        return About.of(given, at="updated_at", model="model.model_name model.model", **places)

    def messages(self, tables: Tables, row: Row) -> Iterator[Record]:
        return _Reading().of_rows(tables.rows("messages", session_id=row.name("id")))

    def files(self, env: Mapping[str, str], home: Path) -> Iterable[Path]:
        own = chosen_folder(env.get("GOOSE_PATH_ROOT"), home)
        folders = [
            own / "data" if own else data_folder(env, home) / "goose",
            home / "Library" / "Application Support" / "Block" / "goose",
        ]
        return [path for folder in folders if (path := folder / "sessions" / "sessions.db").is_file()]


FORMAT = Goose("goose")


class _Reading(Reading):
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
        for message in _messages(row.get("role"), blocks, "nca" if is_hidden else ""):
            model, is_aside = beside.text("inference", "requestedModel"), is_hidden and _says_compacted(blocks)
            yield from self.said(message, usage=usage, model=model, is_aside=is_aside)


def _messages(role: Any, blocks: list[Row], source: Source | Literal[""]) -> list[Message | None]:
    """The results, then what was said."""
    found = make.Blocks()
    for block in blocks:
        match block.get("type"):
            case "toolRequest" | "frontendToolRequest":
                found.add(_call(block))
            case "toolResponse":
                found.add(_result(block))
            case "thinking" | "reasoning":
                found.thoughts.append(block.first("thinking", "text"))
            case _:
                found.add(_shown(block))
    return [*found.results, found.answer() if role == "assistant" else make.person(found.said, source)]


def _call(block: Row) -> ToolCall | None:
    """A call that goose could not read has an error in place of its value."""
    value = block.row("toolCall", "value")
    return make.tool_call(block.get("id"), value.text("name") or "unreadable", value.get("arguments"))


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
