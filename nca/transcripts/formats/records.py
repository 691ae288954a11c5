"""What a reader of other agents' sessions yields, a session while it is read, and the places where agents keep them.

A format is a table of formats.toml (its name, and where things are), how its files are known (`Format`), and a reading
(`Reading`: what is odd about it).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from nca.errors import InvalidMessages
from nca.messages import Message, Usage
from nca.safe_files import paths_below
from nca.transcripts.formats.row import Row
from nca.transcripts.formats.source import BadLine, Source, chosen_folder, data_folder


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """A message. Readers yield every message of the file, in the order of the file, also those of other branches.

    id        the agent's own id; messages made of one record share it; "" if the format has none: always live
    message   as `nca.shapes.shaped.as_chat_message` makes it: media in the shape of OpenAI's chat messages
    at        seconds since the epoch; 0 if unknown
    usage     of an answer: what the provider reported for its request
    model     of an answer: the model that wrote it, or ""
    is_aside  not part of the conversation: a subagent's message, or a note that was never sent
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
    """The agent replaced a part of what its model saw. It comes after the messages that it covers.

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
    at         last use, seconds since the epoch; 0 if only the file tells
    """

    session: str = ""
    title: str = ""
    directory: str = ""
    model: str = ""
    parent: str = ""
    version: str = ""
    at: float = 0.0


class Unreadable(msgspec.Struct, frozen=True):
    """A part that could not be read: where ("line 12"), and why in a few words. The reader goes on after it."""

    place: str
    reason: str


Record = Said | Compacted | Live | About | Unreadable


class Reading:
    """A session while it is read. `id`, `at` and `place` are those of the record at hand, as in `Said`."""

    id = place = ""
    at = 0.0

    def records(self, source: Source) -> Iterator[Record]:
        """The records of a file of JSON lines, and Unreadable for each bad line.

        A last line without its end is none: the agent is writing it, or was stopped.
        """
        for line in source.rows():
            if not isinstance(line, BadLine):
                number, row = line
                self.place = f"line {number}"
                yield from self.record(row)
            elif not line.is_cut:
                yield Unreadable(f"line {line.number}", line.reason)
        yield from self.ended()

    def record(self, row: Row) -> Iterable[Record]:
        """The records of a line."""
        return ()

    def ended(self) -> Iterable[Record]:
        """The records that are known after the last line."""
        return ()

    def said(self, *messages: Message | None, **facts: Any) -> Iterator[Said]:
        """The records of messages, with these facts of `Said`; none of nothing."""
        for message in filter(None, messages):
            yield Said(message=message, id=self.id, at=self.at, place=self.place, **facts)

    def compacted(self, summary: str = "", **facts: Any) -> Compacted:
        return Compacted(summary=summary, id=self.id, at=self.at, place=self.place, **facts)

    def summarized(self, summary: str, **facts: Any) -> Compacted:
        """By a summary, which cannot be read where it is missing."""
        return self.compacted(summary, is_unreadable=not summary, **facts)

    def unreadable(self, reason: str) -> Unreadable:
        return Unreadable(self.place, reason)


class StoredSession(msgspec.Struct, frozen=True, kw_only=True):
    """A session in an agent's store: the facts that are known without reading it whole.

    agent      the format's name
    path       the file that holds it
    key        which of the file's sessions; "" if the file holds one
    directory  where it worked; "" if unknown
    at         last use, seconds since the epoch
    parent     the agent's id of the session that started it as a subagent; "" if none did
    """

    agent: str
    path: Path
    key: str = ""
    directory: str = ""
    title: str = ""
    parent: str = ""
    at: float = 0.0
    size_bytes: int = 0


_TITLE_CHARS = 120


