"""Prepare a compaction while the person reads and types, and apply it once one is due.

If a person has set `context.idle_threshold`, it is applied before the next request. Nobody waits for it, and until it
is applied only the plan exists. The log only grows, so a plan stays good whatever is said meanwhile: that is shown
after it. It is dropped if the view or the pins have changed.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from dataclasses import replace
from typing import Literal

from nca.agent.compactor import Compactor, Trigger
from nca.context.plan import Proposal
from nca.context.policy import is_worth_it
from nca.errors import NcaError

TOO_LITTLE = "The compaction that was prepared frees too little."
MOVED_ON = "The context has changed since the preparation began."


class Background(Compactor):
    """A compactor that also prepares, one compaction at a time. Each one that begins ends with exactly one event."""

    _task: asyncio.Task[tuple[Proposal, float]] | None = None
    _planned_on: tuple[object, ...] = ()
    _trigger: Trigger = "idle"
    """The trigger of the preparation: once an answer waits for it, it is an ordinary compaction."""

    @property
    def is_running(self) -> bool:
        return self._task is not None and not self._task.done()

    @property
    def is_ready(self) -> bool:
        """A preparation has finished, and it is still good."""
        return self._task is not None and self._task.done() and self._is_good()

    @property
    def waits(self) -> bool:
        """What is prepared is put in force once a compaction is due, and not before."""
        return not self.window.context.idle_threshold and self.window.due() != "compact"

    def consider(self) -> None:
        """Begin a preparation after a turn, where the policy says so."""
        if not self.prepares or self._task is not None or self.window.decide("idle").action != "prepare":
            return
        self._planned_on, self._trigger = self._now(), "idle"
        self.say_starting("idle")
        self._task = asyncio.ensure_future(self._prepare())

    async def before_request(self) -> None:
        """Apply what is prepared, waiting for it if a compaction is due; then do what the policy decides."""
        if self.is_running and self._is_good() and self.window.due() == "compact" and self._task is not None:
            await self._wait_for(self._task)
        await self.swap_in()
        await super().before_request()

    async def _wait_for(self, task: asyncio.Task[tuple[Proposal, float]]) -> None:
        """Hold the answer up, in sight. An interrupt leaves the preparation running."""
        self._becomes("threshold", "skipped")
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            self._becomes("idle", "failed", "interrupted")
            raise

    def _becomes(self, trigger: Trigger, ends: Literal["failed", "skipped"], reason: str = "") -> None:
        self.say_unchanged(ends, self._trigger, reason)
        self._trigger = trigger
        self.say_starting(trigger)

    async def swap_in(self, newest: str = "") -> None:
        """Put a finished preparation in force if it is time, or drop one that is no longer good. Others continue.

        newest  what the person has said by now; it is not in the log yet
        """
        task = self._task
        if task is None or (not task.done() and self._is_good()):
            return
        if not self._is_good():
            await self.close(MOVED_ON)
            return
        if self.waits:
            return
        self._task, trigger = None, self._trigger
        error = task.exception()
        if error is not None:
            self.say_unchanged("failed", trigger, str(error) if isinstance(error, NcaError) else "interrupted")
            if not isinstance(error, NcaError):
                raise error
            return
        proposal, seconds = task.result()
        if proposal.compacted:
            proposal = await self._as_it_is_now(proposal, newest)
        if proposal.compacted and proposal.tokens_after >= self.window.compacts_from and proposal.is_by_code:
            # With what came since, another one is due at once: code makes that one alone.
            self.say_unchanged("skipped", trigger)
            return
        # Most of the window may not be touched yet. The compaction threshold decides later.
        is_small = proposal.compacted and not is_worth_it(proposal.tokens_saved, self.window.budget)
        if is_small or (proposal.compacted and await self.forbidden(trigger)):
            self.say_unchanged("skipped", trigger, TOO_LITTLE)
            self.window.rearm()
            return
        self.finish(proposal, trigger, seconds, newest)

    async def close(self, reason: str = "") -> None:
        """Drop the preparation; without a reason, the person is not told."""
        task, self._task = self._task, None
        if task is None:
            return
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError, NcaError):
            await task
        self.say_unchanged("skipped", self._trigger, reason)

    def _is_good(self) -> bool:
        return self._planned_on == self._now()

    def _now(self) -> tuple[object, ...]:
        """The state that a plan depends on."""
        return self.window.history.view, self.window.history.pins

    async def _as_it_is_now(self, proposal: Proposal, newest: str) -> Proposal:
        """The plan with the sizes of the request that has grown since, and with what was said meanwhile."""
        window, facts = self.window, proposal.facts
        if facts is not None:
            facts = facts.as_of(window.history, coming=bool(newest))
            await asyncio.to_thread(facts.count)
        after = window.meter.used_with(window.history, proposal.view)
        return replace(proposal, tokens_before=window.measure().used_tokens, tokens_after=after, facts=facts)

    async def _prepare(self) -> tuple[Proposal, float]:
        started = time.monotonic()
        return await self.plan("idle"), time.monotonic() - started
