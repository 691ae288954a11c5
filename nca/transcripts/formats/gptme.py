"""Read gptme's conversations: JSON lines of messages with times.

Tools answer as system messages, without ids; they are read as the user's, so that they stay at their place. Branches
are files of their own, and views that gptme made when it compacted: the main file holds every message
(gptme/gptme, gptme/logmanager.py and gptme/message.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from nca.messages import Message, Usage
from nca.transcripts.formats.building import cost_of, count_of, object_of, seconds_of, some_messages, text_of
from nca.transcripts.formats.chat_rows import ChatRows, is_row, most
from nca.transcripts.formats.records import About, Record, Said, StoredSession, chosen_folder, data_folder, stored
from nca.transcripts.formats.source import Source


class Gptme:
    name = "gptme"
    title = "gptme"

    def knows(self, source: Source) -> bool:
        """Plain chat messages have no time; those of others that have one are read alike."""
        return most(source.first_rows, lambda row: is_row(row) and isinstance(row.get("timestamp"), str))

    def sessions(self, source: Source) -> Iterable[StoredSession]:
        return [stored(self.name, source, title=_name(source))]

    def read(self, source: Source, key: str = "") -> Iterator[Record]:
        return some_messages(_records(source), source, self.title)

    def files(self, env: Mapping[str, str], home: Path) -> Iterable[Path]:
        folder = chosen_folder(env.get("GPTME_LOGS_HOME"), home) or data_folder(env, home) / "gptme" / "logs"
        return sorted(folder.glob("*/conversation.jsonl"))


FORMAT = Gptme()


def _name(source: Source) -> str:
    """gptme names the folder after the conversation."""
    is_own = source.path is not None and source.path.name == "conversation.jsonl"
    return source.path.parent.name if is_own and source.path else ""


def _records(source: Source) -> Iterator[Record]:
    yield About(session=_name(source), title=_name(source))
    yield from ChatRows().records(source, _said)


def _said(row: Mapping[str, Any], message: Message, place: str) -> Said:
    beside, at = object_of(row.get("metadata")), seconds_of(row.get("timestamp"))
    if message.role != "assistant":
        return Said(message=message, at=at, place=place)
    return Said(message=message, at=at, usage=_usage(beside), model=text_of(beside.get("model")), place=place)


def _usage(beside: Mapping[str, Any]) -> Usage | None:
    row = object_of(beside.get("usage")) or beside
    read, written = count_of(row.get("cache_read_tokens")), count_of(row.get("cache_creation_tokens"))
    prompt, completion = count_of(row.get("input_tokens")) + read + written, count_of(row.get("output_tokens"))
    return Usage(prompt, completion, read, written, cost=cost_of(beside.get("cost"))) if prompt or completion else None
