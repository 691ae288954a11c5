"""The searched sessions, nca's own and those of other agents; and which of them a client may see.

Each place is opened when it is first asked and again when its file was replaced. A place that cannot be read is named
in the answer, and the others answer without it.

A client sees the sessions of its own project, of projects that a person names, or all. Its project is the repository
around the folder that it starts the server in. A client that starts it elsewhere, as some editors do in the home
directory, may name its folders as roots. The home directory, and what is above it, is not a project: it has nearly
everything below it.
"""

from __future__ import annotations

import asyncio
import os
import threading
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import msgspec

from nca.agent.instruction_files import Project, real_home
from nca.errors import NcaError, SessionNotFound, StoreError, UsageError
from nca.humanize import one_line
from nca.messages import Entry
from nca.sessions.foreign_index import Copied
from nca.sessions.past_sessions import OWN, PastSession, PastSessions, Wanted
from nca.sessions.results import Hit
from nca.tools.recall import plain
from nca.tools.tool import ToolError

HIT_CHARS = 400
Imported = Mapping[tuple[str, str], int]
"""How many messages were imported from other agents, by file and key."""
Copies = Mapping[int, Copied]
"""By row, the sessions of a place that another place has too."""


class Place(ABC):
    """A source of sessions: nca's store, or the index of other agents' sessions. `path`: its database."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._open: PastSessions | None = None
        self._lock = threading.Lock()

    @property
    @abstractmethod
    def agents(self) -> Sequence[str]:
        """The names of the agents with sessions here."""

    @abstractmethod
    def _opened(self) -> PastSessions:
        """Open the database. Raises StoreError."""

    def sessions(self) -> PastSessions:
        """What can be searched now. Raises NcaError."""
        with self._lock:
            if self._open is not None and not self._open.is_current(self._path):
                with suppress(StoreError):
                    self._open.close()
                self._open = None
            self._open = self._open or self._opened()
            return self._open

    def whole(self, session: PastSession, entry: Entry) -> str:
        """The text of a message that is not kept whole in the place itself; "" if it is."""
        return ""

    def imported(self, sessions: PastSessions) -> Imported:
        """How many messages were imported into this place from other agents, by file and key."""
        return {}

    def copies(self, sessions: PastSessions, imported: Imported) -> Copies:
        """The sessions of this place that were imported into another, by their rows."""
        return {}

    def note(self) -> str:
        """A caution about an answer from here, such as sessions that are still missing; or ""."""
        return ""


class OwnStore(Place):
    """nca's own sessions, read without a lock. See `nca.sessions.Store.open`."""

    agents = (OWN,)

    def __init__(self, path: Path, url: str = "") -> None:
        super().__init__(path)
        self._url = url

    def _opened(self) -> PastSessions:
        return PastSessions.open(self._path, url=self._url)

    def imported(self, sessions: PastSessions) -> Imported:
        return sessions.imported()


@dataclass(frozen=True, slots=True)
class Recalled:
    """`sessions`: those of the hits, by id. `notes`: what the answer lacks."""

    hits: Sequence[Hit]
    sessions: Mapping[str, PastSession]
    notes: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Source:
    """A session, and the place that it is in."""

    session: PastSession
    place: Place
    sessions: PastSessions

    def entries(self, first: int, last: int) -> Iterator[Entry]:
        return self.sessions.messages(self.session, first, last)

    def text_of(self, entry: Entry) -> str:
        return self.place.whole(self.session, entry) or self.sessions.text_of(entry.message)


