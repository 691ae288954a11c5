"""Plan a compaction: log, view and budget in, a proposed view out. Nothing changes until somebody commits it.

`compact` is a generator: it yields a SummaryRequest for a summary, and a StageRequest for a stage of a package. So the
engine calls no model and no foreign code, and knows no clock. `nca.context.driver` answers the questions.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil
from types import MappingProxyType
from typing import Any, TypeVar

from nca.config.schema import STAGES, ContextSettings
from nca.context import policy
from nca.context.budget import Budget
from nca.context.draft import Draft
from nca.context.fit import fit, fit_or_refuse, make_room_beside_newest, marker_id, release_large_step, truncate_to
from nca.context.history import History
from nca.context.meter import Meter
from nca.context.record.recording import SummaryJob
from nca.context.record.unseen import unseen_results_raw, unseen_share
from nca.context.retention import KeptFacts
from nca.context.settled_prefix import recent_raw
from nca.context.stages.custom import StageRequest, act
from nca.context.stages.deduplicate import deduplicate, fix_pointers
from nca.context.stages.prune import prune
from nca.context.stages.summarize import summarize
from nca.context.stages.trim import trim
from nca.context.stages.truncate import MARKER_TOKENS
from nca.context.summary import SummaryFailure, SummaryRequest, Written
from nca.context.summary_writer import BY_CODE, NO_SUMMARIZER
from nca.context.view import Range, Summary, View

INPUT_RATIO = 0.6
"""The share of the summarizer's window for what it reads; the rest is its answer and what the estimate may miss."""

STAGE_ROUNDS = 3
"""nca's own stages run again while a view above its target comes down: one may open the way for another."""

T = TypeVar("T")
Question = SummaryRequest | StageRequest
Asking = Generator[Question, Any, T]
"""A SummaryRequest takes a SummaryReply or a SummaryFailure, a StageRequest a StageReply."""
Stage = Callable[["Planning"], Asking[None]]
"""A stage that whoever asks for the compaction brings along (`nca.compat.stages`)."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """What a compaction would do. `view` is unchanged if `compacted` is False. All counts in tokens."""

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
    facts: KeptFacts | None = field(default=None, compare=False, repr=False)
    made_by: str = ""
    """Who wrote the summary: a model's name, "extract" for code, both if code finished it, or "" for none."""
    failures: tuple[str, ...] = ()
    """Why a model's summary could not be used."""
    stage_failures: tuple[str, ...] = ()
    """Why a stage of a package did nothing; each names its stage."""
    trimmed_text: str = ""
    """The summary of trimmed turns, for the day's memory file."""

    @property
    def tokens_saved(self) -> int:
        return self.tokens_before - self.tokens_after

    @property
    def kept_facts(self) -> int:
        """Facts of the hidden messages that can still be read in the new view."""
        return self.facts.count()[0] if self.facts else 0

    @property
    def total_facts(self) -> int:
        return self.facts.count()[1] if self.facts else 0

    @property
    def stage_notices(self) -> tuple[str, ...]:
        """Which stages of packages did nothing, and why, in one sentence."""
        return (f"Not used: {'; '.join(self.stage_failures).rstrip('.')}.",) if self.stage_failures else ()

    @property
    def notices(self) -> tuple[str, ...]:
        """What did not go as asked, a sentence each."""
        if not self.failures or not self.made_by.endswith(BY_CODE):
            return self.stage_notices
        how = "written" if self.made_by == BY_CODE else "finished"
        return (f"Summary {how} by code: {self.failures[-1].rstrip('.')}.", *self.stage_notices)


def compact(
    history: History,
    meter: Meter,
    budget: Budget,
    settings: ContextSettings,
    *,
    focus: str = "",
    target_tokens: int = 0,
    target_ratio: float = 0.0,
    is_exact: bool = False,
    is_last: bool = False,
    is_manual: bool = False,
    summarizer_window: int = 0,
    has_summarizer: bool = True,
    only: Range | None = None,
    more_stages: Mapping[str, Stage] = MappingProxyType({}),
) -> Asking[Proposal]:
    """Plan a compaction. Raises ContextDoesNotFit if what may not be touched is larger than the budget.

    target_tokens      0: the ratio decides
    target_ratio       0: the settings' own, as `policy.target_ratio` has it
    is_exact           rules, words and decisions keep to the target too, as they do to target_tokens
    is_last            nothing goes on from the view: what its record has no room for need not be looked for
    is_manual          a person asked: aim below what is there, even if it is under the target already
    summarizer_window  tokens; 0: the chat's own window
    has_summarizer     False: summaries are extracts made by code
    only               summarize these messages alone, first to last, because a person chose them
    more_stages        stages beside the four of the engine, by the names that context.stages may hold
    """
    ratio = target_ratio or policy.target_ratio(budget, settings)
    recent = recent_raw(history, meter, budget, settings, ratio, target_tokens) if only is None else 0
    draft = Draft(history, meter, keeps_newest=only is None or not is_answered(history), recent_raw=recent)
    input_tokens = int((summarizer_window or budget.window_tokens) * INPUT_RATIO / meter.calibration.ratio)
    job = SummaryJob(settings, budget.budget_tokens, focus, input_tokens, has_summarizer, is_last)
    planning = Planning(draft, budget, job, more_stages, is_exact=is_exact or bool(target_tokens))
    planning.aim(target_tokens, ratio, is_manual=is_manual)
    yield from planning.work() if only is None else planning.work_on(*only)
    return planning.proposal()


