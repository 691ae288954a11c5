"""The index of other agents' sessions: their messages and a full-text index, in a database of its own in the cache.

It holds what their files say, so it can be made again at any time: a damaged one, or one of another version, is
deleted. Nothing here knows a format; `nca.mcp_server.other_agents` reads the files.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import apsw
import msgspec

from nca.errors import StoreError
from nca.messages import Message
from nca.safe_files import paths_below
from nca.sessions.encoding import encode
from nca.sessions.full_text import insert_passages
from nca.sessions.opening import Kind, open_for_writing, remove
from nca.sessions.passages import plain_text
from nca.sessions.sql import SessionDatabase, scripts

KEPT_CHARS = 24_000
"""The most that is kept of one message. The rest is read from its file when it is shown."""
_KEPT_AT_THE_END = 4_000
_AT_ONCE = 400
"""Messages that one transaction adds."""
FOREIGN = Kind(0x6E636F0A, scripts("foreign_1", "foreign_2"), lambda *_: "the files of the other agents are read again")
"""`nco` and a newline."""
FOREIGN_COLUMNS = "SELECT number, id, agent, own_id, title, directory, updated_at, messages, parent FROM sessions"
"""The columns of a PastSession, in the index."""
_DROP = "DELETE FROM messages WHERE session = ? AND seq >= ?"

_Row = tuple[int, int, float, str, str, bytes, bool]
"""A row of messages: session, seq, at, role, body, digest, is_cut."""


class File(NamedTuple):
    """A file of an agent as it was found."""

    path: Path
    agent: str
    size_bytes: int
    modified_ns: int


class Mark(NamedTuple):
    """The place to continue reading a file that only grows: all before `offset` is in the first `messages` messages.

    digest  of the bytes before `offset`, as the reader computes it
    """

    offset: int = 0
    messages: int = 0
    digest: bytes = b""


class About(msgspec.Struct, frozen=True, kw_only=True):
    """Facts about a session of a file. `key`: which of the file's sessions; `at`: its last use; `parent`: the own id of
    the session whose subagent it is."""

    key: str = ""
    own_id: str = ""
    title: str = ""
    directory: str = ""
    parent: str = ""
    at: float = 0.0


class Progress(NamedTuple):
    """How many files there are and are indexed; `is_known`: whether they have been counted yet."""

    files: int
    indexed: int
    problems: int
    is_known: bool


class Copied(NamedTuple):
    """How many first messages of a session are in nca's own store too; `is_whole`: these are all."""

    messages: int
    is_whole: bool