class History:
    """All sources together. Methods raise ToolError with a one-line message, and may be called from any thread."""

    def __init__(self, places: Sequence[Place], redact: Callable[[str], str] = str, scope: Scope | None = None) -> None:
        """redact: removes keys from a text; scope: which sessions may be seen, all without it."""
        self.redact = redact
        self.scope = scope or Scope()
        self._places = places

    @property
    def agents(self) -> list[str]:
        return list(dict.fromkeys(agent for place in self._places for agent in place.agents))

    def recall(self, question: str, wanted: Wanted, limit: int) -> Recalled:
        """The best messages of all places, best first. What was imported from one into another is found there."""
        wanted = replace(wanted, within=self.scope.allowed)
        opened, notes = self._opened(wanted)
        hits: list[Hit] = []
        known: dict[str, PastSession] = {}
        for place, own in opened:
            beside = [other for _, other in opened if other is not own]
            try:
                copied = {} if wanted.session else self._copies(place, own, opened)
                found = self._found(own, question, wanted, limit, beside)
                known |= {
                    id: self._shown(one)
                    for id in {hit.session for hit in found}
                    if (one := own.find(id, wanted.within))
                }
            except StoreError as error:
                notes.append(_problem(error))
            else:
                hits += [hit for hit in found if not _is_copy(hit, known.get(hit.session), copied)]
        hits.sort(key=lambda hit: -hit.score)
        return Recalled(hits[:limit], known, self._said(opened, notes))

    def sessions(self, wanted: Wanted, limit: int, offset: int) -> tuple[list[PastSession], int, list[str]]:
        """One page of the sessions, those used last first; how many there are in all; and what is missing.

        Those of subagents are found by recall, and not listed: there may be many of one session.
        """
        wanted = replace(wanted, with_subagents=False, within=self.scope.allowed)
        opened, notes = self._opened(wanted)
        found: list[PastSession] = []
        count = 0
        for place, own in opened:
            try:
                copies = self._copies(place, own, opened)
                whole = [number for number, copied in copies.items() if copied.is_whole]
                found += own.listed(wanted, offset + limit, but=whole)
                count += own.count(wanted, but=whole)
            except StoreError as error:
                notes.append(_problem(error))
        found.sort(key=lambda one: -one.updated_at)
        page = [self._shown(one) for one in found[offset : offset + limit]]
        return page, count, self._said(opened, notes)

    def find(self, session: str) -> Source:
        """The session with this id, or this beginning of one. Raises ToolError if there is none."""
        allowed = self.scope.allowed
        opened, notes = self._opened(Wanted())
        found: list[Source] = []
        for place, own in opened:
            try:
                if one := own.find(session, allowed):
                    found.append(Source(self._shown(one), place, own))
            except SessionNotFound as error:
                raise ToolError(str(error)) from None
            except StoreError as error:
                notes.append(_problem(error))
        exact = [one for one in found if session in (one.session.id, one.session.own_id)]
        if len(found) > 1 and not exact:
            some = ", ".join(one.session.id for one in found)
            raise ToolError(f"{one_line(session, 60)!r} could be any of {some}; give more of the id")
        if not found:
            because = "".join(f"; {note}" for note in notes)
            where = f" in {self.scope}" if allowed is not None else ""
            raise ToolError(
                f"there is no session {one_line(session, 60)!r}{where}; recall and sessions show the ids{because}"
            )
        return next(iter(exact or found))

    def _opened(self, wanted: Wanted) -> tuple[list[tuple[Place, PastSessions]], list[str]]:
        """The places that can hold what is wanted, and why others cannot be read. Raises ToolError if none can."""
        if wanted.agent and wanted.agent not in self.agents:
            raise ToolError(f"no agent {one_line(wanted.agent, 60)!r}; the agents are: {', '.join(self.agents)}")
        opened: list[tuple[Place, PastSessions]] = []
        problems: list[str] = []
        for place in self._places:
            if wanted.agent and wanted.agent not in place.agents:
                continue
            try:
                opened.append((place, place.sessions()))
            except NcaError as error:
                problems.append(_problem(error))
        if not opened:
            raise ToolError("; ".join(problems))
        return opened, problems

    def _found(
        self, own: PastSessions, question: str, wanted: Wanted, limit: int, beside: Sequence[PastSessions]
    ) -> list[Hit]:
        """Raises StoreError if `own` cannot be searched. One beside it that cannot be read weighs no words."""
        with suppress(StoreError):
            return own.search(question, wanted, limit, HIT_CHARS, beside=beside, clean=self._cleaned)
        return own.search(question, wanted, limit, HIT_CHARS, clean=self._cleaned)

    def _copies(self, place: Place, own: PastSessions, opened: Sequence[tuple[Place, PastSessions]]) -> Copies:
        """Raises StoreError if `own` cannot be read. Another place that cannot be read is named when it is asked."""
        imported: dict[tuple[str, str], int] = {}
        for other, sessions in opened:
            with suppress(StoreError):
                imported |= other.imported(sessions) if other is not place else {}
        return place.copies(own, imported)

    def _said(self, opened: Sequence[tuple[Place, PastSessions]], notes: Sequence[str]) -> list[str]:
        return [note for note in (*notes, *(place.note() for place, _ in opened)) if note]

    def _cleaned(self, text: str) -> str:
        return self.redact(plain(text))

    def _shown(self, one: PastSession) -> PastSession:
        return msgspec.structs.replace(one, title=self.redact(one.title))


