"""Plan a compaction: log, view and budget in, a proposed view out. Nothing changes until somebody commits it.

`compact` is a generator: it yields a SummaryRequest for a summary, and a StageRequest for a stage of a package. So the
engine calls no model and no foreign code, and knows no clock. `nca.context.driver` answers the questions.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, TypeVar

from nca.config.extensions import STAGES
from nca.config.schema import ContextSettings
from nca.context import policy
from nca.context.budget import Budget
from nca.context.draft import Block, Draft
from nca.context.fit import (
    fit,
    fit_or_refuse,
    make_room_beside_newest,
    refuse_newest,
    release_large_step,
)
from nca.context.history import History
from nca.context.meter import Meter
from nca.context.oldest import without_oldest
from nca.context.parts import split
from nca.context.restore import as_never_compacted, never_compacted, with_pins
from nca.context.retention import KeptFacts
from nca.context.stages.custom import StageRequest, act
from nca.context.stages.deduplicate import deduplicate, fix_pointers, superseded
from nca.context.stages.prune import fill, prune
from nca.context.stages.summarize import LIVE_SHARE, summarize, summarize_range, target_with_words, words_would_go
from nca.context.stages.trim import trim
from nca.context.stages.truncate import truncate
from nca.context.summary import SummaryFailure, SummaryJob, SummaryRequest, Written
from nca.context.summary_writer import BY_CODE, NO_SUMMARIZER
from nca.context.view import Range, View

INPUT_RATIO = 0.6
"""The share of the summarizer's window for its input; the rest is for its answer and errors of the estimate."""

SHORTENING = ("prune", "deduplicate", "truncate")
"""Stages of nca that act on the shown messages."""
HIDING = frozenset({"summarize", "truncate"})
"""Stages after which older messages are hidden."""
STAGE_ROUNDS = 3
"""nca's own stages run again while a view above its target comes down: one may open the way for another."""

T = TypeVar("T")
Question = SummaryRequest | StageRequest
Asking = Generator[Question, Any, T]
"""A SummaryRequest takes a SummaryReply or a SummaryFailure, a StageRequest a StageReply."""
Stage = Callable[["Planning"], Asking[None]]
"""A stage that the caller of the compaction supplies (`nca.compat.presets`)."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """The plan of a compaction. `view` is unchanged if `compacted` is False. All counts in tokens."""

    view: View
    compacted: bool
    head: int
    """The newest seq that the plan has seen."""
    stages_used: tuple[str, ...]
    tokens_before: int
    tokens_after: int
    budget_tokens: int
    target_tokens: int
    saved_by_stage: dict[str, int] = field(default_factory=dict)
    """`tokens_saved`, shared out as the stages made the draft smaller: it may begin with more than the view shows."""
    facts: KeptFacts | None = field(default=None, compare=False, repr=False)
    made_by: str = ""
    """Who wrote the summary: a model's name, "extract" for code, both if code finished it, or "" for none."""
    failures: tuple[str, ...] = ()
    """Why a model's summary could not be used."""
    stage_failures: tuple[str, ...] = ()
    """Why a stage of a package did nothing; each names its stage."""
    trimmed_text: str = ""
    """The summary of trimmed turns, for the day's memory file."""
    cut_newest: int = 0
    """The person's newest message, if it alone is larger than the window and was cut; else 0."""

    @property
    def tokens_saved(self) -> int:
        return self.tokens_before - self.tokens_after

    @property
    def is_by_code(self) -> bool:
        """Whether no model has written any of it: it costs nothing to make again."""
        return self.made_by in ("", BY_CODE)

    @property
    def kept_facts(self) -> int:
        """Facts of the hidden messages that can still be read in the new view."""
        return self.facts.count()[0] if self.facts else 0

    @property
    def total_facts(self) -> int:
        return self.facts.count()[1] if self.facts else 0

    @property
    def notices(self) -> tuple[str, ...]:
        """Problems, one sentence each: why a model that was asked did not write, and which stages did nothing."""
        said = []
        if self.failures and self.made_by.endswith(BY_CODE):
            how = "written" if self.made_by == BY_CODE else "finished"
            said.append(f"Summary {how} by code: {self.failures[-1].rstrip('.')}.")
        if self.stage_failures:
            said.append(f"Not used: {'; '.join(self.stage_failures).rstrip('.')}.")
        return tuple(said)


