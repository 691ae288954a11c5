"""Choose the session that the chat opens: a new one, the last one here, or one that is named or picked."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from nca.cli.early_questions import can_ask, typed_answer, wrapped
from nca.cli.printing import echo
from nca.cli.startup import latest_here
from nca.errors import UsageError
from nca.terminal.interrupts import Leave

if TYPE_CHECKING:
    from nca.sessions.session import SessionInfo
    from nca.sessions.store import Store
    from nca.terminal.panels.offered_sessions import OtherSessions
    from nca.terminal.panels.session_loader import KeyChoice, SessionToOpen
    from nca.terminal.render.output import Output

_LISTED = 15
"""Sessions that `--resume` without an id lists in plain mode."""


class WantedSession:
    """The session that the command line asks for. `has_screen`: it can be picked with the keys."""

    def __init__(self, *, is_continuing: bool, is_resuming: bool, session: str | None, has_screen: bool) -> None:
        self._is_continuing = is_continuing
        self._is_resuming = is_resuming
        self._session = session
        self._has_screen = has_screen
        self._others: OtherSessions | None = None

    @property
    def is_new(self) -> bool:
        return not (self._is_continuing or self._is_resuming)

    async def find(self, store: Store, output: Output) -> SessionToOpen:
        """The session to open. Asks the person if there is a choice.

        Raises SessionNotFound, UsageError; SessionLocked if nobody can be asked; Leave if the person cancels.
        """
        from nca.terminal.panels.session_loader import SessionToOpen, resolve_lock

        info = await self._earlier(store, output)
        if info is not None and self._others is not None:
            if waiting := self._others.waiting_line(info):
                output.notice(waiting)
            imported = self._others.chosen(store, info)
            info = imported.info
            for note in (*self._others.notes, *imported.notes):
                output.notice(note)
        if info is None:
            return SessionToOpen(None)
        found = await resolve_lock(store, info, _ask if can_ask() else None)
        if found is None:
            raise Leave(0)
        return found

    async def _earlier(self, store: Store, output: Output) -> SessionInfo | None:
        if self._is_continuing:
            return latest_here(store, output.notice)
        if not self._is_resuming:
            return None
        from nca.terminal.panels.offered_sessions import OtherSessions, agent_named
        from nca.terminal.panels.session_loader import find_titled

        agent = agent_named(self._session) if self._session else ""
        if self._session and not agent:
            return find_titled(store, self._session)
        self._others = OtherSessions(os.environ, Path.home(), str(Path.cwd()), agent)
        if self._has_screen:
            return await _pick_on_screen(store, self._others, agent)
        return _pick_by_number(store, self._others, agent)


async def _pick_on_screen(store: Store, others: OtherSessions, agent: str) -> SessionInfo:
    from nca.terminal.panels.offered_sessions import OfferedSessions, none_of
    from nca.terminal.panels.session_picker import SessionPicker

    loader = OfferedSessions(store, others, own=not agent)
    if agent and not await loader.sessions():
        raise none_of(agent, others.notes)
    try:
        chosen = await SessionPicker(loader, str(Path.cwd())).run()
    finally:
        loader.close()
    if chosen is None:
        raise Leave(0)
    return chosen


def _pick_by_number(store: Store, others: OtherSessions, agent: str) -> SessionInfo | None:
    """The session that the person picks from a numbered list; None for a new one."""
    from nca.humanize import counted, local_time
    from nca.terminal.panels.offered_sessions import none_of
    from nca.terminal.render.sessions import title

    own = [] if agent else store.list(limit=_LISTED)
    infos = sorted([*own, *others.rows(store)], key=lambda info: -info.updated_at)[:_LISTED]
    if not infos:
        raise none_of(agent, others.notes)
    for number, info in enumerate(infos, 1):
        is_other = info.id in others
        name = f"{number:3}" if can_ask() else "        " if is_other else info.id
        messages = "" if is_other else counted(info.messages, "message")
        echo(f"{name}  {local_time(info.updated_at)}  {messages:>13}  {title(info, 60)}")
    if not can_ask():
        raise UsageError("--resume needs an id here.", advice="`nca sessions list --all` lists every session.")
    numbers = [str(number) for number in range(1, len(infos) + 1)]
    answer = typed_answer(f"1 to {len(infos)}, or n for a new session: ", (*numbers, "n"))
    return infos[int(answer) - 1] if answer in numbers else None


async def _ask(question: str, keys: Sequence[KeyChoice]) -> str:
    from nca.terminal.panels.session_loader import choices_line
    from nca.terminal.render.sanitize import one_line

    echo(wrapped(one_line(question)))
    answer = typed_answer(f"{choices_line(keys)}, q to leave: ", (*(key for key, _ in keys), "q"))
    return "" if answer == "q" else answer
