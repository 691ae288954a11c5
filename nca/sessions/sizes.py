"""The store's size on the disk, part by part; and giving back the room that is not needed.

All that is kept stays, byte for byte. Tool outputs that were too large for the context are in `outputs/ID/` beside the
database. A folder goes with its session unless another session, such as a fork, still refers to a file in it.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Container
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from nca.errors import StoreError
from nca.safe_files import paths_below
from nca.sessions.database import Database
from nca.sessions.file_records import FileRecords
from nca.sessions.lock import FileLock
from nca.sessions.opening import rebuild
from nca.sessions.paths import archives_of, log_of, outputs_of, size_of
from nca.sessions.sql import SessionDatabase

_PARTS = dict.fromkeys(("summaries", "views", "compactions", "program"), "summaries") | {"passages": "search index"}
"""Part by table; all other tables belong to the messages. Those of the full-text index begin with its name."""
_ASIDE = ("*.corrupt-*", "*.before-schema-*")
"""Copies of a database that nca made before it went on in another one."""

_LARGEST = 5
_OUTPUTS = "outputs/"
_NAMED_OUTPUTS = re.compile(r"outputs/([\w-]+)/")


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
    aside = tuple(sorted(one for pattern in _ASIDE for one in paths_below(path.parent, pattern)))
    return StoreSizes(
        *kept,
        unused=unused + history_unused + size_of(log_of(path)),
        file_history=history,
        outputs=sum(size_of(output) for output in paths_below(outputs_of(path), "**/*") if os.path.isfile(output)),
        archives=sum(map(size_of, paths_below(archives_of(path), "*.zip"))),
        set_aside=sum(map(size_of, aside)),
        aside=aside,
        largest=largest,
    )


def outputs_with(database: SessionDatabase, session_id: str) -> set[str]:
    """The folders of outputs that may go with a session: its own, and those that its messages name, as a fork's do."""
    bodies = database.rows(
        "SELECT body FROM messages WHERE session = (SELECT number FROM sessions WHERE id = ?) AND instr(body, ?) > 0",
        (session_id, _OUTPUTS),
    )
    return {session_id, *(name for (body,) in bodies for name in _NAMED_OUTPUTS.findall(body))}


def sweep_outputs(database: SessionDatabase, store: Path | None, names: Container[str] | None = None) -> None:
    """Delete the folders that belong to no session and that no message refers to.

    names: only these, as another store in the folder has its outputs there too
    """
    if store is None:
        return
    try:
        folders = [entry for entry in outputs_of(store).iterdir() if entry.is_dir() and not entry.is_symlink()]
    except OSError:  # no session has saved an output yet
        return
    for path in folders:
        if (names is None or path.name in names) and not database.row(
            "SELECT 1 WHERE EXISTS (SELECT 1 FROM sessions WHERE id = ?1)"
            " OR EXISTS (SELECT 1 FROM messages WHERE instr(body, ?2) > 0)",
            (path.name, f"{path.parent.name}/{path.name}/"),
        ):
            with suppress(OSError):  # what cannot be deleted now is tried again by `vacuum`
                shutil.rmtree(path)


def vacuum(database: SessionDatabase, path: Path | None, lock: FileLock | None) -> None:
    """Rebuild the sessions' database, and delete the outputs that no session refers to. Raises StoreError."""
    if not isinstance(database, Database):
        raise StoreError("PostgreSQL gives back room by itself", advice="There is nothing to do.")
    if path is None:
        return

    def tidy() -> None:
        sweep_outputs(database, path)
        database.write("INSERT INTO passages (passages) VALUES ('optimize')")

    rebuild(database, path, lock, tidy)
