"""What /context shows: the window as a bar and a table, what is heavy, what comes next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from nca.models.costs import money
from nca.terminal.sanitize import one_line
from nca.terminal.tables import new_table
from nca.terminal.wording import percent

if TYPE_CHECKING:
    from rich.table import Table

    from nca.agent.stats import ContextStats, HeavyItem

BAR_CELLS = 60
_SHOWN = 5

# A glyph of its own for each, so that the bar can be read without colours too.
_CATEGORIES = (
    ("system_prompt", "system prompt", "█", "magenta"),
    ("tool_definitions", "tool definitions", "▓", "green"),
    ("conversation", "conversation", "▒", "cyan"),
    ("current_input", "current input", "▚", "bold"),
    ("attachments", "attachments", "▞", "yellow"),
)


@dataclass(frozen=True, slots=True)
class _Part:
    label: str
    tokens: int
    glyph: str
    style: str
    is_in_budget: bool = True


def context_panel(stats: ContextStats, width: int) -> RenderableType:
    """The panel for a window of `width` columns; its usage is the one of the toolbar and the notices."""
    parts = _parts(stats)
    rows: list[RenderableType] = [
        _headline(stats),
        _bar(parts, max(10, min(BAR_CELLS, width - 2))),
        _table(parts, stats),
        Text(""),
        Text(_contents(stats)),
    ]
    heaviest = [(item.label, item.tokens, _importance(item)) for item in stats.heaviest]
    rows += _ranked("Heaviest, and how much each matters (0–1)", heaviest)
    rows += _ranked("By tool", [(label, tokens, "") for label, tokens in stats.by_tool])
    if price := _price(stats):
        rows.append(Text(price))
    if stats.next_rung:
        rows.append(Text(f"Next: {one_line(stats.next_rung)}", style="accent"))
    return Group(*rows)


def _headline(stats: ContextStats) -> Text:
    about = "about " if stats.is_estimate else ""
    text = Text(f"Context: {percent(stats.usage_ratio)} used", style="bold")
    text.append(f" · {about}{stats.used_tokens:,} of {stats.budget_tokens:,} tokens", style="not bold")
    return text


def _parts(stats: ContextStats) -> list[_Part]:
    parts = [
        _Part(label, stats.breakdown[name], glyph, style)
        for name, label, glyph, style in _CATEGORIES
        if name in stats.breakdown
    ]
    free = max(0, stats.budget_tokens - stats.used_tokens)
    unused = stats.window_tokens - stats.budget_tokens - stats.reserve_tokens
    parts.append(_Part("free", free, "░", "dim"))
    parts.append(_Part("reserve for the answer", stats.reserve_tokens, "·", "dim", is_in_budget=False))
    if unused > 0:
        parts.append(_Part("left out (context.max_tokens)", unused, " ", "dim", is_in_budget=False))
    return parts


def _bar(parts: Sequence[_Part], cells: int) -> Text:
    """Cells in proportion; what is there at all has at least one."""
    total = sum(part.tokens for part in parts) or 1
    counts = [max(1, round(part.tokens / total * cells)) if part.tokens else 0 for part in parts]
    while sum(counts) > cells and max(counts) > 1:
        counts[counts.index(max(counts))] -= 1
    bar = Text(no_wrap=True, overflow="crop")
    for part, count in zip(parts, counts, strict=True):
        bar.append(part.glyph * count, style=part.style)
    return bar


def _table(parts: Sequence[_Part], stats: ContextStats) -> Table:
    """Shares are of the budget, as everywhere; what lies outside of it has none."""
    table = new_table(has_header=True, gap=1)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    table.add_column("tokens", justify="right", no_wrap=True)
    table.add_column("% of budget", justify="right", no_wrap=True)
    for part in parts:
        share = percent(part.tokens / stats.budget_tokens) if part.is_in_budget else ""
        table.add_row(Text(part.glyph, style=part.style), part.label, f"{part.tokens:,}", Text(share, style="quiet"))
    table.add_row("", Text("window", style="quiet"), Text(f"{stats.window_tokens:,}", style="quiet"), "")
    return table


def _contents(stats: ContextStats) -> str:
    text = f"{_count(stats.messages, 'message')} in {_count(stats.turns, 'turn')}"
    if stats.hidden_messages:
        text += f", {stats.hidden_messages:,} of them compacted"
        if stats.summaries:
            text += f" into {_count(stats.summaries, 'summary', 'summaries')}"
        text += " (/context undo brings them back)"
    if stats.stubbed_messages:
        text += f", {stats.stubbed_messages:,} shortened to a placeholder"
    if stats.pinned_messages:
        text += f", {stats.pinned_messages:,} pinned"
    return text + "."


def _price(stats: ContextStats) -> str:
    """What the next request costs to read, and what compaction cost and saves; nothing where no price is known."""
    prices = stats.prices
    if not prices.request:
        return ""
    text = f"Reading the next request costs {money(prices.request)}{_cached(prices.request_cached)}"
    if prices.saves:
        cost = f", which cost {money(prices.compactions)}," if prices.compactions else ""
        text += f"; compaction{cost} saves {money(prices.saves)} of it{_cached(prices.saves_cached)}"
    return text + "."


def _cached(cost: float | None) -> str:
    return "" if cost is None else f" ({money(cost)} where it is cached)"


def _importance(item: HeavyItem) -> str:
    return "" if item.score is None else f"{item.score:.2f} {', '.join(item.reasons)}"


def _ranked(title: str, rows: Sequence[tuple[str, int, str]]) -> list[RenderableType]:
    """What weighs most, one a line: its label, its tokens, and a remark where there is one."""
    if not rows:
        return []
    table = new_table(gap=1, indent=2)
    table.add_column(justify="right", no_wrap=True)
    # Only this column gives way where the window is narrow; its texts are cut instead of wrapped.
    table.add_column()
    table.add_column(no_wrap=True)
    for label, tokens, remark in rows[:_SHOWN]:
        shown = Text(one_line(label, 80), no_wrap=True, overflow="ellipsis")
        table.add_row(f"{tokens:,}", shown, Text(one_line(remark, 40), style="quiet"))
    return [Text(title, style="quiet"), table]


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"
