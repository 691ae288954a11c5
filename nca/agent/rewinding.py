"""Going back in a conversation to before one of the person's messages, and forward again (`Conversation.rewinds`)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from nca.agent.background import Background
from nca.agent.beside import BESIDE
from nca.agent.user_input import UserInput
from nca.agent.window import Window
from nca.context.view import is_in
from nca.errors import UsageError
from nca.sessions.rewinds import Target
from nca.sessions.views import REDO, REWIND

_PAGE = 50


@dataclass(frozen=True, slots=True)
class Point:
    """Where a conversation can go back to: before a message of the person, or the end of a branch.

    seq      the person's message; the last message of a branch
    tokens   of the turn that begins with it
    is_left  another branch: it was left when the person went back
    rewind   the view that left a branch whose end this is; 0 for a message
    """

    seq: int
    at: float
    text: str
    tokens: int
    is_left: bool
    rewind: int = 0


class Rewinds:
    """The log keeps everything: what is left is another branch, and can be gone back to."""

    def __init__(self, window: Window, background: Background, user_input: UserInput) -> None:
        self._window = window
        self._stored = window.session.rewinds
        self._background = background
        self._user_input = user_input

    def points(self) -> Iterator[Point]:
        """Where to go back to, newest first."""
        ends = sorted(((last, rewind) for rewind, last in self._stored.ends().items()), reverse=True)
        end = self._window.history.head + 1
        while said := self._window.session.log.said_before(end, _PAGE):
            for seq in said:
                while ends and ends[0][0] >= seq:
                    yield self._end_point(*ends.pop(0))
                if self._window.history.message(seq).name != BESIDE:
                    yield self._point(seq, end - 1)
                end = seq

    @property
    def newest(self) -> int | None:
        """The person's newest message."""
        return self._window.history.newest_user

    async def go_back(self, seq: int) -> str:
        """Go back to before a message of the person; returns its text. Raises UsageError, StoreError."""
        history = self._window.history
        message = history.message(seq) if 1 <= seq <= history.head else None
        if message is None or message.role != "user" or message.is_synthetic or message.name == BESIDE:
            raise UsageError(f"Message {seq} is none of yours.", advice="/rewind lists yours.")
        await self._show(self._stored.before(seq), REWIND)
        return message.text

    async def go_to_end(self, rewind: int) -> None:
        """Go to the end of the branch that a rewind left."""
        await self._show(self._stored.end_of(rewind), REWIND)

    async def go_forward(self) -> bool:
        """Take the last rewind back; False where there is none, or something was said since."""
        rewind = self._stored.newest
        if rewind is None:
            return False
        await self._show(self._stored.end_of(rewind), REDO)
        return True

    async def _show(self, target: Target, trigger: str) -> None:
        self._window.session.refuse_reader()
        await self._background.close()
        base, view = target
        self._window.put_in_force(view, trigger, trigger=trigger, parent=base)
        self._user_input.begin_anew()

    def _point(self, seq: int, last: int) -> Point:
        history = self._window.history
        entry = history.entries[seq - 1]
        tokens = self._window.meter.scaled(history.run_tokens(seq, last))
        return Point(seq, entry.at, entry.message.text, tokens, is_in(seq, history.view.aside))

    def _end_point(self, seq: int, rewind: int) -> Point:
        entry = self._window.history.entries[seq - 1]
        return Point(seq, entry.at, entry.message.text, 0, True, rewind)
