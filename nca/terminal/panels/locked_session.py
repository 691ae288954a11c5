"""A session that another process writes: read it, go on in a copy, or leave it; a person decides."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from nca.errors import SessionLocked
from nca.sessions.session import SessionInfo
from nca.sessions.store import Store

Key = tuple[str, str]
"""What is pressed or typed, and what it does."""
Ask = Callable[[str, Sequence[Key]], Awaitable[str]]
"""Puts a question; the key that was chosen, "" where the person leaves it."""


def choices(keys: Sequence[Key]) -> str:
    """The keys on one line, for where they are typed: "r to read it here, f to go on in a copy"."""
    return ", ".join(f"{key} to {about}" for key, about in keys)


_KEYS: tuple[Key, ...] = (("r", "read it here"), ("f", "go on in a copy (fork)"))


class Found(NamedTuple):
    """The session to open, None for a new one; `is_held`: another process writes it, so it is for reading only."""

    session: SessionInfo | None
    is_held: bool = False


async def settled(store: Store, info: SessionInfo, ask: Ask | None) -> Found | None:
    """How to open the session; None where the person leaves it.

    Raises SessionLocked, which names the process, where nobody can be asked (`ask` is None).
    """
    try:
        store.refuse_held(info.id)
    except SessionLocked as error:
        if ask is None:
            raise
        match await ask(f"{error.message}.", _KEYS):
            case "r":
                return Found(info, is_held=True)
            case "f":
                return Found(store.fork(info.id))
        return None
    return Found(info)
