"""The record of one session's files in one workspace: the journal, the contents, and the files as last seen.

A state is what a path of the workspace holds; a change is from one state to another. A content is stored in the
transaction that first refers to it, so no other process can remove it in between.
"""

from __future__ import annotations

import hashlib
import os
import stat
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Literal, NamedTuple

import apsw
import msgspec

from nca.errors import StoreDamaged
from nca.sessions.database import Database
from nca.sessions.encoding import decode, encode_bytes

BACKGROUND = "background command"
"""Who changed what is found between commands once a command has left something running: it, or a person."""
RWX = 0o777
SPECIAL_BITS = {stat.S_ISUID: "setuid", stat.S_ISGID: "setgid", stat.S_ISVTX: "sticky"}
"""The bits of a mode that let whoever runs a file act as somebody else, or rule a whole folder."""


class FileState(msgspec.Struct, frozen=True, array_like=True):
    """The content of a path. The default: nothing.

    sha256  of the content, or of a link's target; "" if it is not stored
    mode    the permission bits of a file or folder
    why     why the content is not stored, such as "larger than 5 MiB"; "" if it is
    """

    kind: Literal["absent", "file", "link", "folder", "other"] = "absent"
    sha256: str = ""
    mode: int = 0
    size: int = 0
    why: str = ""

    def missing(self, mode: int) -> str:
        """The special bits of this state that `mode` lacks, as a person calls them: "setuid, sticky"; or ""."""
        return ", ".join(name for bit, name in SPECIAL_BITS.items() if self.mode & bit & ~mode)

    def is_same(self, other: FileState) -> bool:
        return (self.kind, self.sha256, self.mode, self.size) == (other.kind, other.sha256, other.mode, other.size)


ABSENT = FileState()


class Known(msgspec.Struct, frozen=True, array_like=True):
    """A path as it was last seen.

    signature  as long as it stays, so does the state; 0: look again in any case
    """

    state: FileState
    signature: int


class Change(msgspec.Struct, frozen=True):
    """A change of one path.

    actor     the tool that made it, or `rewind`
    is_mixed  somebody else may have had a part in it
    is_unnamed  it was found after a command that does not mention it: it may be somebody else's
    number    its place in the journal; 0: not recorded yet
    seq       the newest message of the log when it began
    """

    path: str
    actor: str
    before: FileState
    after: FileState
    is_mixed: bool = False
    is_done: bool = True
    rewind: int | None = None
    number: int = 0
    seq: int = 0
    is_unnamed: bool = False


_FASTEST = 1
"""zlib's level. Sources come out as small as with zstd at its level 1; it takes three times as long, 8 ms a MB."""

_LAST = "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'changes'"
_COLUMNS = "path, body, is_done, rewind, changes.number, seq"

Contents = Mapping[str, bytes]
"""Contents by their SHA-256 in hexadecimal."""
_Seen = Mapping[str, Known | None]


class _Body(msgspec.Struct, frozen=True, array_like=True):
    """One field of the journal for a change."""

    actor: str
    before: FileState
    after: FileState
    is_mixed: bool
    is_unnamed: bool = False


class Running(NamedTuple):
    """A command that runs, or ran when its nca was killed.

    last  the last change in the journal when it began
    said  its line or arguments
    """

    number: int
    seq: int
    actor: str
    last: int
    said: str = ""


