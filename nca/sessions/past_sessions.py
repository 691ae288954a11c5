"""All sessions of a database for reading: list them by folder, agent and time, search them, read their messages.

It reads nca's own store and the index of other agents' sessions, which keep sessions and messages in the same tables.
Names and titles are untrusted text.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

from nca.errors import SessionNotFound
from nca.humanize import one_line
from nca.messages import Entry, Message, clean_text
from nca.sessions import results
from nca.sessions.access import as_origin
from nca.sessions.mended import stored_message
from nca.sessions.opening import SESSIONS, Kind, open_for_reading
from nca.sessions.passages import plain_text
from nca.sessions.paths import log_of
from nca.sessions.query import Only
from nca.sessions.results import Hit
from nca.sessions.sql import SessionDatabase

OWN = "nca"
"""The agent's name for the sessions of the store."""
OWN_COLUMNS = (
    "SELECT number, id, 'nca' AS agent, id AS own_id, CASE WHEN name <> '' THEN name ELSE title END AS title,"
    " directory, updated_at, (SELECT coalesce(max(seq), 0) FROM messages WHERE session = number) AS messages,"
    " '' AS parent FROM sessions"
)
"""The columns of a PastSession, in the store."""
_LISTED_MATCHES = 5
MOST = 2**62
"""More rows than there are: no limit."""
_READ_AT_ONCE = 20