def compact(
    history: History,
    meter: Meter,
    budget: Budget,
    settings: ContextSettings,
    *,
    focus: str = "",
    target_tokens: int = 0,
    is_repeated: bool = False,
    is_manual: bool = False,
    has_recall: bool = True,
    changed_files: Sequence[tuple[int, str, str]] = (),
    summarizer_window: int = 0,
    has_summarizer: bool = True,
    only: Range | None = None,
    grows: bool = False,
    more_stages: Mapping[str, Stage] = MappingProxyType({}),
) -> Asking[Proposal]:
    """Plan a compaction. Raises ContextDoesNotFit if the untouchable part is larger than the budget.

    target_tokens      0: the settings' ratio decides
    is_repeated        others follow: end so far below the threshold that they are rare (`policy.aim_ratio`)
    is_manual          a person or the model asked: aim below the current size, even if that is already under the target
    has_recall         the view's reader can look up hidden messages by their numbers
    changed_files      what the record of files knows: the message before a change, the path, and what it is now
    summarizer_window  tokens; 0: the chat's own window
    has_summarizer     False: no model writes a summary
    only               summarize these messages alone, first to last, because a person chose them
    grows              show more of the log again, up to the target: the view was made for a smaller window
    more_stages        stages beside the four of the engine, by the names that context.stages may hold
    """
    before, counted = meter.used(history), meter.total(meter.raw(history))
    input_tokens = int((summarizer_window or budget.window_tokens) * INPUT_RATIO / meter.calibration.ratio)
    job = SummaryJob(
        settings, budget.budget_tokens, focus, input_tokens, has_summarizer, has_recall, tuple(changed_files)
    )
    ratio = (policy.aim_ratio if is_repeated else policy.target_ratio)(budget, settings)
    is_whole = only is None and "summarize" in settings.stages and not settings.max_turns
    start, shortens = with_pins(history), True
    if is_whole:
        start, shortens = as_never_compacted(start, meter.raw_for(budget.budget_tokens))
    if grows and meter.used_with(history, (whole := never_compacted(start)).view) <= ratio * budget.budget_tokens:
        start = whole
    keeps_newest = only is None or not is_answered(history)
    whole_raw, passed_turns = start.view_tokens, 0
    if only is None and not grows and not settings.max_turns and takes_oldest(settings.stages):
        is_hiding = not HIDING.isdisjoint(settings.stages)
        most = max(target_tokens, policy.most_target_tokens(budget, settings))
        room = max(policy.room_tokens(budget, ratio), most) if is_hiding else budget.budget_tokens
        # A model may be asked with messages as they were sent before.
        live_raw = int(LIVE_SHARE * input_tokens) if is_whole and has_summarizer else 0
        start, passed_turns = without_oldest(start, max(int(room / meter.calibration.ratio), live_raw))
    draft = Draft(start, meter, keeps_newest=keeps_newest, has_recall=has_recall, passed_turns=passed_turns)
    planning = Planning(history, draft, budget, job, more_stages, before, counted, grows=grows, shortens=shortens)
    planning.aim(target_tokens, ratio, is_manual=is_manual)
    planning.passed = meter.scaled(whole_raw - start.view_tokens)
    yield from planning.work() if only is None else planning.work_on(*only)
    return planning.proposal()


