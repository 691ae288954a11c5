"""Prepare a compaction while the person reads and types, and apply it between two turns.

Nobody waits for it, and until it is applied only the plan exists. It is dropped if the conversation has changed, or if
the next turn begins before it is ready.
"""

from __future__ import annotations

import asyncio
import contextlib
import time

from nca.agent.compactor import Compactor
from nca.agent.window import Window
from nca.context.plan import Proposal
from nca.context.policy import is_worth_it
from nca.errors import NcaError

MOVED_ON = "The conversation moved on before it was ready."


class Background:
    """At most one preparation at a time. Each one that begins ends with exactly one event."""

    def __init__(self, window: Window, compactor: Compactor, *, is_on: bool) -> None:
        """is_on: False never prepares anything."""
        self.is_on = is_on
        self._window = window
        self._compactor = compactor
        self._task: asyncio.Task[tuple[Proposal, float]] | None = None
        self._planned_on: tuple[object, ...] = ()

    @property
    def is_running(self) -> bool:
        return self._task is not None and not self._task.done()

    @property
    def is_ready(self) -> bool:
        """A preparation has finished, and the conversation has not moved on since it began."""
        is_current = self._planned_on == self._now()
        return self._task is not None and self._task.done() and is_current

    def consider(self) -> None:
        """Begin a preparation after a turn, where the policy says so."""
        if not self.is_on or self._task is not None or self._window.decide("idle").action != "prepare":
            return
        self._planned_on = self._now()
        self._compactor.say_starting("idle")
        self._task = asyncio.ensure_future(self._prepare())

    async def swap_in(self) -> None:
        """Put a finished preparation in force, or drop it. Call it between two turns."""
        task, self._task = self._task, None
        if task is None:
            return
        if not task.done() or self._planned_on != self._now():
            await self._drop(task)
            return
        error = task.exception() if not task.cancelled() else None
        if task.cancelled() or error is not None:
            self._compactor.say_failed("idle", str(error) if isinstance(error, NcaError) else MOVED_ON)
            if error is not None and not isinstance(error, NcaError):
                raise error
            return
        proposal, seconds = task.result()
        if proposal.compacted and not is_worth_it(proposal.tokens_saved, self._window.budget):
            # Most of the window may not be touched yet. The compaction threshold decides later.
            self._compactor.say_skipped("idle", "")
            self._window.rearm()
            return
        self._compactor.finish(proposal, "idle", seconds)

    async def close(self) -> None:
        """Drop the preparation without telling the person."""
        task, self._task = self._task, None
        if task is not None:
            await self._drop(task, "")

    def _now(self) -> tuple[object, ...]:
        """What a plan depends on."""
        history = self._window.history
        return history.view, history.head, history.pins

    async def _prepare(self) -> tuple[Proposal, float]:
        started = time.monotonic()
        return await self._compactor.plan("idle"), time.monotonic() - started

    async def _drop(self, task: asyncio.Task[tuple[Proposal, float]], reason: str = MOVED_ON) -> None:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError, NcaError):
            await task
        self._compactor.say_skipped("idle", reason)
