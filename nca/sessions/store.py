"""The store: all sessions of a person in one SQLite database."""

from __future__ import annotations

import secrets
import time
from contextlib import suppress
from pathlib import Path

import msgspec

from nca.errors import SessionLocked, SessionNotFound, StoreError
from nca.messages import clean_text
from nca.sessions import output_files, results, transfer
from nca.sessions.database import Database, outputs_of
from nca.sessions.file_records import FileRecords
from nca.sessions.lock import FileLock, lock_session
from nca.sessions.opening import Opened, open_for_reading, open_for_writing, open_in_memory
from nca.sessions.preview import SessionPreview, load_preview
from nca.sessions.results import SNIPPET_CHARS, Hit, SessionHit
from nca.sessions.session import INFO, Kind, Session, SessionInfo, as_info, as_name
from nca.sessions.transfer import SessionCopy
from nca.sessions.usage import Learned

Infos = list[SessionInfo]
Hits = list[Hit]
SessionHits = list[SessionHit]

_ID_BYTES = 4
_SECONDS_A_DAY = 86_400
_LISTED_MATCHES = 5


class Store:
    """All sessions. `notes` tell the person about its opening, such as a damaged file that was set aside."""

    def __init__(self, opened: Opened, path: Path | None, *, is_read_only: bool) -> None:
        self._database: Database = opened.database
        self._lock = opened.lock
        self._open: dict[str, FileLock | None] = {}
        self._file_records: FileRecords | None = None
        self.path = path
        self.is_read_only = is_read_only
        self.notes: tuple[str, ...] = opened.notes

    @classmethod
    def open(cls, path: Path | None, *, read_only: bool = False) -> Store:
        """Open the store at `path`, or one in memory. `read_only` neither writes nor locks; a missing file is empty.

        Raises StoreTooNew, StoreDamaged (if the file cannot be set aside), StoreError ("cannot write …").
        """
        if path is None:
            return cls(open_in_memory(), None, is_read_only=read_only)
        path = path.absolute()
        return cls(open_for_reading(path) if read_only else open_for_writing(path), path, is_read_only=read_only)

    def create(self, *, directory: str, model: str, name: str = "", kind: Kind = "chat") -> Session:
        """Create a session and open it for writing."""
        self._refuse_reader()
        session_id = self._new_id()
        self._acquire(session_id)
        try:
            with self._database.transaction() as connection:
                empty = transfer.new_copy((), directory=directory, name=name, model=model, kind=kind)
                number = transfer.write(connection, session_id, empty)
        except BaseException:
            self._release(session_id)
            raise
        return self._session(session_id, number)

    def open_session(self, id_or_prefix: str, *, read_only: bool = False) -> Session:
        """Open a session. For writing, first complete what a killed process left open; see `Session.recovered`.

        Raises SessionNotFound, SessionLocked (never for a reader), StoreError.
        """
        session_id, number = self._find(id_or_prefix)
        if read_only:
            return Session(self._database, number)
        self._refuse_reader()
        self._acquire(session_id)
        session = self._session(session_id, number)
        try:
            session.recover()
        except BaseException:
            session.close()
            raise
        return session

    def list(self, limit: int | None = 50) -> Infos:
        """The last `limit` sessions, most recently used first; all of them for None."""
        rows = self._database.rows(f"{INFO} ORDER BY touched DESC LIMIT ?", (-1 if limit is None else limit,))
        return [as_info(row) for row in rows]

    def latest(self, directory: str | None = None) -> SessionInfo | None:
        """The most recently used session with messages, in a directory or anywhere; chats before `nca run`."""
        row = self._database.row(
            f"{INFO} WHERE messages > 0 AND (?1 IS NULL OR directory = ?1)"
            " ORDER BY kind <> 'chat', touched DESC LIMIT 1",
            (None if directory is None else clean_text(directory),),
        )
        return as_info(row) if row else None

    def find(self, prefix: str) -> SessionInfo:
        """Find a session by id, beginning of an id, or whole name. Raises SessionNotFound."""
        row = self._database.row(f"{INFO} WHERE number = ?", (self._find(prefix)[1],))
        if row is None:
            raise SessionNotFound(f"session {prefix} has just been removed")
        return as_info(row)

    def preview(self, id_or_prefix: str) -> SessionPreview:
        """The last question and answer of a session, and its size. Raises SessionNotFound."""
        return load_preview(self._database, self._find(id_or_prefix)[1])

    def search(self, question: str, limit: int = 10, *, chars: int = SNIPPET_CHARS) -> Hits:
        """The best messages of all sessions for a question, best first. Any text is valid."""
        return results.find(self._database, question, None, limit, chars=chars)

    def search_sessions(self, question: str, limit: int = 10) -> SessionHits:
        """The best sessions for a question, each with its best messages."""
        return results.find_sessions(self._database, question, limit)

    def delete(self, id_or_prefix: str) -> None:
        """Delete a session and its saved outputs permanently. Raises SessionNotFound, SessionLocked."""
        self._refuse_reader()
        session_id, number = self._find(id_or_prefix)
        self._acquire(session_id)
        try:
            with self._database.transaction() as connection:
                connection.execute("DELETE FROM sessions WHERE number = ?", (number,))
            output_files.sweep(self._database, self.path)
            if FileRecords.exist(self.path):
                with suppress(StoreError):  # a damaged record of files keeps no session
                    self.file_records.forget(session_id)
        finally:
            self._release(session_id)

    @property
    def file_records(self) -> FileRecords:
        """What was recorded of files. It is opened when it is first asked for. Raises StoreTooNew, StoreError."""
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

    def copy_of(self, id_or_prefix: str) -> SessionCopy:
        """A copy of everything in a session, open or not. Raises SessionNotFound, StoreDamaged."""
        return transfer.read(Session(self._database, self._find(id_or_prefix)[1]))

    def add(self, copy: SessionCopy) -> SessionInfo:
        """Add a copy as a new session, in one transaction. Raises StoreError and changes nothing."""
        self._refuse_reader()
        transfer.check(copy)
        session_id = self._new_id()
        try:
            with self._database.transaction() as connection:
                transfer.write(connection, session_id, copy)
        except OverflowError as error:
            raise StoreError("the session holds a number that is too large to be stored") from error
        return self.find(session_id)

    def fork(self, id_or_prefix: str, *, at: int | None = None, name: str = "") -> SessionInfo:
        """Copy a session, whole or up to message `at` (see `transfer.cut`), as an independent session.

        Usage and cost stay with the original. Raises SessionNotFound, StoreError.
        """
        self._refuse_reader()
        copy = self.copy_of(id_or_prefix)
        copy = copy if at is None else transfer.cut(copy, at)
        name = as_name(name) or (f"{copy.info.name} (fork)" if copy.info.name else "")
        info = msgspec.structs.replace(copy.info, name=name, is_pinned=False)
        return self.add(msgspec.structs.replace(copy, info=info, usage=()))

    def expire(self, retention_days: int, max_sessions: int) -> int:
        """Delete sessions that are too old (0 days: no limit) or too many, oldest first. Returns how many.

        Pinned sessions and those that a process has open are kept. Empty sessions without a name are deleted at any
        age. Age is the number of days on which other sessions were used since, so a wrong clock adds one at most.
        """
        self._refuse_reader()
        rows = self._database.rows(
            "SELECT id, updated_at, is_pinned, name = '' AND NOT EXISTS (SELECT 1 FROM messages WHERE session = number)"
            " FROM sessions ORDER BY touched"
        )
        days: set[float] = set()
        ages = []
        for _, updated_at, *_ in reversed(rows):
            days.add(updated_at // _SECONDS_A_DAY)
            ages.append(len(days) - 1)
        left = len(rows)
        for (session_id, _, is_pinned, is_empty), age_days in zip(rows, reversed(ages), strict=True):
            is_due = is_empty or 0 < retention_days < age_days or left > max_sessions
            if is_due and not is_pinned and self._removed(session_id):
                left -= 1
        return len(rows) - left

    def learned(self, model: str) -> Learned:
        """What reports taught about a model; 0 samples if nothing is known."""
        row = self._database.row(
            "SELECT ratio, window_tokens, samples, at FROM learned WHERE model = ?", (clean_text(model),)
        )
        return Learned(*row) if row else Learned()

    def save_learned(self, model: str, lesson: Learned) -> None:
        """Replace what is known about a model. Durable on return."""
        self._refuse_reader()
        with self._database.transaction() as connection:
            connection.execute(
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
            if self._file_records is not None:
                self._file_records.close()
            self._database.close()
        finally:
            for session_id in tuple(self._open):
                self._release(session_id)
            if self._lock is not None:
                self._lock.release()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _new_id(self) -> str:
        while True:
            session_id = secrets.token_hex(_ID_BYTES)
            if not self._database.row("SELECT 1 FROM sessions WHERE id = ?", (session_id,)):
                return session_id

    def _find(self, prefix: str) -> tuple[str, int]:
        wanted = clean_text(prefix).strip()
        rows = self._database.rows(
            "SELECT id, number FROM sessions WHERE id = ?1 OR (?1 <> '' AND substr(id, 1, length(?1)) = ?1)"
            " OR (?1 <> '' AND name = ?1) ORDER BY id <> ?1, touched DESC",
            (wanted,),
        )
        if not rows:
            raise SessionNotFound(f"there is no session {wanted!r}", advice="`nca sessions list` shows them.")
        if rows[0][0] != wanted and len(rows) > 1:
            some = ", ".join(row[0] for row in rows[:_LISTED_MATCHES]) + (" …" if len(rows) > _LISTED_MATCHES else "")
            raise SessionNotFound(f"{wanted!r} could be any of {some}", advice="Give more of the id.")
        return rows[0][0], rows[0][1]

    def _session(self, session_id: str, number: int) -> Session:
        return Session(self._database, number, is_read_only=False, on_close=lambda: self._release(session_id))

    def _acquire(self, session_id: str) -> None:
        if self.path is not None:
            lock = lock_session(self.path.parent / "locks" / f"{session_id}.lock", session_id)
        elif session_id in self._open:
            raise SessionLocked(f"session {session_id} is already open")
        else:
            lock = None
        self._open[session_id] = lock

    def _release(self, session_id: str) -> None:
        lock = self._open.pop(session_id, None)
        if lock is not None:
            lock.release(remove=True)

    def _removed(self, session_id: str) -> bool:
        try:
            self.delete(session_id)
        except (SessionLocked, SessionNotFound):
            return False
        return True

    def _refuse_reader(self) -> None:
        if self.is_read_only:
            raise StoreError("the store is open for reading only")
