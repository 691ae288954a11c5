"""Read Kimi CLI's sessions: `context.jsonl`, which holds what the model sees now.

Roles with an underscore are notes: the system prompt, checkpoints, counts of tokens. When Kimi CLI compacts, clears or
goes back, it begins a new file and keeps the old one beside it under a number; that one can be read by itself
(MoonshotAI/kimi-cli, src/kimi_cli/soul/context.py and metadata.py).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from nca.messages import Message
from nca.transcripts.formats.building import bad_line, object_of, objects_of, some_messages, text_of
from nca.transcripts.formats.chat_rows import ChatRows, is_row
from nca.transcripts.formats.records import (
    About,
    Record,
    Said,
    StoredSession,
    Unreadable,
    chosen_folder,
    json_file,
    stored,
)
from nca.transcripts.formats.source import BadLine, Source

_ADDED = ("<system>", "<system-reminder>", "<notification")
"""How a message in the user's role begins that Kimi CLI wrote."""
_PROMPT, _NOTES = "_system_prompt", ("_checkpoint", "_usage")


class Kimi:
    name = "kimi"
    title = "Kimi CLI"

    def knows(self, source: Source) -> bool:
        return any(row.get("role") in (_PROMPT, *_NOTES) for row in source.first_rows)

    def sessions(self, source: Source) -> Iterable[StoredSession]:
        return [stored(self.name, source, directory=_directory(source))]

    def read(self, source: Source, key: str = "") -> Iterator[Record]:
        return some_messages(_records(source), source, self.title)

    def files(self, env: Mapping[str, str], home: Path) -> Iterable[Path]:
        folder = chosen_folder(env.get("KIMI_SHARE_DIR"), home) or home / ".kimi"
        return sorted((folder / "sessions").glob("*/*/context.jsonl"))


FORMAT = Kimi()


def _directory(source: Source) -> str:
    """Where the session worked: its folder is named by a digest of that, and a list of all is above."""
    if source.path is None or len(source.path.parents) < 4:
        return ""
    digest, share = source.path.parents[1].name, source.path.parents[3]
    for one in objects_of(object_of(json_file(share / "kimi.json")).get("work_dirs")):
        path = text_of(one.get("path"))
        if hashlib.md5(path.encode(), usedforsecurity=False).hexdigest() == digest:
            return path
    return ""


def _records(source: Source) -> Iterator[Record]:
    yield About(session=source.path.parent.name if source.path else "", directory=_directory(source))
    rows = ChatRows(added=_ADDED)
    for line in source.rows():
        if isinstance(line, BadLine):
            yield from bad_line(line)
            continue
        number, row = line
        place = f"line {number}"
        if row.get("role") == _PROMPT:
            if prompt := text_of(row.get("content")):
                yield Said(message=Message("system", prompt), place=place)
        elif row.get("role") in _NOTES:
            continue
        elif not is_row(row):
            yield Unreadable(place, "is a message without a known role")
        elif (message := rows.message(row)) is not None:
            yield Said(message=message, place=place)
