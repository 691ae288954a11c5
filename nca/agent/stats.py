"""Measure the context window: usage, parts, largest items, prices, and what happens next."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

from nca.agent.background import Background
from nca.agent.usage_breakdown import UsageBreakdown, usage_breakdown_of, window_parts
from nca.agent.window import Window
from nca.context.policy import Rung, aim_ratio, is_due, target_tokens
from nca.context.view import Marker, Stub, Summary, hidden_by
from nca.models.catalog import request_cost, saved_cost


@dataclass(frozen=True, slots=True)
class Prices:
    """US dollars; None if no price is known.

    request         the next request's input, without a cache
    request_cached  the same entirely from the provider's cache
    compactions     the compactions in effect
    saves           how much more the next request would cost without them
    saves_cached    the same entirely from the provider's cache
    """

    request: float | None = None
    request_cached: float | None = None
    compactions: float | None = None
    saves: float | None = None
    saves_cached: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextStats(UsageBreakdown):
    """The context window as the next request finds it. Counts are in tokens unless they say otherwise.

    model              the one that answers
    used_tokens        the size of the next request
    budget_tokens      what a request may have: the window without the reserve
    reserve_tokens     kept free for the answer
    target_tokens      what a compaction aims at
    usage_ratio        used_tokens / budget_tokens
    breakdown          used_tokens in the five parts of the measurement
    parts              used_tokens by kind (`nca.context.parts.KINDS`)
    messages           of the conversation, hidden ones included
    aside_messages     of the log, but not in the conversation: taken back, or said beside it; `messages` lacks them
    hidden_messages    in place of which the model sees a summary or a marker
    stubbed_messages   whose content is replaced by a placeholder
    compact_at_tokens  the usage at which the next compaction is due
    auto               the setting context.auto
    next_rung          what nca does as the context fills, in words
    is_estimate        no answer has told yet how the model counts
    window_origin      where the window comes from, in words; "" if it is known by the model's name, or set
    is_high            the usage is at the compaction threshold
    """

    model: str
    used_tokens: int
    budget_tokens: int
    window_tokens: int
    reserve_tokens: int
    target_tokens: int
    usage_ratio: float
    breakdown: dict[str, int]
    parts: dict[str, int]
    messages: int
    aside_messages: int = 0
    turns: int
    hidden_messages: int
    stubbed_messages: int
    summaries: int
    pinned_messages: int
    compact_at_tokens: int
    auto: str
    next_rung: str
    is_estimate: bool
    window_origin: str = ""
    is_high: bool = False
    prices: Prices = field(default_factory=Prices)


def stats_of(window: Window, background: Background, *, with_details: bool = True) -> ContextStats:
    """The stats of `window`.

    background    prepares its compactions
    with_details  False leaves out `parts` and the largest items, which cost a look at every shown message
    """
    measured = window.measure()
    history, budget = window.history, window.budget
    fixed = window.meter.total(window.meter.fixed_raw)
    newest = history.newest_user
    if newest is not None:
        fixed += window.meter.scaled(history.run_tokens(newest, newest))
    largest = usage_breakdown_of(window) if with_details else UsageBreakdown()
    items = history.view.items
    aside = sum(last - first + 1 for first, last in history.view.aside)
    return ContextStats(
        model=window.facts.name,
        used_tokens=measured.used_tokens,
        budget_tokens=budget.budget_tokens,
        window_tokens=budget.window_tokens,
        window_origin=window.state.facts_in_force.window_origin,
        reserve_tokens=budget.reserve_tokens,
        target_tokens=target_tokens(budget, fixed, aim_ratio(budget, window.context)),
        usage_ratio=measured.usage_ratio,
        breakdown=measured.breakdown,
        parts=window_parts(window) if with_details else {},
        messages=history.head - aside,
        aside_messages=aside,
        turns=history.turns,
        hidden_messages=sum(
            last - first + 1 for item in items if isinstance(item, Summary | Marker) for first, last in item.ranges
        ),
        stubbed_messages=sum(isinstance(item, Stub) for item in items),
        summaries=sum(isinstance(item, Summary) for item in items),
        # One that /context clear took is pinned for when it is shown again.
        pinned_messages=sum(hidden_by(history.view, seq) is None for seq in history.pins),
        compact_at_tokens=_compacts_at(window),
        auto=window.context.auto,
        next_rung=_next_rung(window, background),
        is_estimate=measured.is_estimate,
        is_high=is_due(measured, window.context),
        prices=_prices(window, measured.used_tokens),
        **{one.name: getattr(largest, one.name) for one in fields(largest)},
    )


def _prices(window: Window, used_tokens: int) -> Prices:
    saved, cost = window.session.views.totals_in_effect()
    whole = used_tokens + saved
    facts, is_shorter = window.facts, whole > used_tokens
    return Prices(
        request=request_cost(facts, used_tokens),
        request_cached=request_cost(facts, used_tokens, is_cached=True),
        compactions=cost,
        saves=saved_cost(facts, whole, used_tokens) if is_shorter else None,
        saves_cached=saved_cost(facts, whole, used_tokens, is_cached=True) if is_shorter else None,
    )


def _compacts_at(window: Window) -> int:
    """The usage in tokens at which the next compaction comes: after an undo of one, for instance, a later one."""
    own = (rung.tokens for rung in window.rungs_ahead(prepares=False) if rung.action == "compact")
    at = window.provider_compacts_at or next(own, window.compacts_from)
    return min(at, window.budget.budget_tokens)


def _next_rung(window: Window, background: Background) -> str:
    """The next actions as the context fills, in words: each rung that is still ahead, lowest first."""
    context, budget = window.context, window.budget
    if context.auto == "off":
        return f"nothing by itself (auto-compaction is off); above {budget.budget_tokens:,} tokens nothing more is sent"
    if window.provider_compacts_at and window.measure().fits:
        return f"compaction by the provider at {window.provider_compacts_at:,} tokens"
    if background.is_ready or background.is_running:
        state = "ready" if background.is_ready else "being prepared"
        soon = "before the next request" if background.is_ready else "before the first request after that"
        when = f"at {_compacts_at(window):,} tokens" if background.waits else soon
        return f"a compaction is {state} and is put in force {when}"
    rungs = window.rungs_ahead(prepares=background.prepares)
    return ", ".join(_in_words(rung, context.auto, budget.budget_tokens) for rung in rungs)


def _in_words(rung: Rung, auto: str, budget_tokens: int) -> str:
    match rung.action:
        case "notice":
            return f"a notice above {rung.tokens:,} tokens"
        case "prepare":
            return f"compaction is prepared {'after a turn' if rung.is_reached else f'from {rung.tokens:,} on'}"
        case "compact":
            report = "a report of what compaction would do (context.auto = preview)"
            exceeds = f"when a request exceeds the budget of {budget_tokens:,} tokens"
            at = exceeds if rung.tokens > budget_tokens else f"at {rung.tokens:,} tokens"
            when = "before the next request" if rung.is_reached else at
            return f"{'compaction' if auto == 'on' else report} {when}"