def _is_copy(hit: Hit, session: PastSession | None, copies: Copies) -> bool:
    copied = copies.get(session.number) if session is not None else None
    return copied is not None and hit.seq <= copied.messages


def _problem(error: NcaError) -> str:
    return f"some sessions cannot be read: {error.message}"


_ROOTS_SECONDS = 2.0
"""How long a client may take to name its roots."""
_MOST_ROOTS = 20


@dataclass(slots=True)
class Scope:
    """directories: sessions in these and below them; None: all sessions. asks_for_roots: as long as there are none."""

    directories: tuple[str, ...] | None = None
    asks_for_roots: bool = False

    @classmethod
    def of_project(cls, directory: Path) -> Scope:
        """The project around a directory."""
        found = _project(directory)
        return cls(_both_names([found]) if found else (), asks_for_roots=found is None)

    @classmethod
    def of_directories(cls, directories: Iterable[Path]) -> Scope:
        """Raises UsageError for a folder that there is not."""
        paths = [one.expanduser().absolute() for one in directories]
        if missing := [path for path in paths if not os.path.isdir(path)]:
            raise UsageError(f"--directory: there is no folder {missing[0]}.")
        return cls(_both_names(paths))

    @property
    def allowed(self) -> tuple[str, ...] | None:
        """The directories, None for all. Raises ToolError if there is none."""
        if self.directories == ():
            raise ToolError(
                "no sessions can be shown: this client was started outside of a project and names no roots; the user"
                " can allow folders or all sessions, see nca mcp install --help"
            )
        return self.directories

    def __str__(self) -> str:
        match self.directories:
            case None:
                return "all projects"
            case ():
                return "the project that the client names"
            case some:
                return ", ".join(dict.fromkeys(os.path.realpath(one) for one in some))

    async def learn(self, session: Any) -> None:
        """Ask the client for its roots, if they are what says which project it is in.

        session: the SDK's ServerSession
        """
        if not self.asks_for_roots:
            return
        offered = session.client_capabilities
        if offered is None or offered.roots is None or not session.can_send_request:
            return
        from mcp import MCPError

        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # deprecated since 2026-07-28, and all that older clients have
                found = await asyncio.wait_for(session.list_roots(), _ROOTS_SECONDS)
        except (TimeoutError, MCPError):
            self.asks_for_roots = False
            return
        named = (urlsplit(str(root.uri)) for root in found.roots[:_MOST_ROOTS])
        folders = [Path(unquote(one.path)) for one in named if one.scheme == "file"]
        self.directories = _both_names([folder for one in folders if (folder := _project(one))])


def _project(directory: Path) -> Path | None:
    """The repository around a directory, or the directory; None for the home directory and what is above it."""
    home, real = real_home(), Path(os.path.realpath(directory))
    for one in (Project.around(real, home).root, real):
        if one is not None and not home.is_relative_to(one):
            return one
    return None


def _both_names(paths: Sequence[Path]) -> tuple[str, ...]:
    """The paths as they are written and as they are without links: agents name either."""
    return tuple(dict.fromkeys(name for path in paths for name in (str(path), os.path.realpath(path))))
