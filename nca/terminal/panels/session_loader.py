"""Load and search stored sessions on a thread, so that keys and the chat's own writes never wait for a search.

A store on disk is read through a connection of its own.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import NamedTuple, TypeVar

from nca.errors import NcaError, SessionLocked, SessionNotFound
from nca.humanize import local_time
from nca.sessions.results import SessionHit
from nca.sessions.session import SessionInfo, SessionPreview
from nca.sessions.sql import Whose
from nca.sessions.store import Store
from nca.terminal.render.sanitize import one_line
from nca.terminal.render.sessions import short_id, title

T = TypeVar("T")

FOUND = 30
"""Most sessions that a full-text search returns. Nobody reads more; they refine the search instead."""


class SessionLoader:
    """Opens its connection on first use. `close` does not wait."""

    def __init__(self, store: Store) -> None:
        self._store_of_chat = store
        self._own: Store | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="nca-sessions")

    async def sessions(self) -> list[SessionInfo]:
        """All sessions, most recently used first. Raises StoreError."""
        return await self._do(lambda store: store.list(None))

    async def whose(self, infos: Sequence[SessionInfo]) -> dict[str, Whose]:
        """As `Store.whose`."""
        return await self._do(lambda store: store.whose([info.id for info in infos]))

    async def preview(self, session_id: str) -> SessionPreview | None:
        """A preview of the session; None if it is gone or unreadable, which opening it will explain."""
        with suppress(NcaError):
            return await self._do(lambda store: store.preview(session_id))
        return None

    async def search(self, text: str) -> list[SessionHit]:
        """The best matching sessions; none if the store cannot be searched."""
        with suppress(NcaError):
            return await self._do(lambda store: store.search_sessions(text, FOUND))
        return []

    def close(self) -> None:
        self._thread.submit(self._close)
        self._thread.shutdown(wait=False)

    async def _do(self, look: Callable[[Store], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, lambda: look(self._connection()))

    def _connection(self) -> Store:
        if self._store_of_chat.path is None:
            return self._store_of_chat
        if self._own is None:
            self._own = Store.open(self._store_of_chat.path, read_only=True, url=self._store_of_chat.url)
        return self._own

    def _close(self) -> None:
        if self._own is not None:
            self._own.close()


KeyChoice = tuple[str, str]
"""A key, and its action."""
Ask = Callable[[str, Sequence[KeyChoice]], Awaitable[str]]
"""Asks a question; returns the chosen key, or "" if the person cancels."""

_CHOICES: tuple[KeyChoice, ...] = (("r", "read it here"), ("f", "continue in a copy (fork)"))
_TAKE_OVER: KeyChoice = ("t", "take it over, so that it can only be read there")


class SessionToOpen(NamedTuple):
    """The session to open, or None for a new one.

    read_only    another process has it open
    is_freed     another process had it open, and left before the person answered
    forked_from  the id of the session that it was copied from just now, or ""
    """

    session: SessionInfo | None
    read_only: bool = False
    is_freed: bool = False
    forked_from: str = ""


def choices_line(keys: Sequence[KeyChoice]) -> str:
    """The keys on one line: "r to read it here, f to continue in a copy"."""
    return ", ".join(f"{key} to {about}" for key, about in keys)


_CANDIDATES = 4
_CANDIDATE_CHARS = 40
_WANTED_CHARS = 80


def find_titled(store: Store, wanted: str) -> SessionInfo:
    """The session with this id or name, or with this title, its beginning, or a word of it that no other title has.

    Raises SessionNotFound, with the candidates where it could be several.
    """
    try:
        return store.find(wanted)
    except SessionNotFound:
        said = " ".join(wanted.lower().split())
        ways = (rf"{re.escape(said)}\Z", re.escape(said), rf".*\b{re.escape(said)}\b")
        infos = store.list(limit=None)
        for way in ways if said else ():
            found = [info for info in infos if re.match(way, title(info).lower())]
            if len(found) == 1:
                return found[0]
            if found:
                named = (
                    f"{short_id(info.id)} “{title(info, _CANDIDATE_CHARS)}” ({local_time(info.updated_at)})"
                    for info in found[:_CANDIDATES]
                )
                more = " …" if len(found) > _CANDIDATES else ""
                raise SessionNotFound(
                    f"“{one_line(wanted, _WANTED_CHARS)}” could be any of {', '.join(named)}{more}",
                    advice="An id, or more of the title, chooses one.",
                ) from None
        raise


def _is_held(store: Store, info: SessionInfo) -> bool:
    try:
        store.refuse_held(info.id)
    except SessionLocked:
        return True
    return False


async def resolve_lock(store: Store, info: SessionInfo, ask: Ask | None) -> SessionToOpen | None:
    """Decide how to open a session; None if the person cancels.

    Raises SessionLocked, which names the other process, if the session is locked and `ask` is None.
    """
    try:
        store.refuse_held(info.id)
    except SessionLocked as error:
        if ask is None:
            raise
        choices = (*_CHOICES, _TAKE_OVER) if store.can_take_over else _CHOICES
        match await ask(f"{error.message}.", choices):
            case "r":
                # The answer may take long, and the other process may have left by then.
                is_held = _is_held(store, info)
                return SessionToOpen(info, read_only=is_held, is_freed=not is_held)
            case "f":
                return SessionToOpen(store.fork(info.id), forked_from=info.id)
            case "t":
                store.take_over(info.id)
                return SessionToOpen(info)
        return None
    return SessionToOpen(info)
