"""What is in the context window, for `/context`, the gauge and programs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from nca.agent.window import Window
from nca.context.rules.untouchable import newest_user
from nca.context.view import Marker, Stub, Summary, Verbatim, seqs
from nca.messages import Message

HEAVIEST = 5


@dataclass(frozen=True, slots=True)
class ContextStats:
    """Counts in tokens unless they say otherwise. `breakdown` sums to used_tokens."""

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
    heaviest: tuple[tuple[str, int], ...]
    by_tool: tuple[tuple[str, int], ...]
    is_estimate: bool


def stats_of(window: Window) -> ContextStats:
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
        next_rung=_next_rung(window, measured.used_tokens),
        heaviest=tuple(weights[:HEAVIEST]),
        by_tool=tuple(by_tool.most_common()),
        is_estimate=measured.is_estimate,
    )


def _weights(window: Window) -> tuple[list[tuple[str, int]], Counter[str]]:
    """The shown items with their tokens, heaviest first, and the tokens of tool results by tool."""
    history = window.history
    found: list[tuple[str, int]] = []
    by_tool: Counter[str] = Counter()
    for item in (*history.view.items, Verbatim(history.view.tail, history.head)):
        if isinstance(item, Verbatim):
            for entry in history.entries[item.first - 1 : item.last]:
                cost = window.meter.scaled(history.run_tokens(entry.seq, entry.seq))
                found.append((f"message {entry.seq}, {_label(entry.message)}", cost))
                if entry.message.role == "tool":
                    by_tool[entry.message.name or "tool"] += cost
        else:
            cost = window.meter.scaled(history.item_tokens(item))
            if isinstance(item, Summary):
                found.append((f"summary {item.id}", cost))
    found.sort(key=lambda row: -row[1])
    return found, by_tool


def _label(message: Message) -> str:
    if message.role == "tool":
        return f"result of {message.name or 'a tool'}"
    if message.attachments:
        return "you: @" + " @".join(part.path for part in message.attachments)
    who = "you" if message.role == "user" else message.role
    return f"{who}: {_one_line(message.text)}" if message.text.strip() else who


def _next_rung(window: Window, used_tokens: int) -> str:
    """What happens next as the context fills, in words."""
    context, budget = window.context, window.budget
    trigger = budget.trigger_tokens(context)
    info = int(context.info_threshold * budget.budget_tokens)
    if context.auto == "off":
        return f"nothing by itself (auto-compaction is off); at {budget.budget_tokens:,} tokens nothing more is sent"
    if used_tokens <= info < trigger:
        return f"a notice above {info:,} tokens, compaction at {trigger:,}"
    if used_tokens < trigger:
        return f"compaction at {trigger:,} tokens"
    if used_tokens >= window.quiet_below:
        return "compaction before the next request"
    return f"compaction once the context has grown to {window.quiet_below:,} tokens"


def _one_line(text: str) -> str:
    line = " ".join(text[:200].split())
    return line if len(line) <= 40 else line[:39] + "…"
