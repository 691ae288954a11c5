"""The store's size on the disk, part by part. Nothing is written."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from nca.sessions.file_records import FileRecords
from nca.sessions.paths import archives_of, log_of, outputs_of, size_of
from nca.sessions.sql import SessionDatabase

_PARTS = {
    "summaries": "summaries",
    "views": "summaries",
    "compactions": "summaries",
    "program": "summaries",
    "passages": "search index",
}
"""Part by table; all other tables belong to the messages. Those of the full-text index begin with its name."""
_ASIDE = ("*.corrupt-*", "*.before-schema-*")
"""Copies of a database that nca made before it went on in another one."""

_LARGEST = 5


class StoreSizes(NamedTuple):
    """Bytes by part.

    unused        room in the databases that was freed and not given back
    file_history  what `/undo` needs of files
    set_aside     damaged databases, and copies from before a migration
    """

    messages: int
    search_index: int
    summaries: int
    unused: int
    file_history: int
    outputs: int
    archives: int
    set_aside: int
    aside: tuple[Path, ...]
    largest: tuple[tuple[str, int], ...]
    """Ids of the sessions with the largest messages, with bytes. The index of their words is not included."""

    @property
    def total(self) -> int:
        """The sum of all parts."""
        return sum(value for value in self if isinstance(value, int))


def sizes(database: SessionDatabase, path: Path | None) -> StoreSizes:
    """The sizes of the sessions in `database`, with the file `path` (None: in memory), and of the files beside it."""
    found = dict.fromkeys(("messages", "search index", "summaries"), 0)
    tables, unused = database.part_bytes()
    for table, size_bytes in tables:
        found[_PARTS.get(table.partition("_")[0], "messages")] += size_bytes
    kept = (found["messages"], found["search index"], found["summaries"])
    largest = tuple(
        database.rows(
            "SELECT s.id, sum(octet_length(body)) FROM messages m JOIN sessions s ON s.number = m.session"
            " GROUP BY s.id ORDER BY 2 DESC, 1 LIMIT ?",
            (_LARGEST,),
        )
    )
    if path is None:
        return StoreSizes(*kept, unused, 0, 0, 0, 0, (), largest)
    history, history_unused = FileRecords.sizes(path)
    aside = tuple(sorted(one for pattern in _ASIDE for one in path.parent.glob(pattern)))
    return StoreSizes(
        *kept,
        unused=unused + history_unused + size_of(log_of(path)),
        file_history=history,
        outputs=sum(size_of(output) for output in outputs_of(path).rglob("*") if output.is_file()),
        archives=sum(map(size_of, archives_of(path).glob("*.zip"))),
        set_aside=sum(map(size_of, aside)),
        aside=aside,
        largest=largest,
    )
