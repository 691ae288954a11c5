"""Messages from while the server could not be reached: a file for each holder of a lease, on this machine.

The file has the number of the lease, so each holder has its own. Its lines are on the disk before a turn continues. The
holder stores them when the server is back. If it ends before, the next start of nca stores them: in their session if it
still ends where they begin, else in a copy. A message is known by its seq, its time and its text, and the copy by its
id, so a kill at any moment stores nothing twice.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Literal

import msgspec

from nca.errors import SessionLocked, StoreDamaged, StoreError, StoreUnreachable
from nca.humanize import counted, natural
from nca.messages import Entry, Message
from nca.safe_files import PRIVATE, paths_below, sync_folder
from nca.sessions import log, store_errors, transfer, usage
from nca.sessions.encoding import decode, decode_message, encode, encode_bytes
from nca.sessions.lock import FileLock
from nca.sessions.session import Session
from nca.sessions.sql import SessionDatabase, Transaction
from nca.sessions.usage import UsageRow


class Kept(msgspec.Struct, frozen=True, omit_defaults=True):
    """A line of the file. `body`: in JSON. `seq` of an answer so far: its coming number."""

    seq: int
    at: float
    body: str
    what: Literal["message", "answer so far", "usage"] = "message"

    @property
    def is_message(self) -> bool:
        return self.what == "message"

    def entry(self) -> Entry:
        return Entry(self.seq, decode_message(self.body, f"message {self.seq}"), self.at)


class Diverged(StoreError):
    """The session has other messages in the places of the spool's."""


class Spool:
    """The spool of a lease's holder; see `nca.sessions.sql.Spool`."""

    def __init__(self, database: SessionDatabase, path: Path, tell: Callable[[str], None], where: str) -> None:
        """tell: says that something is kept, or stored now. where: the database, as a person names it."""
        self._database = database
        self._path = path
        self._tell = tell
        self._where = where
        self._lock: FileLock | None = None
        self._kept: list[Kept] = []

    @property
    def is_empty(self) -> bool:
        return not self._kept

    def keep_messages(self, entries: Sequence[Entry]) -> None:
        self._keep([Kept(one.seq, one.at, encode(one.message)) for one in entries])

    def keep_usage(self, body: str) -> None:
        self._keep([Kept(0, 0.0, body, "usage")])

    def keep_partial(self, seq: int, body: str) -> None:
        self._keep([Kept(seq, 0.0, body, "answer so far")])

    def _keep(self, kept: list[Kept]) -> None:
        with store_errors.explained(self._path):
            if self._lock is None:
                self._lock = FileLock.acquire(_lock_of(self._path))
            is_first = not os.path.exists(self._path)
            _add(self._path, kept)
        self._kept += kept
        if is_first:
            self._tell(
                f"There is no connection to {self._where}. New messages are kept on this machine and stored when the"
                " connection is back."
            )

    def write(self, transaction: Transaction, session: int) -> None:
        write(self._database, transaction, session, self._kept)

    def clear(self) -> None:
        with store_errors.explained(self._path, "delete"):
            self._path.unlink(missing_ok=True)
        said = f"{messages_kept(self._kept)} stored now."
        self._kept = []
        self.let_go()
        self._tell(said)

    def let_go(self) -> None:
        """Leave the file to whoever finds it."""
        if self._lock is not None:
            self._lock.release(remove=True)
            self._lock = None


def spool_of(path: Path, session_id: str, token: int) -> Path:
    """The spool of a lease, in a folder beside the other files of this machine."""
    return path.parent / "spool" / f"{session_id}-{token}.jsonl"


def left_in(path: Path) -> list[tuple[Path, str, int]]:
    """The spools of this machine, each with its session and the number of its lease."""
    found = []
    for spool in sorted(paths_below(path.parent / "spool", "*.jsonl")):
        session_id, _, token = spool.stem.rpartition("-")
        if session_id and (number := natural(token)) is not None:
            found.append((spool, session_id, number))
    return found


def read(spool: Path) -> list[Kept]:
    """The rows left by a holder that has ended. A last line that is not whole was never confirmed as stored.

    The answer that it was streaming becomes an interrupted message. Raises StoreDamaged, StoreError.
    """
    with store_errors.explained(spool, "read"):
        try:
            *lines, _ = spool.read_bytes().split(b"\n")
        except FileNotFoundError:  # stored meanwhile
            return []
    lines_read = [decode(line.decode(errors="replace"), Kept, f"line {number}") for number, line in enumerate(lines, 1)]
    kept = [one for one in lines_read if one.what != "answer so far"]
    if lines_read and (last := lines_read[-1]).what == "answer so far":
        partial = decode(last.body, log.Partial, "the last line")
        if partial.text.strip():
            message = Message("assistant", partial.text, reasoning=partial.reasoning, is_interrupted=True)
            kept.append(Kept(last.seq, partial.at, encode(message)))
    for before, after in pairwise(one.seq for one in kept if one.is_message):
        if after != before + 1:
            raise StoreDamaged(f"Message {before + 1} is missing")
    return kept


def messages_in(spool: Path) -> list[Entry]:
    """The messages that a spool keeps. Raises StoreDamaged, StoreError."""
    return [one.entry() for one in read(spool) if one.is_message]