class FileRecord:
    """Each call that writes is one transaction, durable on return. All raise StoreError."""

    def __init__(self, database: Database, session_id: str, root: bytes) -> None:
        self._database = database
        self._session, self._root = session_id, root
        row = database.row(
            "SELECT uses.number, workspace FROM uses JOIN workspaces w ON w.number = workspace"
            " WHERE session = ? AND root = ?",
            (session_id, root),
        )
        self._use, self._workspace = row or (0, 0)

    def known(self) -> dict[str, Known]:
        """The files of the workspace as any session saw them last."""
        rows = self._database.rows(
            "SELECT path, body FROM known WHERE workspace = (SELECT number FROM workspaces WHERE root = ?)",
            (self._root,),
        )
        return {os.fsdecode(path): decode(body, Known, "a file's last state") for path, body in rows}

    def stored_bytes(self) -> int:
        """The room that the contents of this workspace take."""
        packed = "SELECT sum(packed_bytes) FROM contents WHERE workspace = ?"
        return int(self._database.value(packed, (self._workspace,), 0))

    def content(self, state: FileState) -> bytes:
        """A file's content, or a link's target. Raises StoreDamaged if it is not the stored one."""
        packed = self._database.value("SELECT packed FROM contents WHERE sha256 = ?", (bytes.fromhex(state.sha256),))
        raw = b""
        with suppress(zlib.error):
            raw = zlib.decompress(packed or b"")
        if hashlib.sha256(raw).hexdigest() != state.sha256:
            raise StoreDamaged(f"The stored content {state.sha256[:12]} is damaged or missing")
        return raw

    def changes(self, *, first: int = 0, seq: int = 0) -> list[Change]:
        """The journal in order: from the change numbered `first`, and from message `seq` on."""
        rows = self._database.rows(
            f"SELECT {_COLUMNS} FROM changes WHERE use = ? AND number >= ? AND seq >= ? ORDER BY number",  # noqa: S608
            (self._use, first, seq),
        )
        return [_change(*row) for row in rows]

    def unfinished(self) -> list[Change]:
        """The changes in this workspace, of any session, that were begun and not finished."""
        rows = self._database.rows(
            f"SELECT {_COLUMNS} FROM changes JOIN uses ON uses.number = use JOIN workspaces w ON w.number = workspace"  # noqa: S608
            " WHERE root = ? AND NOT is_done ORDER BY changes.number",
            (self._root,),
        )
        return [_change(*row) for row in rows]

    def changed_by_others(self, running: Running) -> set[str]:
        """The paths that other sessions changed in this workspace since a command of this one began."""
        rows = self._database.rows(
            "SELECT DISTINCT path FROM changes JOIN uses ON uses.number = use"
            " WHERE changes.number > ? AND workspace = ? AND use <> ?",
            (running.last, self._workspace, self._use),
        )
        return {os.fsdecode(path) for (path,) in rows}

    def see(self, seen: _Seen, contents: Contents, changes: Sequence[Change] = ()) -> None:
        """Take note of paths as they are now (None: gone), and of changes that a command made to them."""
        with self._joined() as connection:
            for path, known in seen.items():
                key = self._workspace, os.fsencode(path)
                if known is None:
                    connection.execute("DELETE FROM known WHERE workspace = ? AND path = ?", key)
                else:
                    connection.execute(
                        "INSERT OR REPLACE INTO known VALUES (?, ?, ?, ?)",
                        (*key, encode_bytes(known), self._content(connection, contents, known.state)),
                    )
            self._insert(connection, contents, changes)

    def begin(self, changes: Sequence[Change], contents: Contents) -> list[Change]:
        """Record changes before they are made. Returns them with their numbers."""
        with self._joined() as connection:
            return self._begin(connection, changes, contents, None)

    def begin_rewind(self, changes: Sequence[Change], contents: Contents, chat: str = "") -> tuple[int, list[Change]]:
        """As `begin`, for a rewind. Also returns its number. `chat`: what becomes of the chat, see `last_rewind`."""
        with self._joined() as connection:
            last = connection.execute(_LAST).get
            connection.execute(
                "INSERT INTO rewinds (use, first, chat) VALUES (?, ?, ?)", (self._use, last + 1, chat.encode())
            )
            rewind = connection.last_insert_rowid()
            return rewind, self._begin(connection, changes, contents, rewind)

    def finish(self, done: Iterable[Change], dropped: Iterable[Change] = ()) -> None:
        """Mark changes as done, with the current content; remove those that were not made after all."""
        with self._database.transaction() as connection:
            for one in done:
                connection.execute(
                    "UPDATE changes SET is_done = 1, body = ? WHERE number = ?", (_body(one), one.number)
                )
            for one in dropped:
                connection.execute("DELETE FROM changes WHERE number = ?", (one.number,))

    def drop_rewind(self, number: int) -> None:
        """Remove a rewind that changed nothing."""
        with self._database.transaction() as connection:
            connection.execute("DELETE FROM changes WHERE rewind = ?", (number,))
            connection.execute("DELETE FROM rewinds WHERE number = ?", (number,))

    def leave_chat(self, number: int) -> None:
        """A rewind has nothing to do with the chat any more."""
        self._database.write("UPDATE rewinds SET chat = x'' WHERE number = ?", (number,))

    def last_rewind(self) -> tuple[int, str]:
        """The newest rewind of this session and what it meant for the chat; 0 if there is none."""
        row = self._database.row(
            "SELECT number, CAST(chat AS TEXT) FROM rewinds WHERE use = ? ORDER BY number DESC LIMIT 1", (self._use,)
        )
        return row or (0, "")

    def first_of_rewind(self, number: int) -> int | None:
        """The first change of a rewind; None if this session has no such rewind."""
        row = self._database.row("SELECT first FROM rewinds WHERE use = ? AND number = ?", (self._use, number))
        return row[0] if row else None

    def begin_command(self, seq: int, actor: str, said: str = "") -> Running:
        """Record that a command runs, so that its changes are known as such even if nca is killed.

        The column `actor` holds the actor's line, and behind it what was said.
        """
        with self._joined() as connection:
            last = connection.execute(_LAST).get
            connection.execute(
                "INSERT INTO commands (use, seq, actor, last) VALUES (?, ?, ?, ?)",
                (self._use, seq, f"{actor}\n{said}".encode("utf-8", "replace"), last),
            )
            return Running(connection.last_insert_rowid(), seq, actor, last, said)

    def commands(self) -> list[tuple[str, Running]]:
        """The commands that run in the workspace, or ran when their nca was killed, each with its session's id."""
        rows = self._database.rows(
            "SELECT session, c.number, seq, actor, last FROM commands c JOIN uses ON uses.number = use"
            " JOIN workspaces w ON w.number = workspace WHERE root = ? ORDER BY c.number",
            (self._root,),
        )
        found = []
        for session, number, seq, actor, last in rows:
            who, _, said = actor.decode("utf-8", "replace").partition("\n")
            found.append((session, Running(number, seq, who, last, said)))
        return found

    def add_gap(self, seq: int, said: str) -> None:
        """Take note that the record of a command is incomplete."""
        with self._joined() as connection:
            connection.execute(
                "INSERT OR IGNORE INTO gaps (use, seq, said) VALUES (?, ?, ?)",
                (self._use, seq, said.encode("utf-8", "surrogateescape")),
            )

    def gaps(self, seq: int) -> list[str]:
        """The unrecorded parts from message `seq` on, each once."""
        rows = self._database.rows(
            "SELECT CAST(said AS TEXT) FROM gaps WHERE use = ? AND seq >= ? GROUP BY said ORDER BY min(seq)",
            (self._use, seq),
        )
        return [said for (said,) in rows]

    def end_command(self, command: Running) -> None:
        self._database.write("DELETE FROM commands WHERE number = ?", (command.number,))

    @contextmanager
    def _joined(self) -> Iterator[apsw.Connection]:
        """A transaction in which the session's and the workspace's rows exist.

        The session may have been removed meanwhile.
        """
        with self._database.transaction() as connection:
            connection.execute("INSERT INTO workspaces (root) VALUES (?) ON CONFLICT DO NOTHING", (self._root,))
            self._workspace = connection.execute("SELECT number FROM workspaces WHERE root = ?", (self._root,)).get
            key = self._session, self._workspace
            connection.execute("INSERT INTO uses (session, workspace) VALUES (?, ?) ON CONFLICT DO NOTHING", key)
            self._use = connection.execute("SELECT number FROM uses WHERE session = ? AND workspace = ?", key).get
            yield connection

    def _begin(
        self, connection: apsw.Connection, changes: Sequence[Change], contents: Contents, rewind: int | None
    ) -> list[Change]:
        begun = [msgspec.structs.replace(one, is_done=False, rewind=rewind) for one in changes]
        return self._insert(connection, contents, begun)

    def _insert(self, connection: apsw.Connection, contents: Contents, changes: Sequence[Change]) -> list[Change]:
        inserted = []
        for one in changes:
            connection.execute(
                "INSERT INTO changes (use, seq, path, body, is_done, rewind, before_content, after_content)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    *(self._use, one.seq, os.fsencode(one.path), _body(one), one.is_done, one.rewind),
                    *(self._content(connection, contents, state) for state in (one.before, one.after)),
                ),
            )
            inserted.append(msgspec.structs.replace(one, number=connection.last_insert_rowid()))
        return inserted

    def _content(self, connection: apsw.Connection, contents: Contents, state: FileState) -> int | None:
        """The row of a state's content, which is stored if it is new; None if the state has none.

        Raises StoreDamaged if it was never stored.
        """
        if not state.sha256:
            return None
        digest = bytes.fromhex(state.sha256)
        number = connection.execute("SELECT number FROM contents WHERE sha256 = ?", (digest,)).get
        if number is not None:
            return int(number)
        if state.sha256 not in contents:
            raise StoreDamaged(f"The stored content {state.sha256[:12]} is missing")
        packed = zlib.compress(contents[state.sha256], _FASTEST)
        connection.execute(
            "INSERT INTO contents (sha256, workspace, packed_bytes, packed) VALUES (?, ?, ?, ?)",
            (digest, self._workspace, len(packed), packed),
        )
        return connection.last_insert_rowid()


def _body(change: Change) -> bytes:
    return encode_bytes(_Body(change.actor, change.before, change.after, change.is_mixed, change.is_unnamed))


def _change(path: bytes, body: bytes, is_done: int, rewind: int | None, number: int, seq: int) -> Change:
    one = decode(body, _Body, "a change of a file")
    return Change(
        os.fsdecode(path),
        *(one.actor, one.before, one.after, one.is_mixed, bool(is_done), rewind, number, seq, one.is_unnamed),
    )
