"""Show the prompt before the conversation is open, and keep text typed meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prompt_toolkit.history import InMemoryHistory

from nca.terminal.input.history import DraftFile, PrivateHistory, remember
from nca.terminal.input.line_kind import message_of
from nca.terminal.input.pastes import FoldedPastes
from nca.terminal.input.prompt import Prompt
from nca.terminal.input.prompt_text import PromptText
from nca.words import Words, text_of

if TYPE_CHECKING:
    from nca.config.schema import TerminalSettings
    from nca.terminal.interrupts import Interrupts


class FirstPrompt:
    """The prompt of a chat, which may be on the screen before there is a conversation."""

    def __init__(
        self, settings: TerminalSettings, directory: Path, history_file: Path | None, interrupts: Interrupts
    ) -> None:
        pastes = FoldedPastes()
        draft = DraftFile(history_file, pastes)
        text = PromptText(draft.note_prompt)
        history = PrivateHistory(history_file, pastes, text) if history_file else InMemoryHistory()
        self._history, self._text, self._pastes, self._draft = history, text, pastes, draft
        self.prompt = Prompt(settings, directory, history, pastes, text, draft, interrupts)
        self.are_drafts_taken = draft.are_others_taken
        self._terminal = ExitStack()
        self._is_quiet = False
        self._reading: asyncio.Task[Words] | None = None
        self._waiting: list[Callable[[], None]] = []

    def take_messages(self) -> list[Words]:
        """Remove and return the messages typed ahead."""
        lines = self.prompt.type_ahead.take_messages()
        for line in lines:
            self.remember(line)
        return [message_of(line) for line in lines]

    def take_line(self) -> Words | None:
        """Remove and return a queued line, in place of a `read`. Raises EOFError for a queued Ctrl-D."""
        if self.has_begun or (line := self.prompt.type_ahead.take_line()) is None:
            return None
        self.remember(line)
        return line

    def remember(self, line: Words) -> None:
        """Put a line that no prompt has read into the history, as if one had."""
        remember(self._pastes.refold(line), self._history, self._text)
        self._draft.write()

    def note_outcome(self, line: Words, *, was_refused: bool) -> None:
        """Suggest this line no more if it was refused, until it has an effect."""
        text = text_of(line).strip()
        if not was_refused:
            self._text.refused.discard(text)
            return
        self._text.refused.add(text)
        if isinstance(self._history, PrivateHistory):
            self._history.refuse(text)

    def be_quiet(self, *, is_alone: bool) -> None:
        """From now on until the chat ends, or `close`. `is_alone` as in `TerminalModes.take`."""
        self._is_quiet = True
        self._terminal.enter_context(self.prompt.type_ahead.quiet(self.prompt.suspend, is_alone=is_alone))

    async def begin(self) -> None:
        """Show the prompt, in a terminal that is quiet. Returns when it is on the screen."""
        drawn = asyncio.create_task(self.prompt.drawn())
        # A line that is sent before the banner is there is shown below it instead.
        self.prompt.erase_when_sent(True)
        self._reading = asyncio.create_task(self.prompt.read())
        await asyncio.wait({drawn, self._reading}, return_when=asyncio.FIRST_COMPLETED)
        drawn.cancel()

    async def during(self, work: Coroutine[Any, Any, None]) -> None:
        """Wait for `work`, after `begin`. Raises EOFError or Leave at once if the person leaves meanwhile."""
        assert self._reading is not None
        working, reading = asyncio.create_task(work), self._reading
        await asyncio.wait({working, reading}, return_when=asyncio.FIRST_COMPLETED)
        if reading.done() and (left := reading.exception()) is not None:
            raise left
        await working

    def above(self, write: Callable[[], None]) -> None:
        """Write above the prompt. Writes that come together are made together, so that the prompt moves once."""
        if not self._waiting:
            asyncio.get_running_loop().call_soon(self._write)
        self._waiting.append(write)

    def _write(self) -> None:
        waiting, self._waiting = self._waiting, []

        def write_all() -> None:
            for write in waiting:
                write()

        self.prompt.above(write_all)

    @property
    def has_begun(self) -> bool:
        return self._reading is not None

    async def read(self, default: Words = (), echo: Callable[[str], None] = lambda _: None) -> Words:
        """Read from the prompt on the screen, or from a new one. Raises as `Prompt.read` does.

        echo  shows a line that was sent before this was called
        """
        reading, self._reading = self._reading, None
        if reading is None:
            return await self.prompt.read(default)
        if not (is_early := self.prompt.is_sent):
            self.prompt.erase_when_sent(False)
        try:
            said = await reading
        finally:
            self.prompt.erase_when_sent(False)
        if is_early and (text := text_of(said)).strip():
            self._write()
            echo(text)
        return said

    @contextmanager
    def quiet_terminal(self) -> Iterator[None]:
        """For the whole chat, if it is not quiet already."""
        if not self._is_quiet:
            self.be_quiet(is_alone=False)
        with self._terminal:
            yield

    async def close(self) -> None:
        """Remove the prompt if the chat never read from it."""
        reading, self._reading = self._reading, None
        if reading is not None:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
        self._terminal.close()