class ForeignIndex:
    """The index, open for writing. Any thread may use it. Methods raise StoreError."""

    def __init__(self, path: Path, made_by: str) -> None:
        """made_by: the version of the readers; what another version has read is read again."""
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            self._opened = open_for_writing(path, FOREIGN)
        except StoreError:
            remove(path)
            self._opened = open_for_writing(path, FOREIGN)
        for aside in paths_below(path.parent, f"{path.name}.corrupt-*"):
            aside.unlink(missing_ok=True)
        self.database = self._opened.database
        # After a power failure the last commits may be missing; the files are then read again.
        self.database.connection.pragma("synchronous", "NORMAL")
        if self.database.row("SELECT value FROM facts WHERE name = 'made_by'") != (made_by,):
            self.forget(self.files().values())
            self._set({"made_by": made_by})

    def files(self) -> dict[Path, File]:
        rows = self.database.rows("SELECT path, agent, size_bytes, modified_ns FROM files")
        return {Path(os.fsdecode(path)): File(Path(os.fsdecode(path)), *facts) for path, *facts in rows}

    def mark(self, path: Path) -> Mark:
        row = self.database.row(
            "SELECT resume_bytes, resume_messages, resume_digest FROM files WHERE path = ?", (os.fsencode(path),)
        )
        return Mark(*row) if row is not None else Mark()

    def about(self, file: File, about: About) -> About:
        """The facts about a session from its last reading; `about` otherwise."""
        row = self.database.row(
            "SELECT own_id, title, directory FROM sessions WHERE file = ? AND key = ?",
            (os.fsencode(file.path), about.key),
        )
        if row is None:
            return about
        return msgspec.structs.replace(about, own_id=row[0], title=row[1], directory=row[2])

    def say(self, files: int, indexed: int) -> None:
        """Record the progress of the indexing, for every process that answers."""
        self._set({"files": str(files), "indexed": str(indexed)})

    def forget(self, files: Iterable[File]) -> None:
        """Remove the files and their sessions."""
        for file in files:
            with self.database.transaction() as connection:
                connection.execute("DELETE FROM sessions WHERE file = ?", (os.fsencode(file.path),))
                connection.execute("DELETE FROM files WHERE path = ?", (os.fsencode(file.path),))

    def finish(self, file: File, keys: Sequence[str], problem: str = "", mark: Mark = Mark()) -> None:  # noqa: B008
        """Record that a file was read as it was found; its sessions with other keys are removed."""
        path = os.fsencode(file.path)
        others = "DELETE FROM sessions WHERE file = ? AND key NOT IN (SELECT value FROM json_each(?))"
        with self.database.transaction() as connection:
            connection.execute(others, (path, json.dumps(keys)))
            connection.execute(
                "INSERT OR REPLACE INTO files"
                " (path, agent, size_bytes, modified_ns, problem, resume_bytes, resume_messages, resume_digest)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (path, file.agent, file.size_bytes, file.modified_ns, problem, *mark),
            )

    def is_current(self, file: File, about: About) -> bool:
        """Whether a session of a file of several is indexed whole, as it was when it was last used."""
        row = self.database.row(
            "SELECT is_whole, updated_at FROM sessions WHERE file = ? AND key = ?", (os.fsencode(file.path), about.key)
        )
        return row is not None and bool(row[0]) and about.at > 0 and row[1] == about.at

    def begin(self, file: File, about: About) -> int:
        """The row of a session that is about to be read."""
        path = os.fsencode(file.path)
        with self.database.transaction() as connection:
            connection.execute(
                "INSERT INTO sessions"
                " (id, file, key, agent, own_id, title, directory, parent, updated_at, messages, is_whole)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0) ON CONFLICT (file, key) DO UPDATE SET is_whole = 0",
                (
                    _id_of(connection, file, about.key),
                    path,
                    about.key,
                    file.agent,
                    *(about.own_id, about.title, about.directory, about.parent, about.at),
                ),
            )
            row = connection.execute("SELECT number FROM sessions WHERE file = ? AND key = ?", (path, about.key)).get
        return int(row)

    def put(self, session: int, messages: Iterable[tuple[float, Message]], before: int = 0) -> int:
        """Make these the messages of a session, and return how many it has. Those that are there already stay.

        before  the first so many messages stay as they are; `messages` are those after them
        """
        found = self.database.rows("SELECT digest FROM messages WHERE session = ? ORDER BY seq", (session,))
        known = [digest for (digest,) in found]
        same, seq, source = True, before, iter(messages)
        while part := list(islice(source, _AT_ONCE)):
            rows, texts = list[_Row](), list[Message]()
            for at, message in part:
                seq += 1
                stored, is_cut = kept(message)
                body = encode(stored)
                digest = blake2b(body.encode(), digest_size=8).digest()
                if same and seq <= len(known) and known[seq - 1] == digest:
                    continue
                if same:
                    same = False
                    self.database.write(_DROP, (session, seq))
                rows.append((session, seq, at, message.role, body, digest, is_cut))
                texts.append(stored)
            self._add(rows, texts)
        if seq < len(known) and same:
            self.database.write(_DROP, (session, seq + 1))
        return seq

    def end(self, session: int, about: About, messages: int) -> None:
        """Record the facts about a session that was read to its end."""
        self.database.write(
            "UPDATE sessions SET own_id = ?, title = ?, directory = ?, updated_at = ?, messages = ?, is_whole = 1"
            " WHERE number = ?",
            (about.own_id, about.title, about.directory, about.at, messages, session),
        )

    def close(self) -> None:
        self._opened.close()

    def _add(self, rows: Sequence[_Row], stored: Sequence[Message]) -> None:
        if not rows:
            return
        with self.database.transaction() as connection:
            last = connection.execute("SELECT coalesce(max(id), 0) FROM messages").get
            connection.executemany(
                "INSERT INTO messages (id, session, seq, at, role, body, digest, is_cut)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                [(last + place, *row) for place, row in enumerate(rows, 1)],
            )
            insert_passages(connection, rows[0][0], enumerate(stored, last + 1), None)
            connection.execute("UPDATE sessions SET messages = ? WHERE number = ?", (rows[-1][1], rows[-1][0]))

    def _set(self, facts: Mapping[str, str]) -> None:
        with self.database.transaction() as connection:
            connection.executemany("INSERT OR REPLACE INTO facts VALUES (?, ?)", list(facts.items()))


