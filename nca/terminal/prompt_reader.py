"""Read from the prompt; what is drawn meanwhile appears above it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from nca.events import MessageTaken
from nca.terminal.input.completion import PromptCompleter
from nca.terminal.input.file_finder import FileFinder
from nca.terminal.input.first_prompt import FirstPrompt
from nca.terminal.interrupts import Interrupts
from nca.terminal.panels.key_approval import approve_by_key
from nca.terminal.panels.key_question import choose_by_key
from nca.terminal.panels.toolbar import ToolbarStatus, activity_of
from nca.terminal.reader import Completions, Reader
from nca.terminal.render.draw import Draw
from nca.words import Words

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from nca.agent.approvals import Answer
    from nca.agent.conversation import Conversation
    from nca.events import ApprovalAsked
    from nca.terminal.panels.list_panel import ListPanel
    from nca.terminal.panels.locked_session import KeyChoice

T = TypeVar("T")

WATCH_SECONDS = 0.3


class PromptReader(Reader):
    """Reads from the prompt that stands already, and from new ones after it."""

    is_interactive = True
    can_choose = True
    can_walk = True

    def __init__(self, first: FirstPrompt, draw: Draw, interrupts: Interrupts) -> None:
        self._first = first
        self._prompt = first.prompt
        self._draw = draw
        self._interrupts = interrupts
        if first.has_begun:
            draw.begin_prompt(first.above)

    @contextmanager
    def chatting(self, completions: Completions) -> Iterator[None]:
        files = FileFinder(completions.conversation.directory)
        self._prompt.complete_with(PromptCompleter(completions, files))
        try:
            with self._first.quiet_terminal():
                yield
        finally:
            self._prompt.close()

    async def read(self, conversation: Conversation, default: Words = ()) -> Words:
        status = status_of(conversation)
        self._prompt.apply(conversation.loaded.settings.terminal)
        self._prompt.show_status(status)
        self._draw.begin_prompt(self._prompt.above)
        watch = asyncio.create_task(self._watch(conversation, status.activity))
        try:
            return await self._first.read(default, echo=lambda text: self._draw.on_event(MessageTaken(text)))
        finally:
            self._draw.end_prompt()
            watch.cancel()

    async def _watch(self, conversation: Conversation, shown: str) -> None:
        """What goes on in the background stands in the toolbar until it is over; no event says that it is."""
        # The first look comes after the first drawing, which may have started servers.
        await asyncio.sleep(WATCH_SECONDS)
        while (now := activity_of(conversation)) or now != shown:
            if now != shown:
                shown = now
                self._prompt.show_status(status_of(conversation))
            await asyncio.sleep(WATCH_SECONDS)

    async def shown(self) -> None:
        if not self._first.has_begun:
            await self._prompt.drawn()

    def interrupt(self) -> bool:
        return self._prompt.interrupt()

    def while_working(self) -> AbstractContextManager[object]:
        return self._prompt.typing_ahead(self._draw.screen)

    async def ask(self, asked: ApprovalAsked) -> Answer:
        return await approve_by_key(asked, self._draw, self._prompt, self._interrupts)

    async def choose(self, question: str, keys: Sequence[KeyChoice]) -> str:
        return await choose_by_key(question, keys, self._draw, self._prompt)

    def typed_ahead(self) -> Sequence[Words]:
        return self._prompt.take_messages()

    def hold_typed_lines(self) -> int:
        return self._prompt.type_ahead.hold()

    def keep_unsent(self) -> tuple[Sequence[str], bool]:
        return self._prompt.keep_unsent()

    @property
    def is_typing(self) -> bool:
        return self._prompt.type_ahead.is_waiting

    def lend_terminal(self) -> AbstractContextManager[object]:
        return self._prompt.lent_terminal()

    async def walk(self, panel: ListPanel[T]) -> T | None:
        with self._prompt.lent_terminal(is_quiet=True):
            self._draw.begin_prompt(panel.above)
            try:
                return await panel.run()
            finally:
                self._draw.end_prompt()


def status_of(conversation: Conversation) -> ToolbarStatus:
    """What the toolbar says about a conversation."""
    stats = conversation.context.stats(with_details=False)
    return ToolbarStatus(
        model=stats.model,
        usage_ratio=stats.usage_ratio,
        used_tokens=stats.used_tokens,
        budget_tokens=stats.budget_tokens,
        session=(conversation.session.info.name or conversation.session.info.id[:8])
        + (" (read-only)" if conversation.session.is_read_only else ""),
        cost=conversation.session.usage.totals().cost,
        permission=conversation.approvals.mode,
        auto=stats.auto,
        activity=activity_of(conversation),
        is_high=stats.is_high,
    )
