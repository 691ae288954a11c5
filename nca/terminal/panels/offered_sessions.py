"""The sessions that `--resume` offers: nca's own and those in the stores of other agents."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

from nca.errors import UsageError
from nca.humanize import byte_size
from nca.sessions.session import SessionInfo, SessionPreview
from nca.sessions.store import Store
from nca.terminal.panels.session_loader import SessionLoader
from nca.transcripts.conversation_file import Imported, import_stored, place_of, unchanged
from nca.transcripts.formats.records import StoredSession
from nca.transcripts.formats.registry import format_named, stored_sessions

_LARGE_BYTES = 5 * 1024 * 1024
"""A larger file takes more than half a second to import."""
_SEPARATOR = "\0"
"""In an id it is that of no session of nca."""


class OtherSessions:
    """Sessions of other agents as rows of a list, newest first.

    agent      only that agent's, by name; "" for those of all agents in this directory
    """

    def __init__(self, env: Mapping[str, str], home: Path, directory: str, agent: str = "") -> None:
        self._env = env
        self._home = home
        self._directory = directory
        self._agent = agent
        self._stored: dict[str, StoredSession] = {}
        self.notes: tuple[str, ...] = ()

    def rows(self, store: Store) -> list[SessionInfo]:
        """The sessions, without those that nca has already as they are. `notes` then names what cannot be read."""
        agents = [self._agent] if self._agent else []
        found = stored_sessions(self._env, self._home, self._directory, agents=agents)
        self.notes = _condensed(found.notes)
        had = {} if self._agent else unchanged(store)
        new = [one for one in found.sessions if place_of(one) not in had]
        self._stored = {_id(one): one for one in new}
        return [_as_info(id, one) for id, one in self._stored.items()]

    def waiting_line(self, info: SessionInfo) -> str:
        """The notice before a session is opened; "" if it takes no time."""
        one = self._stored.get(info.id)
        if one is None or one.size_bytes < _LARGE_BYTES:
            return ""
        return f"Reading a session of {info.model} ({byte_size(one.size_bytes)}) …"

    def chosen(self, store: Store, info: SessionInfo) -> Imported:
        """The session to open: imported if it is another agent's. Raises InvalidMessages, SessionLocked, StoreError."""
        one = self._stored.get(info.id)
        return import_stored(store, one) if one is not None else Imported(info)

    def __contains__(self, session_id: str) -> bool:
        return session_id in self._stored


class OfferedSessions(SessionLoader):
    """Loads both kinds for the picker. `own`: whether nca's sessions are among them."""

    def __init__(self, store: Store, others: OtherSessions, *, own: bool) -> None:
        super().__init__(store)
        self._others = others
        self._own_too = own

    async def sessions(self) -> list[SessionInfo]:
        own = await super().sessions() if self._own_too else []
        others = await self._do(self._others.rows)
        return sorted([*own, *others], key=lambda info: -info.updated_at) if others else own

    async def preview(self, session_id: str) -> SessionPreview | None:
        if session_id in self._others:
            await asyncio.sleep(0)
            return None
        return await super().preview(session_id)


def agent_named(name: str) -> str:
    """The name, if it is that of another agent; else ""."""
    return name if format_named(name) else ""


def none_of(agent: str, notes: Sequence[str]) -> UsageError:
    """The error for a list without sessions; `agent`: of which agent only, or ""."""
    if not (found := format_named(agent)):
        return UsageError("There is no session to resume.")
    return UsageError(f"There is no session of {found.title} in this directory.", advice=" ".join(notes))


def _condensed(notes: Sequence[str]) -> tuple[str, ...]:
    """The first of several notes, and how many more there are: a store may have hundreds of files."""
    if len(notes) < 3:
        return tuple(notes)
    return (f"{notes[0]} {len(notes) - 1} more files could not be read.",)


def _id(one: StoredSession) -> str:
    return _SEPARATOR.join((one.agent, str(one.path), one.key))


def _as_info(id: str, one: StoredSession) -> SessionInfo:
    found = format_named(one.agent)
    title = found.title if found else one.agent
    return SessionInfo(id, "", one.directory, title, one.at, one.at, 0, False, f"{title}: {one.title or '(no title)'}")
