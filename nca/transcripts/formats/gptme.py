"""Read gptme's conversations: JSON lines of messages with times.

Tools answer as system messages, without ids; they are read as the user's, so that they stay at their place. Branches
are files of their own, and views that gptme made when it compacted: the main file holds every message
(gptme/gptme, gptme/logmanager.py and gptme/message.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from nca.transcripts.formats.chat_rows import ChatRows, is_row, most
from nca.transcripts.formats.records import About, Format, Record
from nca.transcripts.formats.row import Row
from nca.transcripts.formats.source import Source, chosen_folder, data_folder


class Gptme(Format):
    name = title = "gptme"

    def knows(self, source: Source) -> bool:
        """Plain chat messages have no time; those of others that have one are read alike."""
        return most(source.first_rows, lambda row: is_row(row) and isinstance(row.get("timestamp"), str))

    def about(self, source: Source) -> About:
        """gptme names the folder after the conversation."""
        is_own = source.path is not None and source.path.name == "conversation.jsonl"
        name = source.path.parent.name if is_own and source.path else ""
        return About(session=name, title=name)

    def records(self, source: Source, key: str) -> Iterator[Record]:
        return _Reading().lines(source)

    def files(self, env: Mapping[str, str], home: Path) -> Iterable[Path]:
        folder = chosen_folder(env.get("GPTME_LOGS_HOME"), home) or data_folder(env, home) / "gptme" / "logs"
        return sorted(folder.glob("*/conversation.jsonl"))


FORMAT = Gptme()


class _Reading(ChatRows):
    def facts(self, row: Row) -> dict[str, Any]:
        beside = row.row("metadata")
        names = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_creation_tokens")
        usage = (beside.row("usage") or beside).usage(*names, cost=beside.get("cost"), adds_cache=True)
        return {"usage": usage, "model": beside.text("model")}
