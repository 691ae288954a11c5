"""Compaction as it happens: when, with which summarizer, on disk in one transaction, and said to whoever listens."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from nca.agent.preview import Preview
from nca.agent.window import Window
from nca.config.extensions import load_stage
from nca.context.budget import Measurement
from nca.context.plan import Proposal, compact
from nca.context.request import meant_for
from nca.context.stages.custom import StageReply, StageRequest, consult
from nca.context.summary import SummaryFailure, SummaryReply, SummaryRequest
from nca.context.turns import has_too_many_turns
from nca.errors import ContextDoesNotFit, NcaError, ProviderError, ProviderFailure, UsageError
from nca.events import ContextCompaction, ContextWarning, Listener
from nca.messages import Usage
from nca.models.catalog import describe
from nca.models.client import Model, ModelRequest
from nca.models.costs import saved_cost
from nca.sessions.views import CompactionRecord
from nca.wire import message_to_dict

Trigger = str
"""manual, threshold, idle, overflow, turns, model or provider, as events.ContextCompaction has it."""
HELPLESS_TRIES = 2
"""After so many automatic compactions in a row that saved nothing, one `insufficient` event and no further try."""


@dataclass(frozen=True, slots=True)
class CompactionOutcome:
    """What a compaction did, or would do. Counts in tokens; `message` is one line for a person."""

    compacted: bool
    tokens_before: int
    tokens_after: int
    stages_used: tuple[str, ...] = ()
    kept_facts: int = 0
    total_facts: int = 0
    message: str = ""


class Compactor:
    """One for each conversation.

    model            asked for summaries; `open_summarizer` opens a dedicated one by its name
    keep_trimmed     gets what a summary says of turns that were trimmed, once their compaction is on disk
    """

    def __init__(
        self,
        window: Window,
        model: Model,
        emit: Listener,
        open_summarizer: Callable[[str], Awaitable[Model]],
        keep_trimmed: Callable[[str], None],
    ) -> None:
        self.window = window
        self.model = model
        self._emit = emit
        self._open_summarizer = open_summarizer
        self._keep_trimmed = keep_trimmed
        self._summarizer: Model | None = None
        self._warned = {"info": False, "warning": False}
        self._helpless = 0
        self._cost: float | None = None
        self._next: Trigger = "threshold"

    def use(self, model: Model) -> None:
        """Go on with another model, whose window counts from now on: what is due with it is said anew."""
        self.model, self._helpless, self._next = model, 0, "model"
        self._warned = {"info": False, "warning": False}

    async def before_turn(self) -> None:
        """Trim where there are more turns than `context.max_turns`; what is too full is the next check's matter."""
        if self._is_auto and has_too_many_turns(self.window.history, self.window.context.max_turns):
            await self.compact("turns", target_tokens=self.window.budget.budget_tokens)

    async def before_request(self) -> None:
        """Warn, compact where it is due, and refuse what does not fit. Raises ContextDoesNotFit."""
        measured = self.window.measure()
        if self._is_due(measured):
            self._warn(measured, self._doing("Compacting now."))
            if self._is_auto:
                await self.compact(self._next)
                measured = self.window.measure()
        self._next = "threshold"
        if not measured.fits:
            raise self._does_not_fit(measured)

    def after_turn(self, *, is_preparing: bool = False) -> None:
        """The notices of the ladder, once for each crossing. `is_preparing`: a compaction is, in the background."""
        measured = self.window.measure()
        if self._is_due(measured):
            follows = (
                "A compaction is being prepared." if is_preparing else "Compaction follows before the next request."
            )
            self._warn(measured, self._doing(follows))
        elif measured.usage_ratio > self.window.context.info_threshold:
            if not self._warned["info"]:
                self._warned["info"] = True
                self._send_warning("info", measured, f"Context: {measured.usage_ratio:.0%} used")
            self._warned["warning"] = False
        else:
            self._warned = {"info": False, "warning": False}

    async def recover(self, failure: ProviderFailure, *, share: float) -> bool:
        """After an overflow that the provider reported: learn its limit, aim below it.

        False where the next request would be the same again.
        """
        is_news = self.window.learn_window(failure.limit_tokens or 0)
        measured = self.window.measure()
        if failure.action == "lower_max_tokens_then_compact" and is_news and measured.fits:
            # The answer's share was what did not fit; it has become smaller with the window.
            return True
        limit = min(self.window.budget.budget_tokens, measured.used_tokens)
        # Where the provider counted more than we did, aim lower by as much.
        counted = failure.asked_tokens if failure.action == "compact" and failure.asked_tokens else 0
        target = int(share * limit * min(1.0, measured.used_tokens / counted if counted else 1.0))
        outcome = await self.compact("overflow", target_tokens=target)
        return outcome.compacted or is_news

    async def preview(self, focus: str = "") -> Preview:
        """What a manual compaction would do, said as an event; nothing changes. Raises ContextDoesNotFit."""
        started = time.monotonic()
        proposal = await self.plan("manual", focus=focus)
        seconds = time.monotonic() - started
        message = self._close(proposal, "manual", "preview", seconds).message
        price = self.model.facts.input_cost
        return Preview(proposal, self.window.history.view, message, seconds, self._cost, price)

    def accept(self, preview: Preview) -> CompactionOutcome:
        """Put what was previewed in force. Raises UsageError where the view has changed since or nothing is saved."""
        window, proposal = self.window, preview.proposal
        if window.history.view != preview.view_before:
            raise UsageError("The context has changed since the preview.", advice="Ask for a new one.")
        before, after = window.measure().used_tokens, window.meter.used_with(window.history, proposal.view)
        if proposal.compacted and after >= before:
            raise UsageError(f"With this summary nothing is saved ({before:,} → {after:,} tokens).")
        proposal = replace(proposal, tokens_before=before, tokens_after=after)
        return self.take(proposal, "manual", preview.seconds, preview.cost)

    async def compact(self, trigger: Trigger, *, focus: str = "", target_tokens: int = 0) -> CompactionOutcome:
        """Plan, summarize, commit. Raises ContextDoesNotFit; anything else that fails leaves the view as it was."""
        started = time.monotonic()
        if self.window.context.auto == "preview" and trigger != "manual":
            proposal = await self.plan(trigger, focus=focus, target_tokens=target_tokens)
            return self._close(proposal, trigger, "preview", time.monotonic() - started)
        self.say_starting(trigger)
        try:
            proposal = await self.plan(trigger, focus=focus, target_tokens=target_tokens)
            return self.finish(proposal, trigger, time.monotonic() - started)
        except BaseException as error:
            self.say_failed(trigger, str(error) if isinstance(error, NcaError) else "interrupted")
            raise

    async def plan(self, trigger: Trigger, *, focus: str = "", target_tokens: int = 0) -> Proposal:
        """A proposal, with its summary where it needs one: all that the summarizer is asked within one deadline."""
        self._cost = None
        planning = compact(
            self.window.history,
            self.window.meter,
            self.window.budget,
            self.window.context,
            focus=focus,
            target_tokens=target_tokens,
            target_ratio=self.window.budget.aim_ratio(self.window.context),
            is_manual=trigger == "manual",
            has_summarizer=self._dedicated != "none" and (bool(self._dedicated) or self.model.facts.can_summarize),
            summarizer_window=self._summarizer_window(),
        )
        deadline = time.monotonic() + self.window.context.summarize.deadline_seconds
        try:
            request = next(planning)
            while True:
                if isinstance(request, StageRequest):
                    request = planning.send(await self._consult(request))
                else:
                    request = planning.send(await self._summary(request, deadline - time.monotonic()))
        except StopIteration as done:
            proposal: Proposal = done.value
            return proposal

    def take(self, proposal: Proposal, trigger: Trigger, seconds: float, cost: float | None) -> CompactionOutcome:
        """Put in force what was proposed elsewhere, for so many US dollars. Raises StoreError as `finish`."""
        self._cost = cost
        self.say_starting(trigger)
        return self.finish(proposal, trigger, seconds)

    def finish(self, proposal: Proposal, trigger: Trigger, seconds: float) -> CompactionOutcome:
        """Commit what was proposed and close its `starting`. Raises StoreError, and nothing has changed."""
        if proposal.compacted:
            self._commit(proposal, trigger, seconds)
        return self._close(proposal, trigger, "real", seconds)

    def say_starting(self, trigger: Trigger) -> None:
        self._say("starting", trigger, tokens_before=self.window.measure().used_tokens)

    def say_failed(self, trigger: Trigger, reason: str) -> None:
        used = self.window.measure().used_tokens
        self._say("failed", trigger, tokens_before=used, tokens_after=used, message=f"Compaction failed: {reason}")

    def say_skipped(self, trigger: Trigger, reason: str) -> None:
        used = self.window.measure().used_tokens
        self._say("skipped", trigger, tokens_before=used, tokens_after=used, message=reason)

    async def close(self) -> None:
        if self._summarizer is not None:
            await self._summarizer.close()

    @property
    def _is_auto(self) -> bool:
        return self.window.context.auto != "off"

    def _summarizer_window(self) -> int:
        """Tokens: the smaller one of the chat's, as it is known by now, and a dedicated summarizer's.

        Both, because the chat's model is asked where the dedicated one cannot open.
        """
        own = self.window.budget.window_tokens
        return own if self._dedicated in ("", "none") else min(own, describe(self._dedicated).window_tokens)

    @property
    def _dedicated(self) -> str:
        return self.window.settings.model.summarizer

    def _is_due(self, measured: Measurement) -> bool:
        used = measured.used_tokens
        if not measured.fits:
            return True
        if self.window.provider_compacts_at:
            return False
        return used >= self.window.budget.trigger_tokens(self.window.context) and used >= self.window.quiet_below

    async def _consult(self, request: StageRequest) -> StageReply:
        """Ask a stage of another package, on a thread: it may take its time, and the chat goes on meanwhile.

        One that takes longer than a summary may is left behind, since a thread cannot be ended.
        """
        seconds = self.window.context.summarize.deadline_seconds
        try:
            async with asyncio.timeout(seconds):
                return await asyncio.to_thread(consult, request, load_stage)
        except TimeoutError:
            return StageReply(failure=f"the stage {request.name} did not answer within {seconds:g} seconds")

    async def _summary(self, request: SummaryRequest, seconds: float) -> SummaryReply | SummaryFailure:
        if self._dedicated == "none":
            return SummaryFailure("no summarizer is set", is_final=True)
        if seconds <= 0:
            return SummaryFailure("the deadline is over", is_final=True)
        if 0 < self.window.settings.session.max_cost <= self.window.spent:
            return SummaryFailure("the session has cost what it may (session.max_cost)", is_final=True)
        try:
            async with asyncio.timeout(seconds):
                model = await self._chosen()
                if not model.facts.can_summarize:
                    return SummaryFailure(f"{model.facts.name} is too small to summarize", is_final=True)
                is_live = model is self.model and model.facts.reuses_prefix and bool(request.live)
                reply = await model.ask(self._question(request, model, is_live=is_live), lambda _: None)
        except TimeoutError:
            return SummaryFailure("the deadline is over", is_final=True)
        except ProviderError as error:
            return SummaryFailure(error.message)
        self._count(reply.usage, model.facts.name)
        return SummaryReply(reply.message.text, model.facts.name, bool(reply.message.tool_calls), is_live)

    async def _chosen(self) -> Model:
        """The summarizer that the settings name, else the chat's model; the chat's too where that one cannot open."""
        if not self._dedicated or self._dedicated == self.model.facts.name:
            return self.model
        if self._summarizer is None or self._summarizer.facts.name != self._dedicated:
            try:
                self._summarizer = await self._open_summarizer(self._dedicated)
            except ProviderError:
                return self.model
        return self._summarizer

    def _question(self, request: SummaryRequest, model: Model, *, is_live: bool) -> ModelRequest:
        """Behind the unchanged turns for a model that keeps its evaluated prefix; else as one flattened text."""
        if is_live:
            system = [{"role": "system", "content": self.window.system_prompt}] if self.window.system_prompt else []
            live = [message_to_dict(meant_for(model.facts.name, message)) for message in request.live]
            ask = {"role": "user", "content": request.instruction}
            return ModelRequest([*system, *live, ask], self.window.tools, request.max_tokens)
        return ModelRequest([message_to_dict(message) for message in request.messages], [], request.max_tokens)

    def _count(self, usage: Usage | None, model: str) -> None:
        if usage is not None:
            self.window.record_beside(model, usage)
            self._cost = self._cost if usage.cost is None else (self._cost or 0.0) + usage.cost

    def _commit(self, proposal: Proposal, trigger: Trigger, seconds: float) -> None:
        record = CompactionRecord(
            trigger=trigger,
            stages=proposal.stages_used,
            tokens_before=proposal.tokens_before,
            tokens_after=proposal.tokens_after,
            kept_facts=proposal.kept_facts,
            total_facts=proposal.total_facts,
            seconds=seconds,
            cost=self._cost,
        )
        self.window.commit(proposal, record)
        if proposal.trimmed_text:
            self._keep_trimmed(proposal.trimmed_text)
        self._warned = {"info": False, "warning": False}

    def _close(self, proposal: Proposal, trigger: Trigger, mode: str, seconds: float) -> CompactionOutcome:
        """The closing event of every `starting`, and the outcome with the same numbers."""
        phase, verdict = self._verdict(proposal, trigger, mode)
        message = " ".join([verdict, *proposal.notices])
        self._say(
            phase,
            trigger,
            stages=proposal.stages_used,
            tokens_before=proposal.tokens_before,
            tokens_after=proposal.tokens_after,
            kept_facts=proposal.kept_facts,
            total_facts=proposal.total_facts,
            seconds=seconds,
            cost=self._cost,
            saves=saved_cost(self.window.facts, proposal.tokens_before, proposal.tokens_after),
            saves_cached=saved_cost(self.window.facts, proposal.tokens_before, proposal.tokens_after, is_cached=True),
            message=message,
        )
        return CompactionOutcome(
            proposal.compacted and mode == "real",
            proposal.tokens_before,
            proposal.tokens_after,
            proposal.stages_used,
            proposal.kept_facts,
            proposal.total_facts,
            message,
        )

    def _verdict(self, proposal: Proposal, trigger: Trigger, mode: str) -> tuple[str, str]:
        numbers = f"{proposal.tokens_before:,} → {proposal.tokens_after:,} tokens"
        if mode == "preview":
            return "preview", f"Would compact {numbers}." if proposal.compacted else "Nothing would be compacted."
        if proposal.compacted:
            self._helpless = 0
            kept = f", kept {proposal.kept_facts} of {proposal.total_facts} facts" if proposal.total_facts else ""
            return "completed", f"Compacted {numbers} ({', '.join(proposal.stages_used)}{kept})."
        self.window.settle()
        if trigger == "manual":
            return "skipped", f"Nothing to compact: {proposal.tokens_before:,} tokens are used."
        self._helpless += 1
        if self._helpless == HELPLESS_TRIES:
            advice = "Unpin messages, shorten the input, or use a model with a larger window."
            return "insufficient", f"Compaction does not help any more at {proposal.tokens_before:,} tokens. {advice}"
        return "skipped", "Nothing could be compacted."

    def _say(self, phase: str, trigger: Trigger, **values: object) -> None:
        self._emit(ContextCompaction(phase=phase, trigger=trigger, **values))  # type: ignore[arg-type]

    def _warn(self, measured: Measurement, doing: str) -> None:
        if self._warned["warning"]:
            return
        self._warned["warning"] = True
        numbers = f"{measured.used_tokens:,} / {measured.budget.budget_tokens:,} tokens"
        self._send_warning(
            "warning", measured, f"Context usage: {measured.usage_ratio:.0%} of budget ({numbers}). {doing}"
        )

    def _send_warning(self, level: str, measured: Measurement, message: str) -> None:
        self._emit(
            ContextWarning(
                level=level,  # type: ignore[arg-type]
                usage=measured.usage_ratio,
                used_tokens=measured.used_tokens,
                budget_tokens=measured.budget.budget_tokens,
                message=message,
            )
        )

    def _doing(self, otherwise: str) -> str:
        """What is being done about it: `otherwise`, where compaction happens by itself."""
        match self.window.context.auto:
            case "off":
                return "Auto-compaction is off; /compact makes room."
            case "preview":
                return "Auto-compaction only says what it would do (context.auto = preview); /compact makes room."
            case _:
                return otherwise

    def _does_not_fit(self, measured: Measurement) -> ContextDoesNotFit:
        how = "Make room with /compact or /context clear" if not self._is_auto else "Shorten the input"
        return ContextDoesNotFit(
            f"The next request needs {measured.used_tokens:,} tokens; the budget is"
            f" {measured.budget.budget_tokens:,}. Nothing was sent.",
            advice=f"{how}, or use a model with a larger window.",
            used_tokens=measured.used_tokens,
            budget_tokens=measured.budget.budget_tokens,
        )
