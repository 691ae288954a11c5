"""Compaction: log, view and budget in, a proposed view out. Nothing is changed until somebody commits it.

`compact` is a generator: where a summary is wanted it yields a SummaryRequest and takes what came back, so the
engine calls no model and knows no clock. `run` drives it with a callable.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b

from nca.config.schema import ContextSettings
from nca.context import ledger as facts
from nca.context.budget import Budget
from nca.context.draft import Draft
from nca.context.history import History
from nca.context.meter import Meter
from nca.context.request import resolve
from nca.context.stages.condense import condense
from nca.context.stages.custom import Strategy, act
from nca.context.stages.deduplicate import deduplicate
from nca.context.stages.prune import prune
from nca.context.stages.summarize import summarize
from nca.context.stages.trim import FEWEST_TURNS, Trimmed, trim
from nca.context.stages.truncate import cut_message, truncate
from nca.context.summary import SummaryFailure, SummaryReply, SummaryRequest
from nca.context.turns import has_too_many_turns
from nca.context.view import Verbatim, View, ranges_of, seqs
from nca.errors import ContextDoesNotFit
from nca.messages import AttachmentPart

LANDINGS = 4
"""Rounds of truncation with an exact count between them; each must come lower, so two are the rule."""

Compacting = Generator[SummaryRequest, "SummaryReply | SummaryFailure", "Proposal"]


@dataclass(frozen=True, slots=True)
class Proposal:
    """What a compaction would do. `view` is the unchanged one where `compacted` is False. All counts in tokens."""

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
    kept_facts: int = 0
    total_facts: int = 0
    made_by: str = ""
    """Who wrote the summary, where there is one: a model's name or "extract"."""
    failures: tuple[str, ...] = ()
    """Why a model's summary, or a stage that is not built in, could not be used."""
    trimmed_text: str = ""
    """What the summary of trimmed turns says, for the day's memory file."""

    @property
    def tokens_saved(self) -> int:
        return self.tokens_before - self.tokens_after


