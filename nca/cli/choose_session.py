"""Which session the chat begins with: a new one, the last one here, or one that is named or chosen."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from nca.errors import UsageError
from nca.terminal.interrupts import Leave

if TYPE_CHECKING:
    from nca.sessions.session import SessionInfo
    from nca.sessions.store import Store
    from nca.terminal.panels.locked_session import Found, Key
    from nca.terminal.render.output import Output

_PICKED = 15
"""Sessions that `--resume` without an id offers where only lines can be shown."""


class WantedSession:
    """Which session a person wants; `has_screen`: it can be chosen with keys."""

    def __init__(self, *, is_continuing: bool, is_resuming: bool, session: str | None, has_screen: bool) -> None:
        self._is_continuing = is_continuing
        self._is_resuming = is_resuming
        self._session = session
        self._has_screen = has_screen

    @property
    def is_new(self) -> bool:
        return not (self._is_continuing or self._is_resuming)

    async def find(self, store: Store, output: Output) -> Found:
        """Asks a person where there is a choice.

        Raises SessionNotFound, UsageError; SessionLocked, which names the process, where nobody can be asked;
        Leave where the person leaves.
        """
        from nca.terminal.panels.locked_session import Found, settled

        info = await self._earlier(store, output)
        if info is None:
            return Found(None)
        found = await settled(store, info, _asked if _can_ask() else None)
        if found is None:
            raise Leave(0)
        return found

    async def _earlier(self, store: Store, output: Output) -> SessionInfo | None:
        if self._is_continuing:
            found = store.latest(str(Path.cwd()))
            if found is None:
                output.notice("There is no earlier session in this directory; this is a new one.")
            return found
        if not self._is_resuming:
            return None
        return store.find(self._session) if self._session else await self._picked(store)

    async def _picked(self, store: Store) -> SessionInfo | None:
        if not self._has_screen:
            return _numbered(store)
        from nca.terminal.panels.picker import Picker
        from nca.terminal.panels.session_loader import Shelf

        shelf = Shelf(store)
        try:
            chosen = await Picker(shelf, str(Path.cwd())).pick()
        finally:
            shelf.close()
        if chosen is None:
            raise Leave(0)
        return chosen


def _numbered(store: Store) -> SessionInfo | None:
    """The session that a person picks by its number; None for a new one."""
    from nca.terminal.render.session_lines import title, when
    from nca.terminal.render.wording import messages

    infos = store.list(limit=_PICKED)
    if not infos:
        raise UsageError("There is no session to go on with.")
    for number, info in enumerate(infos, 1):
        name = f"{number:3}" if _can_ask() else info.id
        print(f"{name}  {when(info.updated_at)}  {messages(info.messages):>13}  {title(info)[:60]}")
    if not _can_ask():
        raise UsageError("--resume needs an id here.", advice="`nca sessions list --all` shows every session.")
    while True:
        answer = _answer(f"1 to {len(infos)}, Enter for a new one: ")
        if not answer:
            return None
        if answer.isdigit() and 1 <= int(answer) <= len(infos):
            return infos[int(answer) - 1]


async def _asked(question: str, keys: Sequence[Key]) -> str:
    from nca.terminal.panels.locked_session import choices
    from nca.terminal.render.sanitize import one_line

    print(one_line(question))
    while True:
        answer = _answer(f"{choices(keys)}, Enter to leave: ")
        if answer in ("", "q"):
            return ""
        if answer in {key for key, _ in keys}:
            return answer


def _can_ask() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


def _answer(question: str) -> str:
    """What was typed, in small letters; "" at the end of the input."""
    try:
        return input(question).strip().lower()
    except EOFError:
        return ""
