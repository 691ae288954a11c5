"""The prompt, the screen and the conversation, put together for one chat."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from nca.terminal.commands import CommandContext
from nca.terminal.input.completion import PromptCompleter
from nca.terminal.input.file_finder import FileFinder
from nca.terminal.input.first_prompt import FirstPrompt
from nca.terminal.panels.toolbar import Status, activity_of
from nca.terminal.render.draw import Draw

if TYPE_CHECKING:
    from nca.agent.conversation import Conversation
    from nca.sessions.session import SessionInfo
    from nca.sessions.store import Store


WATCH_SECONDS = 0.3


class PromptReader:
    """Reads from the prompt; while it stands, what is drawn lands above it."""

    def __init__(
        self,
        context: CommandContext,
        draw: Draw,
        first: FirstPrompt,
        directory: Path,
        after_prompt: Callable[[Conversation], None] | None,
    ) -> None:
        self._context = context
        self._draw = draw
        self._after_prompt = after_prompt
        self._begun: Conversation | None = None
        """The conversation that a prompt stood for already."""
        self._status: Status | None = None
        self.is_leaving: Callable[[], bool] = lambda: True
        """Whether a Ctrl-C on an empty line is the second."""
        options = first.options
        options.status = lambda: self._status
        options.keys = lambda: context.conversation.loaded.settings.terminal.keys
        options.theme = lambda: context.conversation.loaded.settings.terminal.theme
        options.interrupted = self._interrupted
        options.lend_terminal = self._lend_terminal
        options.stopping = draw.screen.clear_tail
        first.completer = PromptCompleter(context, FileFinder(directory))
        self._first = first
        self.prompt = first.prompt
        draw.typed_ahead = self.prompt.typed_ahead

    async def read(self, default: str = "") -> str:
        conversation = self._context.conversation
        self._status = status_of(conversation)
        if self._after_prompt is not None and conversation is not self._begun:
            self._begun = conversation
            begin = partial(self._after_prompt, conversation)
            if self._first.has_begun:
                asyncio.get_running_loop().call_soon(begin)
            else:
                self.prompt.when_drawn(begin)
        self.prompt.redraw()
        self._draw.begin_prompt(self.prompt.above)
        watch = asyncio.create_task(self._watch(conversation))
        try:
            return await self._first.read(default)
        finally:
            self._draw.end_prompt()
            watch.cancel()

    async def _watch(self, conversation: Conversation) -> None:
        """What goes on in the background stands in the toolbar until it is over; no event says that it is."""
        shown = self._status.activity if self._status is not None else ""
        # The first look comes after the first drawing, which may have started servers.
        await asyncio.sleep(WATCH_SECONDS)
        while (now := activity_of(conversation)) or now != shown:
            if now != shown:
                shown, self._status = now, status_of(conversation)
                self.prompt.redraw()
            await asyncio.sleep(WATCH_SECONDS)

    def _lend_terminal(self) -> AbstractContextManager[None]:
        return self._context.lend_terminal()

    async def pick(self, store: Store) -> SessionInfo | None:
        """Have the person choose a stored session; to be called while the terminal is lent. None where they leave."""
        from nca.terminal.panels.picker import Picker
        from nca.terminal.panels.session_loader import Shelf

        conversation, shelf = self._context.conversation, Shelf(store)
        picker = Picker(shelf, str(conversation.directory), conversation.session.info.id)
        self._draw.begin_prompt(picker.above)
        typed_ahead, self._draw.typed_ahead = self._draw.typed_ahead, str
        try:
            return await picker.pick()
        finally:
            self._draw.typed_ahead = typed_ahead
            self._draw.end_prompt()
            shelf.close()

    def _interrupted(self) -> bool:
        return self.is_leaving()

    def while_working(self) -> AbstractContextManager[None]:
        return self.prompt.typing_ahead()


def status_of(conversation: Conversation) -> Status:
    """What the toolbar says about a conversation."""
    stats = conversation.context.stats(with_details=False)
    return Status(
        model=stats.model,
        usage_ratio=stats.usage_ratio,
        used_tokens=stats.used_tokens,
        budget_tokens=stats.budget_tokens,
        session=(conversation.session.info.name or conversation.session.info.id[:8])
        + (" (read-only)" if conversation.session.is_read_only else ""),
        cost=conversation.session.usage.totals().cost,
        is_estimate=stats.is_estimate,
        permission=conversation.approvals.mode,
        activity=activity_of(conversation),
        is_high=stats.is_high,
    )
