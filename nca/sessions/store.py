"""The store: all sessions of a person, in one SQLite database. The way in to this room."""

from __future__ import annotations

import secrets
import time
from pathlib import Path
from types import TracebackType

import msgspec

from nca.errors import SessionLocked, SessionNotFound, StoreError
from nca.messages import clean_text
from nca.sessions import originals, transfer, views
from nca.sessions import results as hits
from nca.sessions.database import Database
from nca.sessions.lock import FileLock, lock_session
from nca.sessions.opening import Opened, open_for_reading, open_for_writing, open_in_memory
from nca.sessions.preview import Glance, glance
from nca.sessions.results import Hit, SessionHit
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
    """`notes` are what the person should know about how it was opened, such as a damaged file that was set aside."""

    def __init__(self, opened: Opened, path: Path | None, *, is_read_only: bool) -> None:
        self._database: Database = opened.database
        self._lock = opened.lock
        self._open: dict[str, FileLock | None] = {}
        self.path = path
        self.is_read_only = is_read_only
        self.notes: tuple[str, ...] = opened.notes

    @classmethod
    def open(cls, path: Path | None, *, read_only: bool = False) -> Store:
        """None: in memory. `read_only` writes nothing, takes no lock, and shows an empty store where there is none.

        Raises StoreTooNew, StoreDamaged (where the file may not be set aside), StoreError ("cannot write …").
        """
        if path is None:
            return cls(open_in_memory(), None, is_read_only=read_only)
        path = path.absolute()
        return cls(open_for_reading(path) if read_only else open_for_writing(path), path, is_read_only=read_only)

    def create(self, *, directory: str, model: str, name: str = "", kind: Kind = "chat") -> Session:
        """A new session, open for writing."""
        self._refuse_reader()
        session_id = self._new_id()
        self._take(session_id)
        now = time.time()
        try:
            with self._database.transaction() as connection:
                number = connection.execute(
                    "INSERT INTO sessions (id, name, directory, model, kind, created_at, updated_at, touched) VALUES"
                    " (?, ?, ?, ?, ?, ?, ?, (SELECT coalesce(max(touched), 0) + 1 FROM sessions)) RETURNING number",
                    (session_id, as_name(name), clean_text(directory), clean_text(model), kind, now, now),
                ).get
                views.create_first(connection, number)
        except BaseException:
            self._let_go(session_id)
            raise
        return self._session(session_id, number)

    def open_session(self, id_or_prefix: str, *, read_only: bool = False) -> Session:
        """Open for writing: what a killed process left open is closed first, see `Session.recovered`.

        Raises SessionNotFound, SessionLocked (which a reader never meets), StoreError.
        """
        session_id, number = self._find(id_or_prefix)
        if read_only:
            return Session(self._database, number)
        self._refuse_reader()
        self._take(session_id)
        session = self._session(session_id, number)
        try:
            session.recover()
        except BaseException:
            session.close()
            raise
        return session

    def list(self, limit: int | None = 50) -> Infos:
        """The session used last comes first. None: all of them."""
        rows = self._database.rows(f"{INFO} ORDER BY touched DESC LIMIT ?", (-1 if limit is None else limit,))
        return [as_info(row) for row in rows]

    def latest(self, directory: str | None = None) -> SessionInfo | None:
        """The session with messages that was used last, in a directory or anywhere; a chat before what `run` made."""
        row = self._database.row(
            f"{INFO} WHERE messages > 0 AND (?1 IS NULL OR directory = ?1)"
            " ORDER BY kind <> 'chat', touched DESC LIMIT 1",
            (None if directory is None else clean_text(directory),),
        )
        return as_info(row) if row else None

    def find(self, prefix: str) -> SessionInfo:
        """By id, by the beginning of an id, or by its whole name. Raises SessionNotFound."""
        row = self._database.row(f"{INFO} WHERE number = ?", (self._find(prefix)[1],))
        if row is None:
            raise SessionNotFound(f"session {prefix} has just been removed")
        return as_info(row)

    def glance(self, id_or_prefix: str) -> Glance:
        """Where a session ended, and how large it is. Raises SessionNotFound."""
        return glance(self._database, self._find(id_or_prefix)[1])

    def search(self, question: str, limit: int = 10) -> Hits:
        """The messages of all sessions that answer best, best first. Any text is a question."""
        return hits.find(self._database, question, None, limit)

    def search_sessions(self, question: str, limit: int = 10) -> SessionHits:
        """The sessions that answer best, each with its best messages."""
        return hits.find_sessions(self._database, question, limit)

    def delete(self, id_or_prefix: str) -> None:
        """The whole session, for good, with its folder of originals. Raises SessionNotFound, SessionLocked."""
        self._refuse_reader()
        session_id, number = self._find(id_or_prefix)
        self._take(session_id)
        try:
            with self._database.transaction() as connection:
                connection.execute("DELETE FROM sessions WHERE number = ?", (number,))
            originals.sweep(self._database, self.path)
        finally:
            self._let_go(session_id)

    def originals_of(self, session_id: str) -> Path | None:
        """Where a session keeps what was too large for its view; None for a store in memory."""
        return originals.folder(self.path, session_id) if self.path else None

    def refuse_held(self, id_or_prefix: str) -> None:
        """Raise SessionLocked, which names the process, where the session is open for writing anywhere."""
        session_id, _ = self._find(id_or_prefix)
        self._take(session_id)
        self._let_go(session_id)

    def copy_of(self, id_or_prefix: str) -> SessionCopy:
        """Everything of a session, as it is now, open elsewhere or not. Raises SessionNotFound, StoreDamaged."""
        return transfer.read(Session(self._database, self._find(id_or_prefix)[1]))

    def add(self, copy: SessionCopy) -> SessionInfo:
        """A new session of its own from a copy, in one transaction. Raises StoreError, and nothing has changed."""
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
        """A copy that goes its own way, from the head or from message `at`; see `transfer.cut`.

        What the original's calls cost stays with the original. Raises SessionNotFound, StoreError.
        """
        self._refuse_reader()
        copy = self.copy_of(id_or_prefix)
        copy = copy if at is None else transfer.cut(copy, at)
        name = as_name(name) or (f"{copy.info.name} (fork)" if copy.info.name else "")
        info = msgspec.structs.replace(copy.info, name=name, is_pinned=False)
        return self.add(msgspec.structs.replace(copy, info=info, usage=()))

    def expire(self, retention_days: int, max_sessions: int) -> int:
        """Remove sessions that are too old (0 days: none is), or too many, oldest first; gives how many.

        Pinned ones and those that a process has open stay. Empty ones without a name go at any age. Age counts back
        from the last use of any session where the clock is ahead of that: a clock that jumps takes nothing away.
        """
        self._refuse_reader()
        rows = self._database.rows(
            "SELECT id, updated_at, is_pinned, name = '' AND NOT EXISTS (SELECT 1 FROM messages WHERE session = number)"
            " FROM sessions ORDER BY touched"
        )
        if not rows:
            return 0
        now = min(time.time(), rows[-1][1])
        oldest = now - retention_days * _SECONDS_A_DAY if retention_days else float("-inf")
        left = len(rows)
        for session_id, updated_at, is_pinned, is_empty in rows:
            is_due = is_empty or updated_at < oldest or left > max_sessions
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
        """Copy the whole store into a new private file. Raises StoreError where that exists already."""
        self._database.back_up(target)

    def close(self) -> None:
        """Close the database and let go of every session that is still open."""
        try:
            self._database.close()
        finally:
            for session_id in tuple(self._open):
                self._let_go(session_id)
            if self._lock is not None:
                self._lock.release()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
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
        return Session(self._database, number, is_read_only=False, on_close=lambda: self._let_go(session_id))

    def _take(self, session_id: str) -> None:
        if self.path is not None:
            lock = lock_session(self.path.parent / "locks" / f"{session_id}.lock", session_id)
        elif session_id in self._open:
            raise SessionLocked(f"session {session_id} is already open")
        else:
            lock = None
        self._open[session_id] = lock

    def _let_go(self, session_id: str) -> None:
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