class PastSession(msgspec.Struct, frozen=True):
    """A session in a list.

    number      its row; the same number may mean another session in another database
    own_id      the id that its own agent knows it by
    updated_at  last use, in seconds since the epoch
    parent      the agent's id of the session that started it as a subagent, or ""
    """

    number: int
    id: str
    agent: str
    own_id: str
    title: str
    directory: str
    updated_at: float
    messages: int
    parent: str = ""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which sessions and messages: of one session (its id), of an agent, in a directory or below it, from a time on.

    "" and 0: any. with_subagents: also what subagents did in sessions of their own. within: in one of these directories
    or below it; None: anywhere.
    """

    session: str = ""
    agent: str = ""
    directory: str = ""
    since: float = 0.0
    with_subagents: bool = True
    within: tuple[str, ...] | None = None


class PastSessions:
    """The sessions of one database. All methods raise StoreError."""

    def __init__(self, database: SessionDatabase, columns: str = OWN_COLUMNS) -> None:
        """columns: the SELECT that gives the fields of a PastSession."""
        self.database = database
        self._sessions = f"SELECT * FROM ({columns}) AS past WHERE messages > 0"  # noqa: S608
        self._stamp = _stamp(database.path, is_copy=False)

    @classmethod
    def open(cls, path: Path, kind: Kind = SESSIONS, columns: str = OWN_COLUMNS, *, url: str = "") -> PastSessions:
        """Open without writing; a missing file reads as empty. `url`: of the PostgreSQL database, as in `Store.open`.

        Raises StoreTooNew, StoreDamaged, StoreError.
        """
        if url:
            from nca.sessions.postgres import connect

            return cls(connect(url, path), columns)
        before = _stamp(path, is_copy=True)
        past = cls(open_for_reading(path, kind).database, columns)
        past._stamp = before if past.database.path is None else _stamp(path, is_copy=False)
        return past

    def is_current(self, path: Path) -> bool:
        """Whether what was opened is still what is at `path`.

        A missing file, an empty one and one of an older schema are read into memory: they must not have changed.
        """
        return self._stamp == _stamp(path, is_copy=self.database.path is None)

    def listed(self, wanted: Wanted, limit: int = MOST, *, but: Collection[int] = ()) -> list[PastSession]:
        """The sessions used last come first. `wanted.session` may be the beginning of an id, or the agent's own id.

        but  the rows of sessions to leave out
        """
        condition, bound = _condition(wanted, but)
        rows = self.database.rows(
            f"{self._sessions}{condition} ORDER BY updated_at DESC, number DESC LIMIT ?", (*bound, limit)
        )
        return [PastSession(*row) for row in rows]

    def count(self, wanted: Wanted, *, but: Collection[int] = ()) -> int:
        condition, bound = _condition(wanted, but)
        [(count,)] = self.database.rows(f"SELECT count(*) FROM ({self._sessions}{condition}) AS found", bound)  # noqa: S608
        return int(count)

    def search(
        self,
        question: str,
        wanted: Wanted,
        limit: int,
        chars: int,
        *,
        beside: Sequence[PastSessions] = (),
        clean: Callable[[str], str] = str,
    ) -> list[Hit]:
        """The best messages for a question, best first. Scores can be compared with those of `beside`, which are asked
        the same. `clean` changes what snippets are cut from."""
        only = None
        if wanted != Wanted():
            found = self.listed(wanted)
            if not found:
                return []
            only = Only(tuple(one.number for one in found), sum(one.messages for one in found), wanted.since)
        others = [other.database for other in beside]
        return results.find(self.database, question, None, limit, chars=chars, only=only, beside=others, clean=clean)

    def find(self, prefix: str, within: tuple[str, ...] | None = None) -> PastSession | None:
        """The session with this id, beginning of an id, or agent's own id; None if there is none in the directories
        `within`, or below them.

        Raises SessionNotFound if it could be several.
        """
        wanted = clean_text(prefix).strip()
        found = self.listed(Wanted(session=wanted, within=within), _LISTED_MATCHES + 1) if wanted else []
        exact = [one for one in found if wanted in (one.id, one.own_id)]
        if len(found) > 1 and not exact:
            some = ", ".join(one.id for one in found[:_LISTED_MATCHES])
            raise SessionNotFound(f"{one_line(wanted, 60)!r} could be any of {some}", advice="Give more of the id.")
        return next(iter(exact or found), None)

    def imported(self) -> dict[tuple[str, str], int]:
        """The numbers of messages imported from other agents, by file and key."""
        rows = self.database.rows("SELECT origin FROM sessions WHERE origin <> '' ORDER BY number")
        found = [origin for (body,) in rows if (origin := as_origin(body))]
        return {(origin.path, origin.key): origin.messages for origin in found}

    def messages(self, session: PastSession, first: int, last: int) -> Iterator[Entry]:
        """The messages first … last that are there, a few at a time. Of a damaged one, what can be read."""
        last = min(last, session.messages)
        for begin in range(max(1, first), last + 1, _READ_AT_ONCE):
            rows = self.database.rows(
                "SELECT seq, at, role, body, coalesce(octet_length(body), 0) FROM messages"
                " WHERE session = ? AND seq BETWEEN ? AND ? ORDER BY seq",
                (session.number, begin, min(last, begin + _READ_AT_ONCE - 1)),
            )
            for seq, at, role, body, size in rows:
                yield Entry(seq, stored_message(body, role, seq, size), at)

    def text_of(self, message: Message) -> str:
        """The whole text of a message: what it says, its calls, and an output that it only points to."""
        return plain_text(message, results.outputs_beside(self.database)) or message.text

    def close(self) -> None:
        self.database.close()


def _condition(wanted: Wanted, but: Collection[int] = ()) -> tuple[str, tuple[str | float, ...]]:
    """SQL that follows a condition, and its values."""
    of_session = "(id = ? OR own_id = ? OR substr(id, 1, length(?)) = ?)"
    possible: list[tuple[object, str, tuple[str | float, ...]]] = [
        (but, f"number NOT IN ({', '.join(map(str, but))})", ()),
        (wanted.session, of_session, (wanted.session,) * 4),
        (wanted.agent, "agent = ?", (wanted.agent,)),
        (wanted.directory, *_in_one_of((wanted.directory,))),
        (wanted.within is not None, *_in_one_of(wanted.within or ())),
        (not wanted.with_subagents, "parent = ''", ()),
        (wanted.since, "updated_at >= ?", (wanted.since,)),
    ]
    parts = [(sql, bound) for is_asked, sql, bound in possible if is_asked]
    return "".join(f" AND {sql}" for sql, _ in parts), tuple(value for _, bound in parts for value in bound)


def _in_one_of(directories: Sequence[str]) -> tuple[str, tuple[str | float, ...]]:
    """A condition, and its values, for sessions in one of the directories or below it."""
    one = "directory = ? OR substr(directory, 1, ?) = ?"
    folders = [directory.rstrip("/") for directory in directories]
    bound = tuple(value for folder in folders for value in (folder or "/", len(folder) + 1, f"{folder}/"))
    return f"({' OR '.join([one] * len(folders)) or 'FALSE'})", bound


def _stamp(path: Path | None, *, is_copy: bool) -> tuple[int, ...]:
    """The identity of a file, which differs for another one in its place and, for a copy, after a change."""
    found: list[int] = []
    for one in (path, log_of(path)) if path is not None and is_copy else (path,):
        with suppress(OSError):
            if one is not None:
                status = one.stat()
                found += (status.st_dev, status.st_ino)
                found += (status.st_size, status.st_mtime_ns) if is_copy else ()
    return tuple(found)
