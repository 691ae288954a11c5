"""The stored sessions for a list that a person moves through: every look into the store happens on one thread.

A store on disk is read through a connection of its own, so that neither a key nor the chat's own writes ever wait for
a search.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TypeVar

from nca.errors import NcaError
from nca.sessions.preview import SessionPreview
from nca.sessions.results import SessionHit
from nca.sessions.session import SessionInfo
from nca.sessions.store import Store

T = TypeVar("T")

FOUND = 30
"""Sessions that a search of the full text brings in: more are not looked through, the words get another one."""


class SessionLoader:
    """Opened when first asked, closed with `close`, which waits for nothing."""

    def __init__(self, store: Store) -> None:
        self._given = store
        self._own: Store | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="nca-shelf")

    async def sessions(self) -> list[SessionInfo]:
        """All of them, the one used last first. Raises StoreError."""
        return await self._do(lambda store: store.list(None))

    async def preview(self, session_id: str) -> SessionPreview | None:
        """None where it is gone or cannot be read: opening it says why."""
        with suppress(NcaError):
            return await self._do(lambda store: store.preview(session_id))
        return None

    async def search(self, text: str) -> list[SessionHit]:
        """The sessions whose messages answer best; none where the store cannot be searched."""
        with suppress(NcaError):
            return await self._do(lambda store: store.search_sessions(text, FOUND))
        return []

    def close(self) -> None:
        self._thread.submit(self._close)
        self._thread.shutdown(wait=False)

    async def _do(self, look: Callable[[Store], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, lambda: look(self._store()))

    def _store(self) -> Store:
        if self._given.path is None:
            return self._given
        if self._own is None:
            self._own = Store.open(self._given.path, read_only=True)
        return self._own

    def _close(self) -> None:
        if self._own is not None:
            self._own.close()
