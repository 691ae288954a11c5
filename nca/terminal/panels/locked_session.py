"""What to do with a session that another process has open: read it, fork it, or leave it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from nca.errors import SessionLocked
from nca.sessions.session import SessionInfo
from nca.sessions.store import Store

KeyChoice = tuple[str, str]
"""A key, and what it does."""
Ask = Callable[[str, Sequence[KeyChoice]], Awaitable[str]]
"""Asks a question; returns the chosen key, or "" if the person cancels."""

_CHOICES: tuple[KeyChoice, ...] = (("r", "read it here"), ("f", "continue in a copy (fork)"))
_TAKE_OVER: KeyChoice = ("t", "take it over, so that it can only be read there")


class SessionToOpen(NamedTuple):
    """The session to open, or None for a new one. `read_only` if another process has it open."""

    session: SessionInfo | None
    read_only: bool = False


def choices_line(keys: Sequence[KeyChoice]) -> str:
    """The keys on one line: "r to read it here, f to continue in a copy"."""
    return ", ".join(f"{key} to {about}" for key, about in keys)


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
                return SessionToOpen(info, read_only=True)
            case "f":
                return SessionToOpen(store.fork(info.id))
            case "t":
                store.take_over(info.id)
                return SessionToOpen(info)
        return None
    return SessionToOpen(info)