@dataclass(slots=True)
class Planning:
    """One compaction while it is planned. `target`, `most_target` and `limit` are in tokens, as the draft counts.

    counted   `before` without a report of the provider
    shortens  it can be enough to shorten results
    passed    tokens that the draft does not begin with, because no stage could keep them
    """

    history: History
    draft: Draft
    budget: Budget
    job: SummaryJob
    more_stages: Mapping[str, Stage]
    before: int
    counted: int
    grows: bool = False
    shortens: bool = True
    target: int = 0
    most_target: int = 0
    limit: int = 0
    saved: dict[str, int] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    stage_failures: list[str] = field(default_factory=list)
    written: Written | None = None
    trimmed: list[str] = field(default_factory=list)
    cut_newest: int = 0
    passed: int = 0

    def aim(self, target_tokens: int, target_ratio: float, *, is_manual: bool) -> None:
        # If the anchor says that this request is larger than its parts count, aim lower by as much.
        share = min(1.0, self.counted / self.before)
        tokens = self.draft.tokens
        if make_room_beside_newest(self.draft, self.budget.budget_tokens):
            if self.job.settings.fit == "refuse":
                raise refuse_newest(self.draft, self.budget)
            self.cut_newest = self.draft.newest_user or 0
        release_large_step(self.draft, self.budget.budget_tokens)
        self._note("truncate", tokens)
        fixed = self.draft.fixed_tokens()
        target = int(share * (target_tokens or policy.target_tokens(self.budget, fixed, target_ratio)))
        most = 0 if target_tokens else int(share * policy.most_target_tokens(self.budget, self.job.settings))
        if is_manual:
            # Of the log without any compaction, so that a second one finds nothing to do.
            target, most = (max(fixed, min(one, self._whole_tokens())) for one in (target, max(target, most)))
            target = (fixed + target) // 2
            if "summarize" in self.job.settings.stages:
                # No message of the person goes for it: a small chat stays as it is.
                target = target_with_words(self.draft, self.job, target, most)
        elif "summarize" in self.job.settings.stages:
            self.most_target = most
            is_within = target < self.draft.tokens <= most and not self.job.settings.max_messages
            if is_within and self._is_whole() and words_would_go(self.draft, self.job, target, most):
                # Nothing needs the room, unless a person has limited what is shown.
                target = self.draft.tokens
        self.limit = int(share * self.budget.budget_tokens)
        self.target = min(target, self.limit)
        if self.cut_newest and self._is_whole():
            # All the rest may take less than the half that was left to it.
            fill(self.draft, self.target, ("truncate",))

    def _is_whole(self) -> bool:
        """Whether the draft shows all of the log, except for what a person has cleared."""
        return all(isinstance(part, Block) or not part.text for part in self.draft.parts)

    def _whole_tokens(self) -> int:
        """Tokens of the conversation without compactions; if it was and does not fit, more than any target."""
        return self.draft.tokens if self._is_whole() else self.budget.budget_tokens

    def work(self) -> Asking[None]:
        """Trim if there are too many turns, then run stage after stage while it is over the target, then fit."""
        settings = self.job.settings
        if policy.has_too_many_turns(self.draft.history, settings.max_turns):
            yield from self._measured("trim", self.trim(most=settings.max_turns))
            # Repairs between the rest count as well: without them the stages could find nothing left to do.
            self.draft.settle()
        elif self.grows and not self._is_whole():
            yield from self._measured("summarize", self._stage("summarize"))
        elif not self.passed and min(self.draft.tokens, self.counted) <= self.target and not self.grows:
            return
        stages: Sequence[str] = settings.stages
        for _ in range(STAGE_ROUNDS):
            before = self.draft.raw
            yield from self._run(stages)
            fix_pointers(self.draft)
            tokens = self.draft.settle()
            if tokens <= self.target or self.draft.raw >= before:
                break
            # The model has been asked: a further round is left to code.
            self.job = replace(self.job, has_summarizer=False)
            stages = [stage for stage in stages if stage in STAGES]
        before = self.draft.raw + 1
        while self.draft.raw < before:
            before = self.draft.raw
            # Over the budget it comes down to the target whatever the stages are, so that compactions stay rare.
            if self.draft.tokens > (self.target if "truncate" in settings.stages else self.limit):
                fit(self.draft, settings, self.target, self.budget)
            if self.draft.tokens > self.limit:
                fit_or_refuse(self.draft, self.budget, self.limit)
            # What is left may be denser than what was cut.
            if self.draft.settle() <= self.limit:
                break
        self._note("truncate", tokens)

    def _run(self, stages: Sequence[str]) -> Asking[None]:
        for place, stage in enumerate(stages):
            if self.draft.tokens <= self.target and not self.passed:
                break
            is_enough = self.shortens and self._is_whole() and not self.job.focus
            if stage in SHORTENING and "summarize" in stages[place:] and not is_enough:
                # A record is made from the log: the result of an earlier compaction is not part of it. And a focus
                # asks for one.
                continue
            yield from self._measured(stage, self._stage(stage, has_record="summarize" in stages[place:]))

    def work_on(self, first: int, last: int) -> Asking[None]:
        """Summarize messages first … last alone: a block if its last message is among them, so calls keep results."""
        chosen = [block for block in self.draft.blocks() if first <= block.last <= last and not block.is_locked]
        tokens = self.draft.tokens
        self._take((yield from summarize_range(self.draft, self.job, chosen)))
        self._note("summarize", tokens)
        fix_pointers(self.draft)
        self.draft.settle()

    def proposal(self) -> Proposal:
        after, budget, history = self.draft.tokens, self.budget.budget_tokens, self.history
        smallest = min(self.before, self.counted)
        is_better = after > self.before if self.grows else bool(self.saved) and after < smallest
        if not is_better:
            numbers = (self.before, self.before, budget, self.target)
            return Proposal(history.view, False, history.head, (), *numbers, stage_failures=tuple(self.stage_failures))
        view = self.draft.view()
        return Proposal(
            view,
            True,
            history.head,
            tuple(self.saved) or (("summarize",) if self.grows else ()),
            self.before,
            after,
            budget,
            self.target,
            saved_by_stage=split(self.before - after, self.saved) if self.saved else {},
            facts=KeptFacts(history, view, self.job.changed_files),
            made_by=self.written.made_by if self.written else "",
            failures=tuple(self.failures),
            stage_failures=tuple(self.stage_failures),
            trimmed_text="\n\n".join(self.trimmed),
            cut_newest=self.cut_newest,
        )

    def _stage(self, stage: str, *, has_record: bool = False) -> Asking[None]:
        draft, budget_tokens = self.draft, self.budget.budget_tokens
        match stage:
            case "prune":
                is_pointing, settings = "deduplicate" in self.job.settings.stages, self.job.settings.prune
                prune(
                    draft,
                    # Where messages are hidden in any case, no saving is too small.
                    replace(settings, minimum_savings_tokens=0) if self.passed else settings,
                    target_tokens=self.target,
                    budget_tokens=budget_tokens,
                    history_chars=self.job.settings.admission.history_chars,
                    copies={one.seq: one.text for one in superseded(draft) if one.is_copy} if is_pointing else {},
                    has_record=has_record,
                )
                fill(draft, self.target)
            case "deduplicate":
                deduplicate(draft, self.job.settings.deduplicate, target_tokens=self.target)
                fill(draft, self.target)
            case "summarize":
                most = min(self.limit, self.most_target)
                view, written, self.target = yield from summarize(draft, self.job, self.target, most)
                self._take(written)
                self.draft = Draft(self.history.seen_as(view), draft.meter, has_recall=draft.has_recall)
            case "truncate":
                truncate(draft, self.job.settings.truncate, target_tokens=self.target, budget_tokens=budget_tokens)
            case _ if stage in self.more_stages:
                yield from self.more_stages[stage](self)
            case _:
                self.stage_failures += filter(None, [(yield from act(draft, stage))])

    def trim(self, *, fewest: int = 2, most: int = 0) -> Asking[None]:
        """Replace the oldest half of the complete turns by a summary (`nca.context.stages.trim`)."""
        done = yield from trim(self.draft, self.job, fewest=fewest, most=most, target_tokens=self.target)
        if done is not None:
            self.trimmed.append(done.text)
            self._take(done.written)

    def _take(self, written: Written | None) -> None:
        # Of a further round, which asks nobody, the one before knows who wrote and why no model did.
        if written is not None and (self.written is None or self.job.has_summarizer):
            self.written = written
            self.failures += written.failures

    def _measured(self, stage: str, work: Asking[None]) -> Asking[None]:
        tokens = self.draft.tokens
        yield from work
        self._note(stage, tokens)

    def _note(self, stage: str, tokens_before: int) -> None:
        if stage in HIDING:
            tokens_before, self.passed = tokens_before + self.passed, 0
        if self.draft.tokens < tokens_before:
            self.saved[stage] = self.saved.get(stage, 0) + tokens_before - self.draft.tokens


def takes_oldest(stages: Sequence[str]) -> bool:
    """Whether these stages act only while there is too much, and take the oldest messages first.

    Deduplicate compares all reads of the log, unless a stage before it has cleared or hidden the older ones.
    """
    return set(stages) <= set(STAGES) and "deduplicate" not in stages[:1]


def is_answered(history: History) -> bool:
    """Whether the newest turn is over: nothing waits for the model."""
    newest = next(history.backwards(), None)
    return newest is not None and newest.message.role == "assistant" and not newest.message.tool_calls


def no_summarizer(_: SummaryRequest) -> SummaryFailure:
    return SummaryFailure(NO_SUMMARIZER, is_final=True)
