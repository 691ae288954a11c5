"""The protocol of a reader of other agents' sessions, what it yields, and where agents keep their sessions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import msgspec

from nca.errors import InvalidMessages
from nca.messages import Message, Usage, clean_text
from nca.safe_files import open_ordinary
from nca.sessions.foreign_rows import MAGIC, foreign_tables
from nca.transcripts.formats.source import Source, decode


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """A message. Readers yield every message of the file, in the order of the file, also those of other branches.

    id        the agent's own id; messages made of one record share it; "" if the format has none: always live
    message   as `nca.shapes.shaped.as_chat_message` makes it: media in the shape of OpenAI's chat messages
    at        seconds since the epoch; 0 if unknown
    usage     what the provider reported for the request that this message answers
    model     the model that wrote it, or ""
    is_aside  no part of the conversation: a subagent's message, or a note that was never sent
    place     where it was read, for messages to people: "line 12"
    """

    message: Message
    id: str = ""
    at: float = 0.0
    usage: Usage | None = None
    model: str = ""
    is_aside: bool = False
    place: str = ""


class Compacted(msgspec.Struct, frozen=True, kw_only=True):
    """The agent replaced a part of what its model saw. It stands after the messages that it covers.

    summary        the text that the model saw from then on; "" if it was only cut
    kept           ids of earlier messages that the model still saw as they are; all others before it were replaced,
                   but system messages at the beginning
    is_unreadable  the summary is encrypted or missing: what it kept cannot be known
    trigger        "auto" or "manual"; "" if unknown
    tokens_before  0 if unknown, as `tokens_after`
    """

    summary: str
    id: str = ""
    kept: tuple[str, ...] = ()
    is_unreadable: bool = False
    trigger: str = ""
    tokens_before: int = 0
    tokens_after: int = 0
    cost: float | None = None
    at: float = 0.0
    place: str = ""


class Live(msgspec.Struct, frozen=True):
    """The ids of messages and compactions in the live branch. At most one, the last record; without it all are live."""

    ids: frozenset[str]


class About(msgspec.Struct, frozen=True, kw_only=True):
    """Facts about the session. Of several, the last value that is not empty counts, field by field.

    session    the agent's id of the session
    title      as the agent or the person named it
    directory  where it worked
    parent     the session that it was forked from or goes on
    """

    session: str = ""
    title: str = ""
    directory: str = ""
    model: str = ""
    parent: str = ""
    version: str = ""


class Unreadable(msgspec.Struct, frozen=True):
    """A part that could not be read: where ("line 12"), and why in a few words. The reader goes on after it."""

    place: str
    reason: str


Record = Said | Compacted | Live | About | Unreadable


class StoredSession(msgspec.Struct, frozen=True, kw_only=True):
    """A session in an agent's store, as far as it is known without reading it whole.

    agent      the format's name
    path       the file that holds it
    key        which of the file's sessions; "" if the file holds one
    directory  where it worked; "" if unknown
    at         last use, seconds since the epoch
    parent     the agent's id of the session whose subagent it is; "" for a session of its own
    """

    agent: str
    path: Path
    key: str = ""
    directory: str = ""
    title: str = ""
    parent: str = ""
    at: float = 0.0
    size_bytes: int = 0


class Format(Protocol):
    """A format of other agents' sessions. `name` is a word for the command line, `title` the agent's name."""

    name: str
    title: str

    def knows(self, source: Source) -> bool:
        """Whether the content is of this format, by its beginning (`Source.head`); it never raises."""

    def sessions(self, source: Source) -> Iterable[StoredSession]:
        """The sessions that the file holds, from its beginning or its index where possible. A file that is no
        store of several holds one."""

    def read(self, source: Source, key: str = "") -> Iterator[Record]:
        """The records of one session, streaming. What cannot be read becomes Unreadable; fields that this reader does
        not know are ignored. Raises InvalidMessages if nothing can be read."""

    def files(self, env: Mapping[str, str], home: Path) -> Iterable[Path]:
        """The files in which the agent keeps sessions on this machine, without opening them; none if it is not here."""


@runtime_checkable
class Grows(Protocol):
    """A format of JSON lines whose file only grows, and whose reader hands out all messages so far at some lines.

    Reading may begin at such a line: the same messages come from there on.
    """

    hands_out_all: bool


@runtime_checkable
class KeepsSubagents(Protocol):
    """A format that keeps what subagents did in files of their own."""

    def subagents(self, env: Mapping[str, str], home: Path) -> Iterable[Path]:
        """These files, without opening them. Each is read as a session; its `StoredSession` names the parent."""


_TITLE_CHARS = 120
_LONGEST_LINE_BYTES = 8192


def stored(
    agent: str, source: Source, *, key: str = "", directory: str = "", title: str = "", at: float = 0.0
) -> StoredSession:
    """A session of a file. Time and size are those of the file unless `at` is given."""
    size = 0
    if source.path is not None:
        with suppress(OSError):
            status = source.path.stat()
            at, size = at or status.st_mtime, status.st_size
    return StoredSession(
        agent=agent,
        path=source.path or Path(source.place),
        key=key,
        directory=directory,
        title=" ".join(title[: _TITLE_CHARS * 10].split())[:_TITLE_CHARS],
        at=at,
        size_bytes=size,
    )


def data_folder(env: Mapping[str, str], home: Path) -> Path:
    """Where programs keep their data by the XDG base directories."""
    given = env.get("XDG_DATA_HOME", "")
    return Path(given) if given.startswith("/") else home / ".local" / "share"


def chosen_folder(given: str | None, home: Path) -> Path | None:
    """The folder that an environment variable names, in which `~` is the home; None without one."""
    if not given:
        return None
    return home / given[2:] if given.startswith("~/") else home if given == "~" else Path(given)


def first_line(path: Path) -> str:
    """The first line of a small file of another program; "" if it cannot be read."""
    try:
        with open_ordinary(path) as file:
            return clean_text(file.read(_LONGEST_LINE_BYTES).decode("utf-8", "replace").split("\n", 1)[0].strip())
    except (OSError, ValueError):
        return ""


def is_database_with(source: Source, **tables: Sequence[str]) -> bool:
    """Whether the file is a SQLite database with these tables and columns. Never raises."""
    try:
        if source.path is None or not source.head.startswith(MAGIC):
            return False
        found = foreign_tables(source.path)
        return all(table in found and set(columns) <= set(found[table]) for table, columns in tables.items())
    except InvalidMessages:
        return False


def newest_key(sessions: Iterable[StoredSession]) -> str:
    """The key of the session that was used last; "" if there is none."""
    return max(sessions, key=lambda one: one.at, default=StoredSession(agent="", path=Path())).key


def json_file(path: Path) -> Any:
    """The JSON of a small file; None if it cannot be read or is no JSON."""
    try:
        with open_ordinary(path) as file:
            return decode(file.read())
    except (OSError, ValueError, RecursionError):
        return None


def folders_above(env: Mapping[str, str]) -> list[Path]:
    """The folder that one works in, and those above it: some agents keep sessions beside the project."""
    given = env.get("PWD", "")
    return [Path(given), *Path(given).parents] if given.startswith("/") else []
