"""Carry out a line that need not wait for the prompt: a question of `/btw` that is typed while nca works."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from nca.errors import NcaError
from nca.terminal.commands.command import find_command, named
from nca.terminal.input.line_kind import line_kind
from nca.terminal.reader import Completions
from nca.terminal.render.draw import Draw
from nca.terminal.render.event_lines import error_line
from nca.words import Words, source_at, stripped, text_of

if TYPE_CHECKING:
    from nca.agent.beside import SideQuestions


class Meanwhile:
    """The questions that are asked while nca works. An answer is shown whole, between two parts of the turn."""

    def __init__(self, chat: Completions, draw: Draw, note: Callable[[Words], None]) -> None:
        """`note` is told of a line that is carried out."""
        self._chat, self._draw, self._note = chat, draw, note
        self._asking: set[asyncio.Task[None]] = set()

    def take(self, line: Words, logged: Callable[[], None]) -> bool:
        """Carry a typed line out. False: it waits for the prompt. `logged` is called once it is in the log."""
        if line_kind(line) != "command" or source_at(line, 0) != "typed":
            return False
        name, question = named(text_of(stripped(line)))
        command, beside = find_command(name), self._chat.conversation.beside
        if command is None or not command.works_meanwhile or not beside.can_ask_meanwhile:
            return False
        self._note(line)
        task = asyncio.create_task(self._ask(beside, question.strip(), logged))
        self._asking.add(task)
        task.add_done_callback(self._asking.discard)
        return True

    async def _ask(self, beside: SideQuestions, question: str, logged: Callable[[], None]) -> None:
        from nca.agent.context_notices import Exchange

        draw = self._draw
        try:
            answer = await beside.ask_meanwhile(question, logged)
        except NcaError as error:
            shown = error_line(error)
            draw.between(lambda: draw.exchange(Exchange(f"/btw {question}", "", 0)))
            draw.between(lambda: draw.error(*shown))
        else:
            draw.between(lambda: draw.exchange(Exchange(f"/btw {question}", answer, 0), sys.maxsize))
