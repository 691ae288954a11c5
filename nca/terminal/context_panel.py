"""What /context shows: the window as a bar and a table, what is heavy, what comes next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from nca.terminal.sanitize import one_line
from nca.terminal.tables import new_table
from nca.terminal.wording import percent

if TYPE_CHECKING:
    from rich.table import Table

    from nca.agent.stats import ContextStats

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


def context_panel(stats: ContextStats, width: int) -> RenderableType:
    """The panel for a window of `width` columns; its usage is the one of the toolbar and the notices."""
    parts = _parts(stats)
    rows: list[RenderableType] = [
        _headline(stats),
        _bar(parts, max(10, min(BAR_CELLS, width - 2))),
        _table(parts, stats.window_tokens),
        Text(""),
        Text(_contents(stats)),
    ]
    rows += _ranked("Heaviest", stats.heaviest)
    rows += _ranked("By tool", stats.by_tool)
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
    parts.append(_Part("reserve for the answer", stats.reserve_tokens, "·", "dim"))
    if unused > 0:
        parts.append(_Part("left out (context.max_tokens)", unused, " ", "dim"))
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


def _table(parts: Sequence[_Part], window_tokens: int) -> Table:
    table = new_table(gap=1)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    table.add_column(justify="right", no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    for part in parts:
        share = percent(part.tokens / window_tokens) if window_tokens else ""
        table.add_row(Text(part.glyph, style=part.style), part.label, f"{part.tokens:,}", Text(share, style="quiet"))
    table.add_row("", Text("window", style="quiet"), Text(f"{window_tokens:,}", style="quiet"), "")
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


def _ranked(title: str, rows: Sequence[tuple[str, int]]) -> list[RenderableType]:
    """What weighs most, one a line."""
    if not rows:
        return []
    table = new_table(gap=1, indent=2)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(overflow="ellipsis", no_wrap=True)
    for label, tokens in rows[:_SHOWN]:
        table.add_row(f"{tokens:,}", Text(one_line(label, 80)))
    return [Text(title, style="quiet"), table]


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"
