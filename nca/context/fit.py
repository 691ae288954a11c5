"""The last resort of a compaction: cut until the request fits, or refuse it."""

from __future__ import annotations

from nca.config.schema import ContextSettings
from nca.context.budget import Budget
from nca.context.draft import Draft
from nca.context.meter import Meter
from nca.context.record.steps import cut_content
from nca.context.stages.truncate import cut_summaries, truncate
from nca.context.tokens import message_tokens
from nca.context.view import Stub
from nca.errors import ContextDoesNotFit
from nca.messages import Message

NEWEST_SHARE = 0.5
"""The share of the budget that is left to a newest user message which alone is larger than the budget."""
SMALLEST_NEWEST_TOKENS = 32
RECORD_SHARE = 0.25
"""The share of the budget for a record beside all that stays; a step is large from this share on."""
FIT_ROUNDS = 4
"""Rounds of truncation with an exact count between them; each must come lower, so two are the rule."""


SAFE_SHARE = 0.98
"""The first request after a compaction is an estimate (up to 1.3% too low as measured): summaries leave that room."""


def fit(draft: Draft, settings: ContextSettings, limit_tokens: int, budget: Budget) -> None:
    """Come below the limit after the stages, as far as anything may still be cut."""
    for _ in range(FIT_ROUNDS):
        before = draft.tokens
        truncate(draft, settings.truncate, target_tokens=limit_tokens, budget_tokens=budget.budget_tokens)
        if draft.settle() <= limit_tokens or draft.tokens >= before:
            break


def fit_or_refuse(draft: Draft, budget: Budget, limit_tokens: int) -> None:
    """Summaries, then the newest user message, give way last; a request that stays too large is refused, with numbers.

    limit_tokens  of the draft; below the budget if a report says that the draft counts too little
    """
    safe_tokens = int(limit_tokens * SAFE_SHARE)
    if draft.tokens > safe_tokens:
        cut_summaries(draft, safe_tokens)
    if draft.tokens > limit_tokens:
        make_room_beside_newest(draft, limit_tokens)
        draft.settle()
    if draft.tokens > budget.budget_tokens:
        raise ContextDoesNotFit(
            f"Even compacted as far as may be, the request would need {draft.tokens:,} tokens; the budget is"
            f" {budget.budget_tokens:,} (window {budget.window_tokens:,}, of which {budget.reserve_tokens:,} are kept"
            " for the answer).",
            advice=_ways("input", has_pins=bool(draft.history.pins)),
            used_tokens=draft.tokens,
            budget_tokens=budget.budget_tokens,
        )


def _ways(what: str, *, has_pins: bool) -> str:
    unpin = ", unpin messages," if has_pins else ""
    return f"Use a model with a larger window{unpin} or shorten the system prompt or the {what}."


def make_room_beside_newest(draft: Draft, limit_tokens: int) -> bool:
    """If the newest user message is larger than the rest of the limit, cut it to half of that rest.

    So a record of everything before it has room, and a second compaction finds nothing more to cut. Whether it was cut.
    """
    seq = draft.newest_user
    block = next((block for block in draft.blocks() if seq in block.seqs), None) if seq else None
    if seq is None or block is None:
        return False
    left = limit_tokens - beside_newest(draft)
    size = draft.history.run_tokens(seq, seq)
    if draft.meter.scaled(size) <= left:
        return False
    cut = _cut_newest(draft.history.message(seq), seq, left, draft.meter)
    if cut is None or draft.saving(block, seq, cut.text) <= 0:
        return False
    draft.put_stub(block, seq, cut.text, "truncate")
    return True


def _cut_newest(message: Message, seq: int, left_tokens: int, meter: Meter) -> Stub | None:
    """The message where so many tokens are left for it; None if it has not more than that."""
    keep_raw = max(SMALLEST_NEWEST_TOKENS, int(NEWEST_SHARE * left_tokens / meter.calibration.ratio))
    return cut_content(message, seq, keep_raw)


def fits_once_cut(message: Message, seq: int, left_tokens: int, meter: Meter) -> bool:
    """Whether a new message fits where so many tokens are left, if it may be cut."""
    cut = _cut_newest(message, seq, left_tokens, meter)
    return cut is not None and meter.scaled(message_tokens(Message("user", cut.text))) <= left_tokens


def beside_newest(draft: Draft) -> int:
    """Tokens that stay beside the person's newest message, whichever it is: system prompt, tools and pins."""
    seq = draft.newest_user
    stay = (part.raw for part in draft.blocks() if part.is_locked and not part.is_unseen and seq not in part.seqs)
    return draft.meter.total(draft.meter.fixed_raw + sum(stay))


def refuse_newest(draft: Draft, budget: Budget) -> ContextDoesNotFit:
    """The error for a newest message that is cut in the draft, if nobody has said that it may be."""
    seq, beside = draft.newest_user or draft.history.head, beside_newest(draft)
    left = budget.budget_tokens - beside
    is_enough = any(seq in block.seqs and draft.meter.scaled(block.raw) <= left for block in draft.blocks())
    return too_large(
        draft.meter.scaled(draft.history.run_tokens(seq, seq)),
        beside,
        budget,
        fits_once_cut=is_enough,
        has_pins=bool(draft.history.pins),
    )


def too_large(tokens: int, beside: int, budget: Budget, *, fits_once_cut: bool, has_pins: bool) -> ContextDoesNotFit:
    """The same for a message of this many tokens, beside so many that stay.

    fits_once_cut  whether the request would be sent if the message may be cut; else that is no advice
    """
    # A message that is too large by itself is not explained by what stays.
    stays = f"; the system prompt, the tools and pins take {beside:,}" if tokens <= budget.budget_tokens else ""
    advice = "Shorten it, or use a model with a larger window."
    if fits_once_cut:
        advice = 'Shorten it, use a model with a larger window, or let it be cut: --fit cut, fit="cut", context.fit.'
    elif beside >= budget.budget_tokens:
        advice = _ways("tools", has_pins=has_pins)
    return ContextDoesNotFit(
        f"The message has {tokens:,} tokens{stays}, and the budget is {budget.budget_tokens:,} (window"
        f" {budget.window_tokens:,}, of which {budget.reserve_tokens:,} are kept for the answer).",
        advice=advice,
        used_tokens=tokens,
        budget_tokens=budget.budget_tokens,
    )


def release_large_step(draft: Draft, budget_tokens: int) -> None:
    """Let the newest step go, although the model has not seen its results, if no record fits beside it.

    Such a step is a call that wrote a long file: its results can be cut, its arguments cannot. Its effect is a line of
    the record; without a record the model would continue without the person's rules, or the request would be refused.
    """
    staying = draft.fixed_tokens()
    for block in draft.blocks():
        size = draft.meter.scaled(draft.least_raw(block)) if block.is_unseen else 0
        leaves_little = staying > (1 - RECORD_SHARE) * budget_tokens and size > RECORD_SHARE * budget_tokens
        if size and (leaves_little or staying > budget_tokens):
            block.is_unseen = block.is_locked = False
