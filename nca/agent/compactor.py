"""Compact a conversation: decide, plan, summarize, commit, and emit the events."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Literal

from nca.agent.compaction_diff import Preview, new_writer, stages_in_words
from nca.agent.context_notices import context_warning, cut_newest_notice, does_not_fit, has_no_room, where_we_were
from nca.agent.fallbacks import Fallbacks
from nca.agent.hooks import Hooks
from nca.agent.memory import Memory
from nca.agent.summarizer import Summarizer
from nca.agent.window import Window
from nca.compat.stages import MORE_STAGES
from nca.context.draft import Draft
from nca.context.driver import drive_async
from nca.context.plan import Proposal, Question, compact
from nca.context.policy import has_too_many_turns, is_worth_it
from nca.context.provider_side import ProviderSummary, adopt
from nca.context.retention import kept_in_words
from nca.context.stages.prune import SHORTENED, shorten_earlier
from nca.context.summary import SummaryRequest
from nca.context.view import RECALL, Range, Summary, View
from nca.errors import NcaError, ProviderFailure, StoreError, UsageError
from nca.events import ContextCompaction, Listener, Notice
from nca.file_history.history import FileHistory
from nca.humanize import share
from nca.models.catalog import saved_cost
from nca.models.client import Reply
from nca.sessions.views import CompactionRecord
from nca.tools.planning import CompactionWish

Trigger = str
"""manual, threshold, idle, overflow, turns, model, asked or provider, as events.ContextCompaction has it."""


UNKNOWN_LIMIT_SHARE = 0.6
"""If the reply tells no limit that explains the refusal, it may be any: aim this much lower, so that one compaction
is enough."""


@dataclass(frozen=True, slots=True)
class CompactionOutcome:
    """The result of a compaction. Counts in tokens; `message` is one line for a person."""

    compacted: bool
    tokens_before: int
    tokens_after: int
    stages_used: tuple[str, ...] = ()
    kept_facts: int = 0
    total_facts: int = 0
    message: str = ""


class Compactor:
    """One for each window.

    models  the one that answers, or the one that the settings name, is asked for summaries
    prepares  a Background begins compactions while nobody waits
    memory  keeps the summaries of trimmed turns, once their compaction is on disk; None: nobody keeps them
    hooks   may forbid a compaction; None: nobody is asked
    files   knows what changed in the project; None: the calls alone say it
    wish    what the model itself wants; None: it cannot say
    """

    def __init__(
        self,
        window: Window,
        models: Fallbacks,
        emit: Listener,
        memory: Memory | None = None,
        *,
        prepares: bool = False,
        hooks: Hooks | None = None,
        files: FileHistory | None = None,
        wish: CompactionWish | None = None,
    ) -> None:
        self.window, self.summarizer, self._emit = window, Summarizer(window, models, emit), emit
        self._memory, self._hooks, self.files, self._wish = memory, hooks, files, wish or CompactionWish()
        self._wish.share = self._share
        self.prepares = prepares
        self._has_failed = False
        """So ended the last compaction."""
        self._carded = 0
        """The message of the person after which a card was shown last."""

    def after_turn(self, *, is_preparing: bool = False) -> None:
        """Show the notice that is due. `is_preparing`: a compaction is being prepared in the background."""
        decision = self.window.decide("after turn")
        if decision.notice:
            at = self.window.compacts_from / self.window.budget.budget_tokens
            starts = "Compaction is tried again" if self._has_failed else "Compaction follows"
            follows = f"{starts} before the next request." if decision.is_due else f"Compaction at {at:.0%}."
            follows = "A compaction is being prepared." if is_preparing else follows
            self._emit(context_warning(self.window, decision.notice, follows))

    async def before_turn(self) -> None:
        """Shorten results of earlier turns and trim these turns, where the settings ask for it."""
        window, context = self.window, self.window.context
        if context.auto == "on" and context.admission.shorten_each_turn:
            draft = Draft(window.history, window.meter)
            before = draft.raw
            shorten_earlier(draft, context.admission.history_chars)
            if draft.raw < before:
                window.put_in_force(draft.view(), SHORTENED, trigger="turns")
        if context.auto != "off" and has_too_many_turns(self.window.history, context.max_turns):
            await self.compact("turns", target_tokens=self.window.budget.budget_tokens)

    async def before_request(self) -> None:
        """Do what the model wants and what the policy decides: warn, compact, or refuse. Raises ContextDoesNotFit."""
        if (focus := self._wish.take()) is not None and self.window.context.auto != "off":
            await self.compact("asked", focus=focus)
        decision = self.window.decide("before request")
        if decision.action in ("compact", "refuse") and (error := has_no_room(self.window)):
            raise error
        if decision.notice:
            self._emit(context_warning(self.window, decision.notice, "Compacting now.", is_now=True))
        if decision.action == "compact":
            await self.compact(decision.trigger)
            decision = self.window.decide("compaction tried")
        elif not decision.is_due and self.window.is_larger_than_view():
            await self._grow()
        if decision.action == "refuse":
            raise does_not_fit(self.window.measure(), self.window.context.auto)

    async def _grow(self) -> None:
        """Show more of the log again, if that is worth what the provider's cache has of the request."""
        started = time.monotonic()
        proposal = await self.plan("model", grows=True)
        if proposal.compacted and is_worth_it(-proposal.tokens_saved, self.window.budget):
            self.say_starting("model")
            self.finish(proposal, "model", time.monotonic() - started)

    def _share(self) -> float:
        measured = self.window.measure()
        return measured.used_tokens / measured.budget.budget_tokens

    async def recover(self, failure: ProviderFailure, *, share: float, explain: Callable[[], None]) -> bool:
        """Recover from an overflow that the provider reported: learn its limit and compact below it.

        False if the next request would be the same again. `explain` tells the person why a compaction begins.
        """
        is_news = self.window.learn_window(failure.limit_tokens or 0)
        measured = self.window.measure()
        if not failure.limit_tokens:
            self.window.note_refused()
        if failure.action == "lower_max_tokens_then_compact" and is_news and measured.fits:
            # The room for the answer was too large; it has shrunk with the window.
            return True
        limit = min(self.window.budget.budget_tokens, measured.used_tokens)
        # If the provider counted more than we did, aim lower by as much.
        counted = failure.asked_tokens if failure.action == "compact" and failure.asked_tokens else 0
        is_explained = 0 < (failure.limit_tokens or 0) < max(measured.used_tokens, failure.asked_tokens or 0)
        share *= 1.0 if is_explained and is_news else UNKNOWN_LIMIT_SHARE
        target = int(share * limit * min(1.0, measured.used_tokens / counted if counted else 1.0))
        explain()
        outcome = await self.compact("overflow", target_tokens=target)
        return outcome.compacted or is_news

    async def preview(self, focus: str = "", only: Range | None = None) -> Preview:
        """The preview of a manual compaction, with its event. Nothing changes. Raises ContextDoesNotFit."""
        await self.close()
        started = time.monotonic()
        proposal = await self.plan("manual", focus=focus, only=only)
        seconds = time.monotonic() - started
        message = self._close(proposal, "manual", "preview", seconds, self.window.history.view).message
        price = self.window.facts.input_cost
        return Preview(proposal, self.window.history.view, message, seconds, self.summarizer.cost, price)

    def accept(self, preview: Preview) -> CompactionOutcome:
        """Apply a preview. Raises UsageError if the view has changed since, or nothing would be saved."""
        window, proposal = self.window, preview.proposal
        if window.history.view != preview.view_before:
            raise UsageError("The context has changed since the preview.", advice="Ask for a new one.")
        before, after = window.measure().used_tokens, window.meter.used_with(window.history, proposal.view)
        if proposal.compacted and after >= before:
            raise UsageError(f"This summary saves nothing ({before:,} → {after:,} tokens).")
        proposal = replace(proposal, tokens_before=before, tokens_after=after)
        return self.take(proposal, "manual", preview.seconds, preview.cost)

    async def compact(
        self, trigger: Trigger, *, focus: str = "", target_tokens: int = 0, only: Range | None = None
    ) -> CompactionOutcome:
        """Plan, summarize and commit. Raises ContextDoesNotFit; any other failure leaves the view as it was.

        only  the messages, first to last, that a person wants summarized
        """
        await self.close()
        started = time.monotonic()
        if self.window.context.auto == "preview" and trigger != "manual":
            proposal = await self.plan(trigger, focus=focus, target_tokens=target_tokens)
            self.window.rearm()
            return self._close(proposal, trigger, "preview", time.monotonic() - started, self.window.history.view)
        if reason := await self.forbidden(trigger, focus):
            used = self.window.measure().used_tokens
            return CompactionOutcome(False, used, used, message=reason)
        self.say_starting(trigger)
        try:
            proposal = await self.plan(trigger, focus=focus, target_tokens=target_tokens, only=only)
            return self.finish(proposal, trigger, time.monotonic() - started)
        except BaseException as error:
            self.say_unchanged("failed", trigger, str(error) if isinstance(error, NcaError) else "interrupted")
            raise

    async def close(self, reason: str = "") -> None:
        """Drop what is prepared: this class prepares nothing."""

    async def forbidden(self, trigger: Trigger, focus: str = "") -> str:
        """Why a hook of the person's forbids a compaction, after a notice about it; "" if it may begin."""
        said = await self._hooks.before_compaction(trigger, focus) if self._hooks is not None else ""
        if not said:
            return ""
        reason = f"A hook stopped the compaction: {said}"
        self._emit(Notice(reason))
        return reason

    async def plan(
        self,
        trigger: Trigger,
        *,
        focus: str = "",
        target_tokens: int = 0,
        only: Range | None = None,
        grows: bool = False,
    ) -> Proposal:
        """A proposal for the conversation as it is now, with its summary. The log may grow meanwhile.

        All questions to the summarizer share one deadline.
        """
        self.summarizer.start()
        changed = await asyncio.to_thread(self.changed_files)
        planning = compact(
            self.window.history.so_far(),
            self.window.meter,
            self.window.budget,
            self.window.context,
            focus=focus,
            target_tokens=target_tokens,
            is_repeated=True,
            is_manual=trigger in ("manual", "asked"),
            has_recall=self._has_recall,
            changed_files=changed,
            has_summarizer=self.summarizer.may_be_asked and not grows,
            summarizer_window=self.summarizer.window_tokens,
            only=only,
            grows=grows,
            more_stages=MORE_STAGES,
        )
        deadline = time.monotonic() + self.window.context.summarize.deadline_seconds

        async def answer(question: Question) -> object:
            if isinstance(question, SummaryRequest):
                return await self.summarizer.ask(question, deadline - time.monotonic())
            return await self.summarizer.consult_stage(question)

        return await drive_async(planning, answer)

    def changed_files(self) -> list[tuple[int, str, str]]:
        """`FileHistory.last_changes`. None if the record cannot be read: it serves the person, and stops no work."""
        with suppress(StoreError):
            return self.files.last_changes() if self.files is not None else []
        return []

    def adopt(self, reply: Reply, made_by: str, seconds: float) -> bool:
        """Replace messages by the provider's own summary that covers them; False if none could be replaced.

        The log keeps everything, and an undo shows it again. Raises StoreError.
        """
        if reply.compaction is None:
            return False
        window = self.window
        summary = ProviderSummary(reply.compaction, made_by)
        proposal = adopt(window.history, window.meter, window.budget, window.context, summary)
        cost = reply.usage.cost if reply.usage and reply.finish_reason == "compaction" else None
        return self.take(proposal, "provider", seconds, cost).compacted

    def take(self, proposal: Proposal, trigger: Trigger, seconds: float, cost: float | None) -> CompactionOutcome:
        """Put a finished proposal in force. `cost`: its price in US dollars. Raises StoreError as `finish` does."""
        self.summarizer.start(cost)
        self.say_starting(trigger)
        return self.finish(proposal, trigger, seconds)

    def finish(self, proposal: Proposal, trigger: Trigger, seconds: float, newest: str = "") -> CompactionOutcome:
        """Commit a proposal and send the event that ends it. Raises StoreError; then nothing has changed."""
        before = self.window.history.view
        if proposal.compacted:
            self._commit(proposal, trigger, seconds)
        return self._close(proposal, trigger, "real", seconds, before, newest)

    def say_starting(self, trigger: Trigger) -> None:
        self._say("starting", trigger, tokens_before=self.window.measure().used_tokens)

    def say_unchanged(self, phase: Literal["failed", "skipped"], trigger: Trigger, reason: str = "") -> None:
        used = self.window.measure().used_tokens
        self._say(phase, trigger, tokens_before=used, tokens_after=used, message=reason)

    def _commit(self, proposal: Proposal, trigger: Trigger, seconds: float) -> None:
        record = CompactionRecord(
            trigger=trigger,
            stages=proposal.stages_used,
            **_numbers(proposal),
            kept=proposal.facts.by_kind() if proposal.facts else {},
            seconds=seconds,
            cost=self.summarizer.cost,
        )
        was_cut = cut_newest_notice(self.window, proposal.cut_newest)
        self.window.commit(proposal, record)
        if not was_cut and (notice := cut_newest_notice(self.window, proposal.cut_newest)):
            self._emit(Notice(notice))
        if proposal.trimmed_text and self._memory is not None:
            problem = self._memory.keep_trimmed(proposal.trimmed_text, self.window.session.info.title)
            if problem:
                self._emit(Notice(problem))

    def _close(
        self, proposal: Proposal, trigger: Trigger, mode: str, seconds: float, before: View, newest: str = ""
    ) -> CompactionOutcome:
        """Send the event that ends a compaction, and return the outcome with the same numbers."""
        phase, verdict = self._verdict(proposal, trigger, mode, before)
        message = " ".join([verdict, *proposal.notices])
        is_real = proposal.compacted and mode == "real"
        self._say(
            phase,
            trigger,
            stages=proposal.stages_used,
            **_numbers(proposal),
            seconds=seconds,
            cost=self.summarizer.cost,
            saves=saved_cost(self.window.facts, proposal.tokens_before, proposal.tokens_after),
            saves_cached=saved_cost(self.window.facts, proposal.tokens_before, proposal.tokens_after, is_cached=True),
            message=message,
            card=self._card(trigger, newest) if is_real else (),
        )
        return CompactionOutcome(is_real, stages_used=proposal.stages_used, message=message, **_numbers(proposal))

    @property
    def _has_recall(self) -> bool:
        return any(tool["function"]["name"] == RECALL for tool in self.window.tools)

    def _card(self, trigger: Trigger, newest: str) -> tuple[str, ...]:
        """Whenever the person asks; else once after each of their messages, if it says more than stands above it."""
        before, self._carded = self._carded, self.window.history.newest_user or 0
        if trigger != "manual" and self._carded == before:
            return ()
        return where_we_were(self.window, self.files, is_exchange_shown=trigger != "manual", newest=newest)

    def _verdict(self, proposal: Proposal, trigger: Trigger, mode: str, view: View) -> tuple[str, str]:
        numbers = f"{proposal.tokens_before:,} → {proposal.tokens_after:,} tokens"
        if mode == "preview":
            return "preview", f"Would compact {numbers}." if proposal.compacted else "Nothing would be compacted."
        if proposal.compacted:
            if proposal.tokens_saved < 0:
                return "completed", f"The window is larger, so more of the conversation is shown again: {numbers}."
            before, after = (n / proposal.budget_tokens for n in (proposal.tokens_before, proposal.tokens_after))
            by_kind = proposal.facts.by_kind() if proposal.facts else {}
            # What was piped in is not counted among the words: without this, a message that is cut seems to be whole.
            cut = ", the newest message cut" if proposal.cut_newest else ""
            finds = RECALL if self._has_recall else "/context search"
            rest = f"; {finds} finds the rest" if any(seen < there for seen, there in by_kind.values()) else ""
            kept = f"; in view: {kept_in_words(by_kind)}{cut}{rest}" if by_kind else ""
            stages = stages_in_words(proposal.stages_used, new_writer(view, proposal.view))
            return (
                "completed",
                f"Compacted {numbers} ({share(before)} → {share(after)} of the budget, by {stages}{kept}).",
            )
        if trigger == "manual":
            self.window.rearm()
            advice = self._why_not_again(proposal) if any(isinstance(item, Summary) for item in view.items) else ""
            used = f"{proposal.tokens_before:,} of {proposal.budget_tokens:,} tokens"
            return "skipped", f"Nothing to compact: {used}.{advice}"
        if trigger != "turns" and self.window.compacted_in_vain():
            advice = "Unpin messages, shorten the input, or use a model with a larger window."
            return "insufficient", f"Compaction does not help any more at {proposal.tokens_before:,} tokens. {advice}"
        return "skipped", "Nothing could be compacted."

    def _why_not_again(self, proposal: Proposal) -> str:
        """The answer to a person who compacts a second time: newer messages go once they take more than the target."""
        target = proposal.target_tokens
        newer = f"; above {target:,} tokens, newer messages go as well" if proposal.tokens_before <= target else ""
        return f" Older messages are compacted already{newer}. To use another focus, run /context undo first."

    def _say(self, phase: str, trigger: Trigger, **values: object) -> None:
        self._has_failed = phase == "failed"
        self._emit(ContextCompaction(phase=phase, trigger=trigger, **values))  # type: ignore[arg-type]


def _numbers(proposal: Proposal) -> dict[str, Any]:
    """The fields that a record, an event and an outcome share."""
    names = ("tokens_before", "tokens_after", "kept_facts", "total_facts")
    return {name: getattr(proposal, name) for name in names}