@dataclass(slots=True)
class Planning:
    """One compaction while it is planned. `target` and `limit` are in tokens, as the draft counts."""

    draft: Draft
    budget: Budget
    job: SummaryJob
    more_stages: Mapping[str, Stage]
    target: int = 0
    limit: int = 0
    is_exact: bool = False
    """Whoever asks named the target: it is a limit to everything."""
    cut_target: int = 0
    """What contents are cut for: a person who asks for less than the usual target loses nothing by it."""
    floor: int = 0
    """What is left of the draft with nothing but what cannot be had again."""
    saved: dict[str, int] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    stage_failures: list[str] = field(default_factory=list)
    written: Written | None = None
    trimmed: list[str] = field(default_factory=list)
    before: int = field(init=False)
    before_raw: int = field(init=False)

    def __post_init__(self) -> None:
        self.before = self.draft.meter.used(self.draft.history)
        self.before_raw = self.draft.raw

    def aim(self, target_tokens: int, target_ratio: float, *, is_manual: bool) -> None:
        # Where the anchor knows that this request is larger than its parts count, aim lower by as much.
        share = min(1.0, self.draft.tokens / self.before)
        tokens = self.draft.tokens
        make_room_beside_newest(self.draft, self.budget.budget_tokens)
        release_large_step(self.draft, self.budget.budget_tokens)
        self._note("truncate", tokens)
        fixed = self.draft.fixed_tokens()
        target = target_tokens or policy.target_tokens(self.budget, fixed, target_ratio)
        usual = target
        if is_manual:
            target = min(target, fixed + max(0, self.draft.tokens - fixed) // 2)
        self.limit = int(share * self.budget.budget_tokens)
        self.target = min(int(share * target), self.limit)
        self.cut_target = min(int(share * usual), self.limit)

    def work(self) -> Asking[None]:
        """Trim if there are too many turns, then run stage after stage while it is over the target, then fit."""
        settings = self.job.settings
        if policy.has_too_many_turns(self.draft.history, settings.max_turns):
            yield from self._measured("trim", self.trim(most=settings.max_turns))
            # Repairs between what stays count too: without them the stages could find nothing left to do.
            self.draft.settle()
        elif self.draft.tokens <= self.target:
            return
        stages: Sequence[str] = settings.stages
        for _ in range(STAGE_ROUNDS):
            before, self.floor = self.draft.tokens, 0
            yield from self._run(stages)
            fix_pointers(self.draft)
            tokens = self.draft.settle()
            if tokens <= self.target or tokens >= before:
                break
            # The model has been asked: what is left for a further round is code's.
            self.job = replace(self.job, has_summarizer=False)
            stages = [stage for stage in stages if stage in STAGES]
        # Over the budget it comes down to the target whatever the stages are, so that compactions stay rare.
        if self.draft.tokens > (self.reach if "truncate" in settings.stages else self.limit):
            fit(self.draft, settings, self.reach, self.budget)
        if self.draft.tokens > self.limit:
            fit_or_refuse(self.draft, self.budget, self.limit)
        self._note("truncate", tokens)

    def _run(self, stages: Sequence[str]) -> Asking[None]:
        for stage in stages:
            if self.draft.tokens <= (self.reach if stage == "truncate" else max(self.target, self.floor)):
                break
            yield from self._measured(stage, self._stage(stage))

    def work_on(self, first: int, last: int) -> Asking[None]:
        """Summarize messages first … last alone."""
        yield from self._measured("summarize", self._summarize_only(first, last))
        fix_pointers(self.draft)
        self.draft.settle()

    def proposal(self) -> Proposal:
        after, budget = self.draft.tokens, self.budget.budget_tokens
        history = self.draft.history
        if not self.saved or after >= min(self.before, self.draft.meter.total(self.before_raw)):
            numbers = (self.before, self.before, budget, self.target)
            return Proposal(history.view, False, history.head, (), *numbers, stage_failures=tuple(self.stage_failures))
        view = self.draft.view()
        return Proposal(
            view,
            True,
            history.head,
            tuple(self.saved),
            self.before,
            after,
            budget,
            self.target,
            saved_by_stage=self.saved,
            facts=KeptFacts(history, history.view, view),
            made_by=self.written.made_by if self.written else "",
            failures=tuple(self.failures),
            stage_failures=tuple(self.stage_failures),
            trimmed_text="\n\n".join(self.trimmed),
        )

    def _stage(self, stage: str) -> Asking[None]:
        draft, budget_tokens = self.draft, self.budget.budget_tokens
        match stage:
            case "prune":
                prune(
                    draft,
                    self.job.settings.prune,
                    target_tokens=self.target,
                    budget_tokens=budget_tokens,
                    history_chars=self.job.settings.admission.history_chars,
                )
            case "deduplicate":
                deduplicate(draft, self.job.settings.deduplicate, target_tokens=self.target)
            case "summarize":
                aims = self.target, self.ceiling
                self._take((yield from summarize(draft, self.job, target_tokens=aims[0], ceiling_tokens=aims[1])))
                self._protect()
            case "truncate":
                truncate_to(draft, self.job.settings, self.reach, self.budget)
            case _ if stage in self.more_stages:
                yield from self.more_stages[stage](self)
            case _:
                self.stage_failures += filter(None, [(yield from act(draft, stage))])

    @property
    def ceiling(self) -> int:
        """What rules, changed files, words and decisions may fill; a target that was named is a limit to them too."""
        return (
            self.target
            if self.is_exact
            else min(self.limit, policy.ceiling_tokens(self.budget, self.job.settings, self.target))
        )

    @property
    def reach(self) -> int:
        """What the later stages come down to: the target, or what is left of a record that is larger."""
        return max(self.cut_target, self.floor)

    def _protect(self) -> None:
        """What cannot be had again may take the view above the target: it is not cut for the target's sake."""
        draft = self.draft
        has_record = any(isinstance(part, Summary) for part in draft.parts)
        movable = 0
        if not has_record or draft.tokens > self.ceiling:
            results = unseen_results_raw(draft)
            movable = sum(block.raw for block in draft.blocks() if not block.is_locked)
            staying = draft.meter.total(draft.raw - movable - results)
            most = self.ceiling if self.is_exact else self.limit
            # New results keep their share even where what stays is larger than the ceiling.
            cut = results - unseen_share(self.ceiling - staying, most - staying)
            if has_record:
                above = draft.meter.total(draft.raw - movable) - self.ceiling
                cut = min(cut, ceil(above / draft.meter.calibration.ratio))
            movable += max(0, cut)
        is_worth_it = movable > MARKER_TOKENS
        least = draft.meter.total(draft.raw - movable + MARKER_TOKENS) if is_worth_it else draft.tokens
        self.floor = min(least, self.limit)

    def _summarize_only(self, first: int, last: int) -> Asking[None]:
        """A block is summarized if its last message is in the range, so a call stays with its results."""
        chosen = [block for block in self.draft.blocks() if first <= block.last <= last and not block.is_locked]
        # Room is not the point: the summary may be as long as its settings allow.
        most = self.budget.budget_tokens
        work = summarize(self.draft, self.job, target_tokens=most, ceiling_tokens=most, older=chosen)
        self._take((yield from work))

    def trim(self, *, fewest: int = 2, most: int = 0) -> Asking[None]:
        """Replace the oldest half of the complete turns by a summary (`nca.context.stages.trim`)."""
        done = yield from trim(self.draft, self.job, marker_id(self.draft), fewest=fewest, most=most)
        if done is not None:
            self.trimmed.append(done.text)
            self._take(done.written)

    def _take(self, written: Written | None) -> None:
        if written is not None:
            self.written = written
            self.failures += written.failures

    def _measured(self, stage: str, work: Asking[None]) -> Asking[None]:
        tokens = self.draft.tokens
        yield from work
        self._note(stage, tokens)

    def _note(self, stage: str, tokens_before: int) -> None:
        if self.draft.tokens < tokens_before:
            self.saved[stage] = self.saved.get(stage, 0) + tokens_before - self.draft.tokens


def is_answered(history: History) -> bool:
    """Whether the newest turn is over: nothing waits for the model."""
    newest = next(history.backwards(), None)
    return newest is not None and newest.message.role == "assistant" and not newest.message.tool_calls


def no_summarizer(_: SummaryRequest) -> SummaryFailure:
    return SummaryFailure(NO_SUMMARIZER, is_final=True)