def write(database: SessionDatabase, transaction: Transaction, session: int, kept: Sequence[Kept]) -> None:
    """Store the rows that are not stored yet. Raises Diverged, and nothing may be committed then."""
    entries = [one.entry() for one in kept if one.is_message]
    if entries:
        messages = [one for one in kept if one.is_message]
        rows = transaction.execute(
            "SELECT seq, at, body FROM messages WHERE session = ? AND seq >= ? ORDER BY seq LIMIT ?",
            (session, entries[0].seq, len(entries)),
        )
        stored = [Kept(*row) for row in rows]
        new = entries[len(stored) :]
        if stored != messages[: len(stored)] or (new and new[0].seq != log.head(transaction, session) + 1):
            raise Diverged("The session has gone on elsewhere")
        log.insert(database, transaction, session, new)
        log.appended(transaction, session, entries)
    write_usage(transaction, session, kept)


def write_usage(transaction: Transaction, session: int, kept: Sequence[Kept]) -> None:
    """Store the reports of usage that are not stored yet, of views that are."""
    known = set(transaction.execute("SELECT seq, at FROM usage WHERE session = ?", (session,)).fetchall())
    views = {number for (number,) in transaction.execute("SELECT number FROM views WHERE session = ?", (session,))}
    new = (row for row in reports(kept) if (row.seq, row.at) not in known and row.view_id in views)
    usage.insert(transaction, session, new)


def reports(kept: Sequence[Kept]) -> list[UsageRow]:
    return [decode(one.body, UsageRow, "a report of usage") for one in kept if one.what == "usage"]


def _add(path: Path, kept: Sequence[Kept]) -> None:
    """Add lines to the file, on the disk on return. A part of them that a full disk left is taken back."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    is_new = not os.path.exists(path)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, PRIVATE)
    before = os.fstat(handle).st_size
    try:
        left = memoryview(b"".join(encode_bytes(one) + b"\n" for one in kept))
        while left:
            left = left[os.write(handle, left) :]
        os.fsync(handle)
    except OSError:
        with suppress(OSError):
            os.ftruncate(handle, before)
        raise
    finally:
        os.close(handle)
    if is_new:
        sync_folder(path.parent)


def _lock_of(spool: Path) -> Path:
    """The lock of whoever may store a spool: its holder, or a start of nca."""
    return spool.with_suffix(".lock")


def messages_kept(kept: Sequence[Kept]) -> str:
    """How a sentence about them begins."""
    number = sum(one.is_message for one in kept)
    if number == 0:
        return "The data kept on this machine is"
    was, now = ("was", "is") if number == 1 else ("were", "are")
    return f"{counted(number, 'message')} that {was} kept on this machine {now}"


def deliver(database: SessionDatabase, beside: Path, tell: Callable[[str], None]) -> None:
    """Store all that was kept for the database, and say so. Raises StoreError. beside: as in `SessionDatabase.path`."""
    for path, session_id, token in left_in(beside):
        if (lock := FileLock.acquire(_lock_of(path))) is None:
            continue
        kept: list[Kept] = []
        try:
            kept = read(path)
            said = _stored(database, session_id, token, kept) if kept else ""
            if said is not None:
                with store_errors.explained(path, "delete"):
                    path.unlink(missing_ok=True)
                if said:
                    tell(said)
        except StoreUnreachable:
            tell(f"{messages_kept(kept)} in {path}. The next start of nca stores this file.")
        except StoreError as error:
            tell(f"{path} could not be stored and stays: {error.message}")
        finally:
            lock.release(remove=True)


def _stored(database: SessionDatabase, session_id: str, token: int, kept: Sequence[Kept]) -> str | None:
    """Store the rows, and say so in a sentence; None if they cannot be stored yet."""
    found = database.row("SELECT number FROM sessions WHERE id = ?", (session_id,))
    if found is None:
        return f"Session {session_id} was deleted. {_copied(database, session_id, None, token, kept)}"
    try:
        lease = database.hold(session_id)
        try:
            with database.transaction(lease) as transaction:
                write(database, transaction, found[0], kept)
        finally:
            if lease is not None:
                lease.release()
        return f"{messages_kept(kept)} stored now, in session {session_id}."
    except SessionLocked:
        if database.row("SELECT token FROM leases WHERE session_id = ?", (session_id,)) == (token,):
            return None  # the server has not noticed yet that the process has ended
    except Diverged:
        pass
    copied = _copied(database, session_id, found[0], token, kept)
    return f"Session {session_id} has gone on elsewhere. {copied}"


def _copied(database: SessionDatabase, session_id: str, number: int | None, token: int, kept: Sequence[Kept]) -> str:
    """Store in a copy of the session what no longer fits after its end; says so."""
    entries = [one.entry() for one in kept if one.is_message]
    if not entries:
        if number is not None:
            with database.transaction() as transaction:
                write_usage(transaction, number, kept)
        return "Only its cost was kept on this machine."
    before = transfer.new_copy((), directory="") if number is None else transfer.read(Session(database, number))
    copy = transfer.with_end(before, entries, reports(kept))
    # Always the same, so that there is only one copy.
    id = hashlib.sha256(f"{session_id}:{token}".encode()).hexdigest()[:8]
    transfer.add(database, id, copy, forked_from=number)
    return f"{messages_kept(kept)} in a copy of it now: session {id}."
