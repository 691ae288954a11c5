"""Which session the chat goes on with, and how where another process writes it: read, copied, or not at all."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import typer

from nca.errors import SessionLocked, UsageError

if TYPE_CHECKING:
    from nca.sessions.session import SessionInfo
    from nca.sessions.store import Store
    from nca.terminal.output import Output

_PICKED = 15
"""Sessions that `--resume` without an id offers."""

_ASK_HELD = "r to read it here, f to go on in a copy (fork), Enter to leave: "


class Found(NamedTuple):
    """The session to open, None for a new one; `is_held`: another process writes it, so it is for reading only."""

    session: SessionInfo | None
    is_held: bool = False


class Wish:
    """Which session a person wants: a new one, the last one here, or one that is named or chosen."""

    def __init__(self, *, is_continuing: bool, is_resuming: bool, session: str | None) -> None:
        self._is_continuing = is_continuing
        self._is_resuming = is_resuming
        self._session = session

    def find(self, store: Store, output: Output) -> Found:
        """Asks a person where there is a choice.

        Raises SessionNotFound, UsageError; SessionLocked, which names the process, where nobody can be asked;
        typer.Exit where the person leaves.
        """
        info = self._earlier(store, output)
        if info is None:
            return Found(None)
        try:
            store.refuse_held(info.id)
        except SessionLocked as error:
            if not _can_ask():
                raise
            return _settled(store, info, error)
        return Found(info)

    def _earlier(self, store: Store, output: Output) -> SessionInfo | None:
        if self._is_continuing:
            found = store.latest(str(Path.cwd()))
            if found is None:
                output.notice("There is no earlier session in this directory; this is a new one.")
            return found
        if self._is_resuming:
            return store.find(self._session) if self._session else _picked(store)
        return None


def _settled(store: Store, info: SessionInfo, error: SessionLocked) -> Found:
    from nca.terminal.sanitize import one_line

    print(f"{one_line(error.message)}.")
    while True:
        match _answer(_ASK_HELD):
            case "r" | "read":
                return Found(info, is_held=True)
            case "f" | "fork":
                return Found(store.fork(info.id))
            case "" | "q":
                raise typer.Exit(0)


def _picked(store: Store) -> SessionInfo | None:
    """The session that a person picks from a list; None for a new one."""
    from nca.terminal.sanitize import one_line

    infos = store.list(limit=_PICKED)
    if not infos:
        raise UsageError("There is no session to go on with.")
    if not _can_ask():
        raise UsageError("--resume needs an id here.", advice="`nca sessions list` shows them.")
    for number, info in enumerate(infos, 1):
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(info.updated_at))
        print(f"{number:3}  {when}  {info.messages:4} messages  {one_line(info.name or info.title, 60)}")
    while True:
        answer = _answer(f"1 to {len(infos)}, Enter for a new one: ")
        if not answer:
            return None
        if answer.isdigit() and 1 <= int(answer) <= len(infos):
            return infos[int(answer) - 1]


def _can_ask() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


def _answer(question: str) -> str:
    """What was typed, in small letters; "" at the end of the input."""
    try:
        return input(question).strip().lower()
    except EOFError:
        return ""
