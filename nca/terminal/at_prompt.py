"""The prompt, the screen and the conversation, put together for one chat."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from prompt_toolkit.history import InMemoryHistory

from nca.terminal.commands import CommandContext
from nca.terminal.completion import PromptCompleter
from nca.terminal.draw import Draw
from nca.terminal.input_history import PrivateHistory
from nca.terminal.mentions import FileFinder
from nca.terminal.pastes import FoldedPastes
from nca.terminal.prompt import Prompt, PromptOptions
from nca.terminal.toolbar import Status

if TYPE_CHECKING:
    from nca.agent.conversation import Conversation


WATCH_SECONDS = 0.3


class PromptReader:
    """Reads from the prompt; while it stands, what is drawn lands above it."""

    def __init__(
        self,
        context: CommandContext,
        draw: Draw,
        directory: Path,
        history_file: Path | None,
        after_prompt: Callable[[], None] | None,
    ) -> None:
        self._context = context
        self._draw = draw
        self._after_prompt = after_prompt
        self._status: Status | None = None
        self.is_leaving: Callable[[], bool] = lambda: True
        """Whether a Ctrl-C on an empty line is the second."""
        pastes = FoldedPastes()
        options = PromptOptions(
            status=lambda: self._status,
            completer=PromptCompleter(context, FileFinder(directory)),
            history=PrivateHistory(history_file, pastes.unfold) if history_file else InMemoryHistory(),
            keys=lambda: context.conversation.loaded.settings.terminal.keys,
            interrupted=self._interrupted,
        )
        self.prompt = Prompt(options, pastes)
        draw.typed_ahead = self.prompt.typed_ahead

    async def read(self, default: str = "") -> str:
        self._status = status_of(self._context.conversation)
        if self._after_prompt is not None:
            self.prompt.when_drawn(self._after_prompt)
            self._after_prompt = None
        self._draw.begin_prompt(self.prompt.above)
        watch = asyncio.create_task(self._watch_preparation()) if self._context.conversation.is_preparing else None
        try:
            return await self.prompt.read(default)
        finally:
            self._draw.end_prompt()
            if watch is not None:
                watch.cancel()

    async def _watch_preparation(self) -> None:
        """A compaction in the background stands in the toolbar until it is ready."""
        while self._context.conversation.is_preparing:  # noqa: ASYNC110  # no event says that it is ready
            await asyncio.sleep(WATCH_SECONDS)
        self._status = status_of(self._context.conversation)
        self.prompt.redraw()

    def _interrupted(self) -> bool:
        return self.is_leaving()

    def while_working(self) -> AbstractContextManager[None]:
        return self.prompt.typing_ahead()


def status_of(conversation: Conversation) -> Status:
    """What the toolbar says about a conversation."""
    stats = conversation.stats(with_scores=False)
    settings = conversation.loaded.settings.context
    return Status(
        model=stats.model,
        usage_ratio=stats.usage_ratio,
        used_tokens=stats.used_tokens,
        budget_tokens=stats.budget_tokens,
        session=(conversation.info.name or conversation.info.id[:8])
        + (" (read-only)" if conversation.is_read_only else ""),
        cost=conversation.costs().cost,
        is_estimate=stats.is_estimate,
        activity="preparing a compaction" if conversation.is_preparing else "",
        info_threshold=settings.info_threshold,
        compact_threshold=settings.compact_threshold,
    )
