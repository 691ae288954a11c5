"""What is in the context window, for `/context`, the gauge and programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from nca.agent.background import Background
from nca.agent.window import Window
from nca.context.importance import importances
from nca.context.rules.untouchable import newest_user
from nca.context.view import Marker, Stub, Summary, Verbatim, seqs
from nca.messages import Message
from nca.models.costs import request_cost, saved_cost

HEAVIEST = 5


@dataclass(frozen=True, slots=True)
class HeavyItem:
    """A shown message or summary with its tokens.

    score    how much it matters when older messages give way, 0 … 1; None for a summary, and where it was not asked
    reasons  why, in a few words each, the strongest first
    """

    label: str
    tokens: int
    score: float | None = None
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Prices:
    """US dollars; None where no price is known.

    request, request_cached   reading the next request without a cache, and where the provider has all of it in one
    compactions               what the compactions cost that stand
    saves, saves_cached       what the next request would cost more without them
    """

    request: float | None = None
    request_cached: float | None = None
    compactions: float | None = None
    saves: float | None = None
    saves_cached: float | None = None


@dataclass(frozen=True, slots=True)
class ContextStats:
    """Counts in tokens unless they say otherwise. `breakdown` sums to used_tokens; `model` is the one that answers."""

    model: str
    used_tokens: int
    budget_tokens: int
    window_tokens: int
    reserve_tokens: int
    target_tokens: int
    usage_ratio: float
    breakdown: dict[str, int]
    messages: int
    turns: int
    hidden_messages: int
    stubbed_messages: int
    summaries: int
    pinned_messages: int
    compact_at_tokens: int
    auto: str
    next_rung: str
    heaviest: tuple[HeavyItem, ...]
    by_tool: tuple[tuple[str, int], ...]
    is_estimate: bool
    prices: Prices = field(default_factory=Prices)


def stats_of(window: Window, background: Background | None = None, *, with_scores: bool = True) -> ContextStats:
    """Costs a look at each shown message; `with_scores` two more.

    background   what prepares compactions of this window, if anything does
    with_scores  False leaves out how much the heaviest items matter
    """
    measured = window.measure()
    history, budget = window.history, window.budget
    fixed = window.meter.total(window.meter.fixed_raw)
    newest = newest_user(history.entries)
    if newest is not None:
        fixed += window.meter.scaled(history.run_tokens(newest, newest))
    weights, by_tool = _weights(window)
    items = history.view.items
    return ContextStats(
        model=window.facts.name,
        used_tokens=measured.used_tokens,
        budget_tokens=budget.budget_tokens,
        window_tokens=budget.window_tokens,
        reserve_tokens=budget.reserve_tokens,
        target_tokens=budget.target_tokens(fixed, budget.aim_ratio(window.context)),
        usage_ratio=measured.usage_ratio,
        breakdown=measured.breakdown,
        messages=history.head,
        turns=sum(entry.message.role == "user" and not entry.message.is_synthetic for entry in history.entries),
        hidden_messages=sum(1 for item in items if isinstance(item, Summary | Marker) for _ in seqs(item.ranges)),
        stubbed_messages=sum(isinstance(item, Stub) for item in items),
        summaries=sum(isinstance(item, Summary) for item in items),
        pinned_messages=len(history.pins),
        compact_at_tokens=budget.trigger_tokens(window.context),
        auto=window.context.auto,
        next_rung=_next_rung(window, measured.used_tokens, background),
        heaviest=tuple(_heaviest(window, weights, with_scores=with_scores)),
        by_tool=tuple(by_tool.most_common()),
        is_estimate=measured.is_estimate,
        prices=_prices(window, measured.used_tokens),
    )


def _prices(window: Window, used_tokens: int) -> Prices:
    standing = [record for record in window.session.compactions() if not record.undone]
    costs = [record.cost for record in standing if record.cost is not None]
    whole = used_tokens + sum(record.tokens_before - record.tokens_after for record in standing)
    facts, is_shorter = window.facts, whole > used_tokens
    return Prices(
        request=request_cost(facts, used_tokens),
        request_cached=request_cost(facts, used_tokens, is_cached=True),
        compactions=sum(costs) if costs else None,
        saves=saved_cost(facts, whole, used_tokens) if is_shorter else None,
        saves_cached=saved_cost(facts, whole, used_tokens, is_cached=True) if is_shorter else None,
    )


def _heaviest(window: Window, weights: list[tuple[int, int, str]], *, with_scores: bool) -> Iterator[HeavyItem]:
    history = window.history
    found = importances(history.visible(), history.found, history.pins) if with_scores else {}
    for cost, seq, label in weights[:HEAVIEST]:
        importance = found.get(seq)
        if importance is None:
            yield HeavyItem(label, cost)
        else:
            yield HeavyItem(label, cost, importance.score, importance.reasons)


def _weights(window: Window) -> tuple[list[tuple[int, int, str]], Counter[str]]:
    """(tokens, seq, label) of the shown items, heaviest first, and the tokens of tool results by tool.

    A summary's seq is 0.
    """
    history = window.history
    found: list[tuple[int, int, str]] = []
    by_tool: Counter[str] = Counter()
    for item in (*history.view.items, Verbatim(history.view.tail, history.head)):
        if isinstance(item, Verbatim):
            for entry in history.entries[item.first - 1 : item.last]:
                cost = window.meter.scaled(history.run_tokens(entry.seq, entry.seq))
                found.append((cost, entry.seq, f"message {entry.seq}, {_label(entry.message)}"))
                if entry.message.role == "tool":
                    by_tool[entry.message.name or "tool"] += cost
        else:
            cost = window.meter.scaled(history.item_tokens(item))
            if isinstance(item, Summary):
                found.append((cost, 0, f"summary {item.id}"))
    found.sort(key=lambda row: -row[0])
    return found, by_tool


def _label(message: Message) -> str:
    if message.role == "tool":
        return f"result of {message.name or 'a tool'}"
    if message.attachments:
        return "you: @" + " @".join(part.path for part in message.attachments)
    who = "you" if message.role == "user" else message.role
    return f"{who}: {_one_line(message.text)}" if message.text.strip() else who


def _next_rung(window: Window, used_tokens: int, background: Background | None) -> str:
    """What happens next as the context fills, in words: each rung that is still ahead, lowest first."""
    context, budget = window.context, window.budget
    if context.auto == "off":
        return f"nothing by itself (auto-compaction is off); above {budget.budget_tokens:,} tokens nothing more is sent"
    if window.provider_compacts_at and used_tokens < budget.budget_tokens:
        return f"compaction by the provider at {window.provider_compacts_at:,} tokens"
    # Neither rung is at work before the context has grown again; what does not fit is compacted in any case.
    compacts_at = min(max(budget.trigger_tokens(context), window.quiet_below), budget.budget_tokens + 1)
    prepares_at = max(budget.idle_tokens(context), window.quiet_below)
    info = int(context.info_threshold * budget.budget_tokens)
    what = "compaction" if context.auto == "on" else "a report of what compaction would do (context.auto = preview)"
    if background is not None and (background.is_running or background.is_ready):
        how = "is ready and is put in force" if background.is_ready else "is being prepared; where it is ready it comes"
        return f"a compaction {how} before the next request"
    if used_tokens >= compacts_at:
        return f"{what} before the next request"
    rungs = [f"a notice above {info:,} tokens"] if used_tokens <= info < compacts_at else []
    if background is not None and context.auto == "on" and prepares_at < compacts_at:
        is_ahead = used_tokens < prepares_at
        rungs.append(
            f"compaction is prepared from {prepares_at:,} on" if is_ahead else "compaction is prepared after a turn"
        )
    return ", ".join([*rungs, f"{what} at {compacts_at:,} tokens"])


def _one_line(text: str) -> str:
    line = " ".join(text[:200].split())
    return line if len(line) <= 40 else line[:39] + "…"
