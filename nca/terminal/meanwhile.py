"""Carry out a line that need not wait for the prompt: a question of `/btw`, or a command that only shows something.

It is typed while nca works. Its answer is shown whole, between two parts of the turn.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from rich.console import Group

from nca.errors import NcaError
from nca.terminal.commands.command import find_command, named, short_for
from nca.terminal.input.line_kind import line_kind
from nca.terminal.reader import Chat
from nca.terminal.render.draw import Draw
from nca.terminal.render.event_lines import error_line
from nca.terminal.render.screen import KeptScreen
from nca.words import Words, part_of, source_at, stripped, text_of

if TYPE_CHECKING:
    from nca.agent.beside import SideQuestions


class Meanwhile:
    """The lines that are carried out while nca works."""

    def __init__(self, chat: Chat, draw: Draw, remember: Callable[[Words], None], hint: Callable[[str], None]) -> None:
        """`remember` is told of a line that is carried out; `hint` shows a text for a moment."""
        self._chat, self._draw, self._remember, self._hint = chat, draw, remember, hint
        self._running: set[asyncio.Task[None]] = set()

    def take(self, line: Words, logged: Callable[[], None]) -> bool:
        """Carry a typed line out. False: it waits for the prompt.

        `logged` is called once the log has the question, or the answer to the command is shown.
        """
        from nca.agent.beside import NAME

        if line_kind(line) != "command" or source_at(line, 0) != "typed":
            return False
        said = stripped(line)
        name, argument = named(text_of(said))
        argument, beside = argument.strip(), self._chat.conversation.beside
        command = find_command(name)
        if command is None or short_for(name, self._chat.prompts) not in ((), [command.name]):
            return False
        if command.name == NAME and beside.can_ask_meanwhile:
            self._hint("Asked. The answer comes between two parts of the turn.")
            work = self._ask(beside, stripped(part_of(said, len(f"/{name}"))), logged)
        elif self._chat.is_answering and command.only_shows(argument):
            work = self._show(said, logged)
        else:
            return False
        self._remember(line)
        task = asyncio.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return True

    async def _ask(self, beside: SideQuestions, question: Words, logged: Callable[[], None]) -> None:
        from nca.agent.context_notices import Exchange

        draw = self._draw
        try:
            answer = await beside.ask_meanwhile(question, logged)
        except NcaError as error:
            shown = error_line(error)
            draw.between(lambda: draw.exchange(Exchange(f"/btw {text_of(question)}", "", 0)))
            draw.between(lambda: draw.error(*shown))
        else:
            draw.between(lambda: draw.exchange(Exchange(f"/btw {text_of(question)}", answer, 0), sys.maxsize))
        draw.between(lambda: self._hint(""))  # it said that the answer comes

    async def _show(self, line: Words, logged: Callable[[], None]) -> None:
        from nca.agent.context_notices import Exchange

        kept = KeptScreen()
        answer = Draw(kept)
        answer.recent = self._draw.recent
        answer.exchange(Exchange(text_of(line), "", 0))
        try:
            await self._chat.show(line, answer)
        except NcaError as error:
            answer.error(*error_line(error))

        def show() -> None:
            self._draw.show(Group(*kept.kept))
            logged()

        if not self._draw.between(show):
            self._hint("It is shown below the part that is being written.")