def compact(
    history: History,
    meter: Meter,
    budget: Budget,
    settings: ContextSettings,
    *,
    focus: str = "",
    target_tokens: int = 0,
    target_ratio: float = 0.0,
    is_manual: bool = False,
    summarizer_window: int = 0,
    load_stage: Callable[[str], Strategy] | None = None,
) -> Compacting:
    """Plan a compaction. Raises ContextDoesNotFit where what may not be touched is larger than the budget.

    target_tokens      0: what follows from the ratio
    target_ratio       0: the settings'
    is_manual          a person asked: aim below what is there, even if it is under the target already
    summarizer_window  tokens; 0: the chat's own window
    load_stage         gives a stage that is not built in by its name; None: such stages do nothing
    """
    draft = Draft(history, meter)
    before = meter.used(history)
    fixed = draft.fixed_tokens()
    target = target_tokens or budget.target_tokens(fixed, target_ratio or settings.target_ratio)
    if is_manual:
        target = min(target, fixed + max(0, draft.tokens - fixed) // 2)
    target = min(target, budget.budget_tokens)
    unchanged = Proposal(history.view, False, history.head, (), before, before, budget.budget_tokens, target)
    before_stages = draft.tokens
    is_trimming = has_too_many_turns(history, settings.max_turns)
    if draft.tokens <= target and not is_trimming:
        return unchanged
    saved: dict[str, int] = {}
    unheard: list[str] = []
    written = None
    trimmed: list[Trimmed | None] = []
    window = summarizer_window or budget.window_tokens
    input_tokens = int(window * 0.6 / meter.calibration.ratio)
    trimming = partial(
        trim, draft, settings, budget_tokens=budget.budget_tokens, focus=focus, input_tokens=input_tokens
    )
    if is_trimming:
        trimmed.append((yield from trimming(marker_id=_marker_id(draft), most=settings.max_turns)))
        if before_stages > draft.tokens:
            saved["trim"] = before_stages - draft.tokens
    for stage in settings.stages:
        if draft.tokens <= target:
            break
        tokens = draft.tokens
        match stage:
            case "prune":
                prune(draft, settings.prune, target_tokens=target, budget_tokens=budget.budget_tokens)
            case "deduplicate":
                deduplicate(draft, settings.deduplicate, target_tokens=target)
            case "summarize":
                written = yield from summarize(
                    draft,
                    settings,
                    target_tokens=target,
                    budget_tokens=budget.budget_tokens,
                    focus=focus,
                    input_tokens=input_tokens,
                )
            case "condense":
                condense(draft, _marker_id(draft))
            case "trim":
                trimmed.append((yield from trimming(marker_id=_marker_id(draft), fewest=FEWEST_TURNS)))
            case "truncate":
                _truncate(draft, settings, target, budget)
            case _ if load_stage is not None:
                unheard.append(act(draft, load_stage, stage))
        if draft.tokens < tokens:
            saved[stage] = saved.get(stage, 0) + tokens - draft.tokens
    tokens = draft.settle()
    if draft.tokens > target and "truncate" in settings.stages:
        _land(draft, settings, target, budget)
    if draft.tokens > budget.budget_tokens:
        _land(draft, settings, budget.budget_tokens, budget)
        _fit_or_refuse(draft, budget)
    if draft.tokens < tokens:
        saved["truncate"] = saved.get("truncate", 0) + tokens - draft.tokens
    view, after = draft.view(), draft.tokens
    if not saved or after >= min(before, meter.total(meter.raw(history))):
        return unchanged
    kept, total = kept_facts(history, history.view, view)
    texts = [done.text for done in trimmed if done is not None]
    written = written or next((done.written for done in reversed(trimmed) if done is not None and done.written), None)
    return Proposal(
        view,
        True,
        history.head,
        tuple(saved),
        before,
        after,
        budget.budget_tokens,
        target,
        saved,
        kept,
        total,
        written.made_by if written else "",
        (*filter(None, unheard), *(written.failures if written else ())),
        "\n\n".join(texts),
    )


def run(compacting: Compacting, summarizer: Callable[[SummaryRequest], SummaryReply | SummaryFailure]) -> Proposal:
    """Drive a compaction to its end with a callable that asks a model (or says that there is none)."""
    try:
        request = next(compacting)
        while True:
            request = compacting.send(summarizer(request))
    except StopIteration as done:
        proposal: Proposal = done.value
        return proposal


def no_summarizer(_: SummaryRequest) -> SummaryFailure:
    return SummaryFailure("no summarizer", is_final=True)


def kept_facts(history: History, before: View, after: View) -> tuple[int, int]:
    """(facts still in the new view, facts of the messages that it shows no longer)."""
    shown_before, shown_after = _verbatim(history, before), _verbatim(history, after)
    lost = [history.message(seq) for seq in sorted(shown_before - shown_after)]
    wanted = facts.facts_of(facts.extract(lost))
    pieces = []
    for message in resolve(history, after):
        pieces.append(message.text)
        pieces.extend(part.text for part in message.attachments if isinstance(part, AttachmentPart))
        pieces.extend(call.arguments for call in message.tool_calls)
    text = "\n".join(pieces)
    return sum(fact in text for fact in wanted), len(wanted)


def _verbatim(history: History, view: View) -> set[int]:
    shown = set(range(view.tail, history.head + 1))
    for item in view.items:
        if isinstance(item, Verbatim):
            shown.update(seqs(ranges_of(item)))
    return shown


def _truncate(draft: Draft, settings: ContextSettings, target_tokens: int, budget: Budget) -> None:
    truncate(
        draft,
        settings.truncate,
        target_tokens=target_tokens,
        budget_tokens=budget.budget_tokens,
        marker_id=_marker_id(draft),
    )


def _marker_id(draft: Draft) -> str:
    return blake2b(f"{draft.history.head}/{draft.raw}".encode(), digest_size=4).hexdigest()


def _land(draft: Draft, settings: ContextSettings, limit_tokens: int, budget: Budget) -> None:
    """Whatever the stages left, come below the limit as far as anything may still give way."""
    for _ in range(LANDINGS):
        before = draft.tokens
        _truncate(draft, settings, limit_tokens, budget)
        if draft.settle() <= limit_tokens or draft.tokens >= before:
            break


def _fit_or_refuse(draft: Draft, budget: Budget) -> None:
    """The newest user message gives way last of all; what is still too large is refused with the numbers."""
    if draft.tokens > budget.budget_tokens:
        _cut_newest(draft, budget)
        draft.settle()
    if draft.tokens > budget.budget_tokens:
        raise ContextDoesNotFit(
            f"The request needs {draft.tokens:,} tokens even after compaction; the budget is"
            f" {budget.budget_tokens:,} (window {budget.window_tokens:,}, of which {budget.reserve_tokens:,} are kept"
            " for the answer).",
            advice="Use a model with a larger window, unpin messages, or shorten the system prompt or the input.",
            used_tokens=draft.tokens,
            budget_tokens=budget.budget_tokens,
        )


def _cut_newest(draft: Draft, budget: Budget) -> None:
    """The newest user message gives way last of all, and only where it alone is larger than what is left for it."""
    seq = draft.newest_user
    block = next((block for block in draft.blocks() if seq in block.seqs), None) if seq else None
    if seq is None or block is None:
        return
    own = draft.history.run_tokens(seq, seq)
    left = budget.budget_tokens - draft.meter.total(draft.meter.fixed_raw)
    if draft.meter.scaled(own) <= left:
        return
    excess = int((draft.tokens - budget.budget_tokens) / draft.meter.calibration.ratio) + 8
    if own - excess > 32:
        cut_message(draft, block, seq, own - excess - 4)


__all__ = ["Compacting", "Proposal", "compact", "kept_facts", "no_summarizer", "run"]
