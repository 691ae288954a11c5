"""The database of file changes, `files.db` beside the sessions: opening it, and removing what no session needs.

If it is damaged it is set aside, and every chat continues without its content.
"""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, closing
from pathlib import Path

from nca.config.paths import workspace_file
from nca.sessions.database import TEMPORARY
from nca.sessions.file_record import FileRecord
from nca.sessions.lock import FileLock, HeldHere
from nca.sessions.opening import Kind, open_for_reading, open_for_writing, open_in_memory, rebuild
from nca.sessions.paths import FILES, log_of, size_of
from nca.sessions.sql import scripts

_ROWS_AT_ONCE = 500
"""Rows that one transaction removes, so that no other process waits long for its own."""
_UNUSED = (
    "NOT EXISTS (SELECT 1 FROM known WHERE content = contents.number)"
    " AND NOT EXISTS (SELECT 1 FROM changes WHERE before_content = contents.number)"
    " AND NOT EXISTS (SELECT 1 FROM changes WHERE after_content = contents.number)"
)


_LOST = "changes to files before now cannot be taken back"
_KIND = Kind(0x6E63660A, scripts("files_1", "files_2"), lambda *_: _LOST, FILES)
"""`ncf` and a newline."""


class FileRecords:
    """The records of all sessions."""

    def __init__(self, store: Path | None, *, is_read_only: bool) -> None:
        """store: the sessions' database; None: in memory. Raises StoreTooNew, StoreDamaged, StoreError."""
        self.path = store.with_name(FILES) if store else None
        self._held = HeldHere()
        if self.path is None:
            self._opened = open_in_memory(_KIND, TEMPORARY)
        else:
            self._opened = (open_for_reading if is_read_only else open_for_writing)(self.path, _KIND)
        self._database, _, self._notes = self._opened

    def take_notes(self) -> tuple[str, ...]:
        """Notices for the person about the opening, once."""
        taken, self._notes = self._notes, ()
        return taken

    @staticmethod
    def exist(store: Path | None) -> bool:
        """Whether anything was ever recorded beside this store."""
        return store is not None and os.path.exists(store.with_name(FILES))

    @staticmethod
    def sizes(store: Path) -> tuple[int, int]:
        """How many bytes of the file beside this store are in use, and how many are free. Raises StoreError."""
        if not FileRecords.exist(store):
            return 0, 0
        with closing(FileRecords(store, is_read_only=True)) as records:
            [(pages, free, page_bytes)] = records._database.rows(
                "SELECT page_count, freelist_count, page_size"
                " FROM pragma_page_count, pragma_freelist_count, pragma_page_size"
            )
        return (pages - free) * page_bytes, free * page_bytes + size_of(log_of(store.with_name(FILES)))

    def vacuum(self) -> None:
        """Remove the contents that nothing refers to, and give their room back. Raises StoreError."""
        if self.path is not None:
            rebuild(self._database, self.path, self._opened.lock, self.collect)

    def of(self, session_id: str, root: Path) -> FileRecord:
        """The record of a session in a workspace (its root is a real path); one without rows if it has none."""
        return FileRecord(self._database, session_id, os.fsencode(root))

    def lock(self, root: Path, *, is_shared: bool) -> AbstractContextManager[object] | None:
        """The lock of a workspace, between processes if the record has a file; None if another holder has it."""
        if self.path is None:
            return self._held.acquire(root, is_shared=is_shared)
        return FileLock.acquire(workspace_file(self.path, root, "files"), is_shared=is_shared)

    def rewind_mark(self, root: Path) -> Path | None:
        """The file that exists while a rewind runs in a workspace, and after one that was cut off."""
        return workspace_file(self.path, root, "rewind") if self.path else None

    def forget(self, session_id: str) -> None:
        """Remove the record of a session, and the contents that no other one needs."""
        uses = "SELECT number FROM uses WHERE session = ?1"
        self._delete_in_steps("changes", f"use IN ({uses})", session_id)
        with self._database.transaction() as connection:
            connection.execute("DELETE FROM uses WHERE session = ?", (session_id,))
            unused = "NOT EXISTS (SELECT 1 FROM uses WHERE workspace = workspaces.number)"
            connection.execute(f"DELETE FROM workspaces WHERE {unused}")  # noqa: S608
        self.collect()

    def collect(self) -> None:
        """Remove the contents that nothing refers to."""
        self._delete_in_steps("contents", _UNUSED)

    def close(self) -> None:
        self._opened.close()

    def _delete_in_steps(self, table: str, condition: str, *bindings: str) -> None:
        """Delete rows by their number, a few in each transaction. Rows that have come into use meanwhile stay."""
        found = [number for (number,) in self._database.rows(f"SELECT number FROM {table} WHERE {condition}", bindings)]  # noqa: S608
        for first in range(0, len(found), _ROWS_AT_ONCE):
            numbers = ", ".join(map(str, found[first : first + _ROWS_AT_ONCE]))
            self._database.write(f"DELETE FROM {table} WHERE number IN ({numbers}) AND {condition}", bindings)  # noqa: S608
