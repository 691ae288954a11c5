"""Read Mistral Vibe's sessions: `messages.jsonl`, with facts about the session in `meta.json` beside it.

When Vibe compacts, it goes on in a new folder that names the one before as its parent
(mistralai/mistral-vibe, vibe/core/session).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from nca.messages import Message
from nca.transcripts.formats.building import object_of, seconds_of, some_messages, text_of
from nca.transcripts.formats.chat_rows import ChatRows, is_row, most
from nca.transcripts.formats.records import About, Record, Said, StoredSession, chosen_folder, json_file, stored
from nca.transcripts.formats.source import Source


class Vibe:
    name = "vibe"
    title = "Mistral Vibe"

    def knows(self, source: Source) -> bool:
        """All but the results of tools have an id of their own."""
        said = [row for row in source.first_rows if row.get("role") != "tool"]
        return most(said, lambda row: is_row(row) and isinstance(row.get("message_id"), str))

    def sessions(self, source: Source) -> Iterable[StoredSession]:
        meta = _meta(source)
        return [
            stored(
                self.name,
                source,
                directory=text_of(object_of(meta.get("environment")).get("working_directory")),
                title=text_of(meta.get("title")),
                at=seconds_of(meta.get("end_time")),
            )
        ]

    def read(self, source: Source, key: str = "") -> Iterator[Record]:
        return some_messages(_records(source), source, self.title)

    def files(self, env: Mapping[str, str], home: Path) -> Iterable[Path]:
        folder = chosen_folder(env.get("VIBE_HOME"), home) or home / ".vibe"
        return sorted((folder / "logs" / "session").glob("*/messages.jsonl"))


FORMAT = Vibe()


def _meta(source: Source) -> dict[str, Any]:
    return object_of(json_file(source.path.with_name("meta.json"))) if source.path else {}


def _records(source: Source) -> Iterator[Record]:
    meta = _meta(source)
    yield About(
        session=text_of(meta.get("session_id")),
        title=text_of(meta.get("title")),
        directory=text_of(object_of(meta.get("environment")).get("working_directory")),
        model=text_of(meta.get("model")) or text_of(object_of(meta.get("config")).get("active_model")),
        parent=text_of(meta.get("parent_session_id")),
    )
    if prompt := text_of(object_of(meta.get("system_prompt")).get("content")):
        yield Said(message=Message("system", prompt), place="meta.json")
    yield from ChatRows().records(
        source, lambda row, message, place: Said(message=message, id=text_of(row.get("message_id")), place=place)
    )