def progress(database: SessionDatabase) -> Progress:
    """How far the indexing is, as its process has recorded it."""
    facts: dict[str, str] = dict(database.rows("SELECT name, value FROM facts WHERE name IN ('files', 'indexed')"))
    [(problems,)] = database.rows("SELECT count(*) FROM files WHERE problem <> ''")
    return Progress(int(facts.get("files", 0)), int(facts.get("indexed", 0)), int(problems), "files" in facts)


def origin(database: SessionDatabase, session: int, seq: int) -> tuple[Path, str, str] | None:
    """The place of a whole message: its file, the agent, the key. None if the index has all of it."""
    row = database.row(
        "SELECT file, agent, key FROM sessions WHERE number = ?1"
        " AND EXISTS (SELECT 1 FROM messages WHERE session = ?1 AND seq = ?2 AND is_cut)",
        (session, seq),
    )
    return (Path(os.fsdecode(row[0])), row[1], row[2]) if row else None


def copies(database: SessionDatabase, imported: Mapping[tuple[str, str], int]) -> dict[int, Copied]:
    """Which sessions were imported into nca, by their rows. `imported`: how many messages, by file and key."""
    found = {}
    for (path, key), messages in imported.items():
        row = database.row("SELECT number, messages FROM sessions WHERE file = ? AND key = ?", (os.fsencode(path), key))
        if row is not None:
            found[row[0]] = Copied(messages, is_whole=row[1] <= messages)
    return found


def kept(message: Message) -> tuple[Message, bool]:
    """A message as the index stores it: its searchable text, without pictures; and whether that is cut."""
    text = plain_text(message)
    is_found = bool(text)
    text = text or message.text
    is_cut = len(text) > KEPT_CHARS
    if is_cut:
        left_out = len(text) - KEPT_CHARS
        beginning, end = text[: KEPT_CHARS - _KEPT_AT_THE_END], text[-_KEPT_AT_THE_END:]
        text = f"{beginning}\n[… {left_out:,} characters …]\n{end}"
    return Message(message.role, text, name=message.name, source="" if is_found else "nca"), is_cut


def _id_of(connection: apsw.Connection, file: File, key: str) -> str:
    """An id for a session of a file: the same one each time the index is made, unless another session has it."""
    number = 0
    while True:
        named = b"\0".join(
            (file.agent.encode(), os.fsencode(file.path), key.encode("utf-8", "replace"), b"%d" % number)
        )
        found = blake2b(named, digest_size=5).hexdigest()
        row = connection.execute("SELECT file, key FROM sessions WHERE id = ?", (found,)).fetchone()
        if row is None or row == (os.fsencode(file.path), key):
            return found
        number += 1
