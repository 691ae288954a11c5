"""The store: all sessions of a person in one database."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from nca.config.paths import PathLike, read_path
from nca.errors import SessionLocked, SessionNotFound, StoreError
from nca.humanize import check_kind
from nca.messages import clean_text
from nca.safe_files import paths_below
from nca.sessions import results, transfer
from nca.sessions import session as rows_of
from nca.sessions import store_errors as faults
from nca.sessions.file_records import FileRecords
from nca.sessions.lock import FileLock
from nca.sessions.opening import open_for_reading, open_for_writing, open_in_memory
from nca.sessions.past_sessions import MOST
from nca.sessions.paths import archives_of, outputs_of
from nca.sessions.results import SNIPPET_CHARS, Hit, SessionHit
from nca.sessions.session import INFO, IS_EMPTY, Kind, Session, SessionInfo, SessionPreview, as_info, as_name
from nca.sessions.sizes import StoreSizes, outputs_with, sizes, sweep_outputs, vacuum
from nca.sessions.sql import Lease, SessionDatabase, Whose
from nca.sessions.transfer import SessionCopy
from nca.sessions.usage import UNREPORTED, Learned
from nca.sessions.view_rows import ProgramViews

Infos = list[SessionInfo]
Hits = list[Hit]
SessionHits = list[SessionHit]


class Store:
    """All sessions, and the views of programs. `notes` tell the person of a damaged file that was set aside."""

    def __init__(
        self,
        database: SessionDatabase,
        path: Path | None,
        *,
        is_read_only: bool,
        lock: FileLock | None = None,
        notes: tuple[str, ...] = (),
        url: str = "",
    ) -> None:
        self._database = database
        self._lock = lock
        self._open: dict[str, Lease | None] = {}
        self._file_records: FileRecords | None = None
        self._opening_files = threading.Lock()
        self.path, self.url = path, url
        self.is_read_only, self.notes = is_read_only, notes
        self.program_views = ProgramViews(self._database, self._refuse_reader)

    @classmethod
    def open(
        cls,
        path: PathLike | None,
        *,
        read_only: bool = False,
        url: str = "",
        tell: Callable[[str], None] = lambda text: None,
        of_team: bool = False,
    ) -> Store:
        """Open the store at `path`, or one in memory. `read_only` neither writes nor locks; a missing file is empty.

        url   of the PostgreSQL database that holds the sessions; then only what belongs to this machine is beside
              `path`: complete tool outputs, records of files, archives
        tell  says that a lost connection is tried again
        of_team  the whole team's sessions can be read, not only one's own
        Raises StoreTooNew, StoreDamaged (if the file cannot be set aside), StoreError ("cannot write …").
        """
        path = None if path is None else read_path(path, "path").absolute()
        if url:
            from nca.sessions.postgres import connect

            store = cls(connect(url, path, tell, of_team=of_team), path, is_read_only=read_only, url=url)
            if not read_only:
                store._database.deliver()
            return store
        opens = open_for_reading if read_only else open_for_writing
        opened = opens(path) if path else open_in_memory()
        return cls(opened.database, path, is_read_only=read_only, lock=opened.lock, notes=opened.notes)

    def create(self, *, directory: str, model: str, name: str = "", kind: Kind = "chat") -> Session:
        """Create a session and open it for writing."""
        self._refuse_reader()
        session_id = rows_of.new_id(self._database, self.archive_of)
        self._acquire(session_id)
        undo, lease = partial(self._release, session_id), self._open[session_id]
        with faults.on_failure(undo), self._database.transaction(lease) as connection:
            empty = transfer.new_copy((), directory=directory, name=name, model=model, kind=kind)
            number = transfer.write(self._database, connection, session_id, empty)
        return self._session(session_id, number)

    def open_session(self, id_or_prefix: str, *, read_only: bool = False) -> Session:
        """Open a session. For writing, first complete what a killed process left open; see `Session.recovered`.

        Raises SessionNotFound, SessionLocked (never for a reader), StoreError.
        """
        session_id, number = self._find(id_or_prefix)
        if read_only:
            return Session(self._database, number)
        self._refuse_reader()
        self._database.deliver()
        self._acquire(session_id)
        session = self._session(session_id, number)
        with faults.on_failure(session.close):
            # Another process may have removed it before we had the lock, and a new session may have its number.
            if not self._database.row("SELECT 1 FROM sessions WHERE id = ? AND number = ?", (session_id, number)):
                raise SessionNotFound(f"Session {session_id} has just been removed")
            session.recover()
        return session

    def list(self, limit: int | None = 50) -> Infos:
        """The last `limit` sessions, most recently used first; all of them for None. Raises UsageError."""
        check_kind(limit, int | None, "limit", "a number of sessions, or None for all")
        rows = self._database.rows(f"{INFO} ORDER BY touched DESC LIMIT ?", (MOST if limit is None else limit,))
        return [as_info(row) for row in rows]

    def models_that_answered(self, sessions: int) -> Sequence[str]:
        """The models that answered in the last so many sessions, the newest answer first."""
        newest = "SELECT number FROM sessions ORDER BY touched DESC LIMIT ?"
        answered = f"SELECT model FROM usage WHERE seq <> ? AND session IN ({newest}) GROUP BY model"  # noqa: S608
        return [name for (name,) in self._database.rows(f"{answered} ORDER BY max(at) DESC", (UNREPORTED, sessions))]

    def whose(self, ids: Sequence[str]) -> dict[str, Whose]:
        """Who began these sessions, and on which machine; empty if the store is a file."""
        return self._database.whose(ids)

    def latest(self, directory: str | None = None, kind: Kind | None = "chat") -> SessionInfo | None:
        """The most recently used session with messages, in a directory or anywhere; of this kind before others."""
        somewhere = "" if directory is None else " AND directory = ?"
        row = self._database.row(
            f"{INFO} WHERE NOT {IS_EMPTY}{somewhere} ORDER BY kind <> ?, touched DESC LIMIT 1",
            (kind,) if directory is None else (clean_text(directory), kind),
        )
        return as_info(row) if row else None

    def find(self, id_or_prefix: str) -> SessionInfo:
        """Find a session by id, beginning of an id, or whole name. Raises SessionNotFound."""
        row = self._database.row(f"{INFO} WHERE number = ?", (self._find(id_or_prefix)[1],))
        if row is None:
            raise SessionNotFound(f"Session {id_or_prefix} has just been removed")
        return as_info(row)

    def preview(self, id_or_prefix: str) -> SessionPreview:
        """The last question and answer of a session, and its size. Raises SessionNotFound."""
        return rows_of.load_preview(self._database, self._find(id_or_prefix)[1])

    def search(self, question: str, limit: int = 10, *, chars: int = SNIPPET_CHARS, with_aside: bool = True) -> Hits:
        """The best messages of all sessions for a question, best first. Any text is valid.

        with_aside: also those that are no part of their conversation: rewound, or asked beside it
        """
        return results.find(self._database, question, None, limit, chars=chars, with_aside=with_aside)

    def search_sessions(self, question: str, limit: int = 10) -> SessionHits:
        """The best sessions for a question, each with its best messages."""
        return results.find_sessions(self._database, question, limit)

    def delete(self, id_or_prefix: str) -> None:
        """Delete a session, its saved outputs and its archive permanently. Raises SessionNotFound, SessionLocked."""
        self._refuse_reader()
        session_id, _ = self._find(id_or_prefix)
        self._delete(session_id)
        self.delete_archive(session_id)

    def delete_empty(self, session_id: str | None = None) -> None:
        """Delete this session if it has no messages; for None all that have neither messages nor a name nor a pin.

        Those that a process has open stay.
        """
        self._refuse_reader()
        which, bound = ("name = '' AND is_pinned = 0", ()) if session_id is None else ("id = ?", (session_id,))
        for (found,) in self._database.rows(f"SELECT id FROM sessions WHERE {which} AND {IS_EMPTY}", bound):  # noqa: S608
            with suppress(SessionLocked):
                self._delete(found, IS_EMPTY)

    def delete_kept(self, session_id: str, keep: Callable[[SessionCopy], SessionCopy]) -> SessionInfo:
        """Delete a session once `keep` has stored its copy and returned the copy that it reads back.

        The record of files stays. Raises SessionNotFound, SessionLocked, StoreDamaged if the copy is not the whole
        session, and what `keep` raises; then nothing is deleted.
        """
        with self.open_session(session_id) as session:
            copy = self.exact_copy_of(session_id)
            if keep(copy) != copy:
                raise transfer.not_whole(session_id)
            outputs = outputs_with(self._database, session_id)
            session.write("DELETE FROM sessions WHERE number = ?", session.number)
        sweep_outputs(self._database, self.path, outputs)
        return copy.info

    def sizes(self) -> StoreSizes:
        """The sessions' size on the disk, part by part. Raises StoreError."""
        return sizes(self._database, self.path)

    def vacuum(self) -> None:
        """Give back the room that is not needed. Raises StoreError if another process has the store open."""
        self._refuse_reader()
        vacuum(self._database, self.path, self._lock)
        if self.has_file_records:
            self.file_records.vacuum()

    def archive_of(self, session_id: str) -> Path | None:
        """The path of a session's archive, if it has one; None for a store in memory."""
        return archives_of(self.path) / f"{session_id}.zip" if self.path else None

    def delete_archive(self, session_id: str) -> None:
        """Delete a session's archive, if it has one, and what a kill left of another."""
        if (archive := self.archive_of(session_id)) is not None:
            with faults.explained(archive, "delete"):
                for left in (archive, *paths_below(archive.parent, f".{archive.name}.*.tmp")):
                    left.unlink(missing_ok=True)

    @property
    def has_file_records(self) -> bool:
        """Whether anything was ever recorded of files."""
        return self._file_records is not None or FileRecords.exist(self.path)

    @property
    def file_records(self) -> FileRecords:
        """The record of files. It is opened on first use. Raises StoreTooNew, StoreError."""
        with self._opening_files:
            if self._file_records is None:
                self._file_records = FileRecords(self.path, is_read_only=self.is_read_only)
            return self._file_records

    def outputs_folder(self, session_id: str) -> Path | None:
        """The folder of tool outputs that were too large for the context; None for a store in memory."""
        return outputs_of(self.path) / session_id if self.path else None

    def refuse_held(self, id_or_prefix: str) -> None:
        """Raise SessionLocked, which names the process, if the session is open for writing anywhere."""
        session_id, _ = self._find(id_or_prefix)
        self._acquire(session_id)
        self._release(session_id)

    @property
    def can_take_over(self) -> bool:
        """Whether a session can be taken from a process that has it open."""
        return self._database.can_take_over

    def take_over(self, id_or_prefix: str) -> None:
        """Take a session from the process that has it open; its next write raises SessionLocked."""
        session_id, _ = self._find(id_or_prefix)
        self._open[session_id] = self._database.hold(session_id, takes_over=True)
        self._release(session_id)

    def copy_of(self, id_or_prefix: str) -> SessionCopy:
        """A copy of everything in a session, open or not. Raises SessionNotFound, StoreDamaged."""
        return transfer.read(Session(self._database, self._find(id_or_prefix)[1]))

    def exact_copy_of(self, id_or_prefix: str) -> SessionCopy:
        """The same, to the byte. Raises StoreDamaged if no copy can hold all of the session."""
        return transfer.read_exactly(Session(self._database, self._find(id_or_prefix)[1]))

    def add(self, copy: SessionCopy, *, keeps_id: bool = False, forked_from: int | None = None) -> SessionInfo:
        """Add a copy as a session, in one transaction. Raises StoreError and changes nothing.

        keeps_id     the same session: under its own id, which no session of the store may have, with its title and when
                     it was used. Else a new one, which is used now
        forked_from  the number of the session that it was forked from
        """
        self._refuse_reader()
        if not keeps_id:
            copy = transfer.as_new(copy, is_fork=forked_from is not None)
        session_id = copy.info.id if keeps_id else rows_of.new_id(self._database, self.archive_of)
        try:
            is_added = transfer.add(self._database, session_id, copy, forked_from=forked_from)
        except OverflowError as error:
            raise StoreError("The session holds a number that is too large to be stored") from error
        if not is_added:
            shows = f"`nca sessions show {session_id}` shows it."
            raise StoreError(f"Session {session_id} is already in the store", advice=shows)
        return self.find(session_id)

    def imported(self) -> Infos:
        """The sessions that were imported from other agents, most recently used first."""
        rows = self._database.rows(f"{INFO} WHERE origin <> '' ORDER BY touched DESC")
        return [info for info in map(as_info, rows) if info.origin]

    def has_gone_on(self, session_id: str) -> bool:
        """Whether anything was added to an imported session, or undone in it, since it was imported."""
        with self.open_session(session_id, read_only=True) as session:
            return transfer.has_gone_on(session)

    def extend(self, session_id: str, copy: SessionCopy) -> SessionInfo:
        """Add to an imported session what its file has more by now; see `transfer.extend`. Raises SessionLocked."""
        self._refuse_reader()
        session_id, number = self._find(session_id)
        self._acquire(session_id)
        with self._session(session_id, number) as session:
            transfer.extend(session, copy)
        return self.find(session_id)

    def fork(self, id_or_prefix: str, *, at: int | None = None, name: str = "") -> SessionInfo:
        """Copy a session, whole or up to message `at` (see `transfer.cut`), as an independent session.

        Usage and cost stay with the original. Raises SessionNotFound, UsageError, StoreError.
        """
        self._refuse_reader()
        session_id, number = self._find(id_or_prefix)
        copy = self.copy_of(session_id) if at is None else transfer.cut(self.copy_of(session_id), at)
        return self.add(transfer.as_fork(copy, as_name(name)), forked_from=number)

    def expired(self, retention_days: int, max_sessions: int) -> Sequence[str]:
        """The ids of the sessions that are too old or too many, oldest first. 0: no limit.

        Sessions that are named, pinned or forked, or have pinned messages, are never among them and do not count.
        Age is the number of days on which other sessions were used since, so a wrong clock adds one at most.
        """
        return rows_of.expired(self._database, retention_days, max_sessions)

    def learned(self, model: str) -> Learned:
        """The calibration learned from a model's reports; 0 samples if nothing is known."""
        sql = "SELECT ratio, window_tokens, samples, at FROM learned WHERE model = ?"
        row = self._database.row(sql, (clean_text(model),))
        return Learned(*row) if row else Learned()

    def save_learned(self, model: str, lesson: Learned) -> None:
        """Replace the calibration of a model. Durable on return."""
        self._refuse_reader()
        self._database.write(
            "INSERT INTO learned VALUES (?, ?, ?, ?, ?) ON CONFLICT (model) DO UPDATE SET ratio = excluded.ratio,"
            " window_tokens = excluded.window_tokens, samples = excluded.samples, at = excluded.at",
            (clean_text(model), lesson.ratio, lesson.window_tokens, lesson.samples, lesson.at or time.time()),
        )

    def back_up(self, target: Path) -> None:
        """Copy the whole store into a new private file. Raises StoreError if that exists."""
        self._database.back_up(target)

    def close(self) -> None:
        """Close the database and release every session that is still open."""
        try:
            self._database.close()
        finally:
            if self._file_records is not None:
                with suppress(StoreError):  # whoever recorded files has been told
                    self._file_records.close()
            for session_id in tuple(self._open):
                self._release(session_id)
            if self._lock is not None:
                self._lock.release()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _find(self, prefix: str) -> tuple[str, int]:
        return rows_of.find_session(self._database, prefix, self.archive_of)

    def _session(self, session_id: str, number: int) -> Session:
        lease, close = self._open[session_id], partial(self._close_session, session_id)
        return Session(self._database, number, is_read_only=False, lease=lease, on_close=close)

    def _acquire(self, session_id: str) -> None:
        lease = self._database.hold(session_id)
        if lease is None and session_id in self._open:
            raise SessionLocked(f"Session {session_id} is already open")
        self._open[session_id] = lease

    def _release(self, session_id: str) -> None:
        if (lock := self._open.pop(session_id, None)) is not None:
            lock.release(remove=True)

    def _close_session(self, session_id: str) -> None:
        self._release(session_id)
        self._database.deliver()

    def _delete(self, session_id: str, condition: str = "TRUE") -> None:
        self._acquire(session_id)
        try:
            outputs = outputs_with(self._database, session_id)
            with self._database.transaction(self._open[session_id]) as connection:
                deletes = f"DELETE FROM sessions WHERE id = ? AND {condition} RETURNING id"  # noqa: S608
                is_gone = connection.execute(deletes, (session_id,)).get is not None
            sweep_outputs(self._database, self.path, outputs)
            if is_gone and self.has_file_records:
                with suppress(StoreError):  # a damaged record of files keeps no session
                    self.file_records.forget(session_id)
        finally:
            self._release(session_id)

    def _refuse_reader(self) -> None:
        if self.is_read_only:
            raise StoreError("The store is open for reading only")