class Places(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A format's table in formats.toml.

    title       the agent's name, if it is not the format's
    module      the module of this package that holds the format, if it is not named as the format is; `module:NAME` for
                one that is not its `FORMAT`
    variables   environment variables that name the agent's folder; the first that is set counts
    own_folder  that folder below the person's home, if none is set; `.local/share` is where XDG_DATA_HOME says
    mac_folder  one more below the home, if none is set
    patterns    the sessions' files in these; none if they are found in another way
    kinds       of the records by which a file is known
    added       how a text in the user's role begins that the program wrote
    about       the places of the facts about a session in an object that has them: "model.name" is inside of another
                one, "id name" the first of two that is not empty
    """

    title: str = ""
    module: str = ""
    variables: tuple[str, ...] = ()
    own_folder: str = ""
    mac_folder: str = ""
    patterns: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    about: dict[str, str] = {}


PLACES = msgspec.toml.decode(Path(__file__).with_name("formats.toml").read_bytes(), type=dict[str, Places])


def facts(agent: str, row: Row) -> About:
    """The facts about a session in an object, at the places of this format."""
    places = PLACES[agent].about
    times = (row.seconds(*place.split(".")) for place in places.get("at", "").split())
    found = {fact: row.first(*place.split()) for fact, place in places.items() if fact != "at"}
    return msgspec.structs.replace(About(at=next(filter(None, times), 0.0)), **found)


class Format(ABC):
    """A format of other agents' sessions. `name` is a word for the command line, `title` the agent's name.

    reading        makes what reads one session, if a file holds only one
    hands_out_all  the file is of JSON lines and only grows, and the reader hands out all messages so far at some lines:
                   reading may begin at such a line, and the same messages come from there on
    """

    hands_out_all = False

    def __init__(self, name: str, reading: Callable[[], Reading] = Reading) -> None:
        self.name, self.reading = name, reading
        self.places = PLACES[name]
        self.title = self.places.title or name

    @abstractmethod
    def knows(self, source: Source) -> bool:
        """Whether the content is of this format, by its beginning (`Source.head`); it never raises."""

    def about(self, source: Source) -> About:
        """The facts about a file's session that are known without reading it whole."""
        return About()

    def sessions(self, source: Source) -> Iterable[StoredSession]:
        """The sessions that the file holds, from its beginning or its index where possible. A file that is no
        store of several holds one."""
        return [self.stored(source, self.about(source))]

    def newest_key(self, source: Source) -> str:
        """The key of the session that was used last; "" if there is none."""
        return max(self.sessions(source), key=lambda one: one.at, default=StoredSession(agent="", path=Path())).key

    def stored(self, source: Source, about: About, key: str = "", *, parent: str = "") -> StoredSession:
        """A session of a file. Time and size are those of the file, unless `about` has a time.

        parent  of a subagent's: the agent's id of the session that started it
        """
        at, size = about.at, 0
        if source.path is not None:
            with suppress(OSError):
                status = source.path.stat()
                at, size = at or status.st_mtime, status.st_size
        return StoredSession(
            agent=self.name,
            path=source.path or Path(source.place),
            key=key,
            directory=about.directory,
            title=" ".join(about.title[: _TITLE_CHARS * 10].split())[:_TITLE_CHARS],
            parent=parent,
            at=at,
            size_bytes=size,
        )

    def records(self, source: Source, key: str) -> Iterable[Record]:
        """The records of `read`, besides `about`."""
        return self.reading().records(source)

    def read(self, source: Source, key: str = "") -> Iterator[Record]:
        """The records of one session, streaming. What cannot be read becomes Unreadable; fields that this reader does
        not know are ignored. Raises InvalidMessages if no message can be read."""
        has_message, problem, names = False, "", dict[str, str]()
        try:
            yield self.about(source)
            for record in self.records(source, key):
                has_message = has_message or isinstance(record, Said)
                if isinstance(record, Unreadable) and not problem:
                    problem = f" ({record.place}: {record.reason})"
                yield _completed(record, names) if isinstance(record, Said) else record
        except InvalidMessages as error:
            if not has_message:
                raise
            yield Unreadable(source.place, error.message.removeprefix(f"{source.place}: "))
        if not has_message:
            raise InvalidMessages(f"{source.place}: holds no messages of {self.title}{problem}.")

    def folder(self, env: Mapping[str, str], home: Path) -> Path:
        """The agent's folder."""
        own = self.places.own_folder
        given = next(filter(None, map(env.get, self.places.variables)), None)
        in_data = own.partition(".local/share/")[2]
        return chosen_folder(given, home) or (data_folder(env, home) / in_data if in_data else home / own)

    def files(self, env: Mapping[str, str], home: Path) -> Iterable[Path]:
        """The files in which the agent keeps sessions on this machine, without opening them; none if it is not here."""
        folders, places = [self.folder(env, home)], self.places
        if places.mac_folder and not any(map(env.get, places.variables)):
            folders.append(home / places.mac_folder)
        found = (paths_below(folder, pattern) for folder in folders for pattern in places.patterns)
        return [path for paths in found for path in sorted(paths)]

    def subagents(self, env: Mapping[str, str], home: Path) -> Iterable[Path]:
        """Files of subagents, if they have their own, without opening them. Each is read as a session; its
        `StoredSession` names the parent."""
        return ()


def _completed(said: Said, names: dict[str, str]) -> Said:
    """The message as a reader need not make it: a result has its tool's name, and only an answer a model and usage.

    names  the tools by the ids of their calls so far
    """
    message = said.message
    if message.role == "assistant":
        names.update((call.id, call.name) for call in message.tool_calls)
        return said
    if message.role == "tool" and not message.name:
        message = msgspec.structs.replace(message, name=names.get(message.tool_call_id, ""))
    return msgspec.structs.replace(said, message=message, model="", usage=None)
