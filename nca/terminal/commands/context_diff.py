"""/context diff: what the last compaction took and kept, by kind."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.console import Group
from rich.table import Column, Table
from rich.text import Text

from nca.context.parts import LABELS
from nca.context.retention import kept_in_words
from nca.context.view import Summary
from nca.errors import UsageError
from nca.terminal.commands.command import App
from nca.terminal.commands.context_history import as_text
from nca.terminal.panels.context_picture import BLOCK, FREE
from nca.terminal.render.humanize import counted, local_time
from nca.terminal.render.sanitize import one_line
from nca.terminal.render.tables import new_table
from nca.terminal.render.word_wrap import Parted

if TYPE_CHECKING:
    from nca.agent.compaction_diff import CompactionDiff

_BAR_CELLS, _NUMBERS_CELLS = 24, 50
"""Cells of the longest bar, and those of the columns before it."""


async def show_diff(app: App, argument: str) -> None:
    context = app.conversation.context
    records = [one for one in context.history() if not one.undone and not one.is_by_hand]
    if not records:
        raise UsageError("No compaction is in effect.", advice="/context history lists those that were undone.")
    diff = context.diff(records[-1])
    bar_cells = min(_BAR_CELLS, shutil.get_terminal_size().columns - _NUMBERS_CELLS)
    app.output.show(Group(_title(diff), Text(), _table(diff, bar_cells), Text(), *_lines(diff)))


def _title(diff: CompactionDiff) -> Text:
    record = diff.record
    text = Text(f"Compaction {one_line(record.id)}: {record.tokens_before:,} → {record.tokens_after:,} tokens", "bold")
    stages = one_line(", ".join(record.stages))
    return text.append(f"  {local_time(record.at)}, {one_line(record.trigger)}: {stages}", style="not bold dim")


def _table(diff: CompactionDiff, bar_cells: int) -> Table:
    """A row for each kind: what there was, what went or was added, what is left; and both as a bar if it has room."""
    right = [Column(title, justify="right", no_wrap=True) for title in ("before", "change", "kept")]
    # In a narrow window only the label shrinks.
    bars = [Column("", no_wrap=True)] if bar_cells > 0 else []
    table = new_table("", *right, *bars, has_header=True, gap=1, indent=1)
    most = max(1, *diff.before.values(), *diff.after.values())
    for kind, before in diff.before.items():
        after = diff.after[kind]
        change = f"{'−' if after < before else '+'}{abs(after - before):,}" if after != before else ""
        kept, cells = (-(-tokens * max(0, bar_cells) // most) for tokens in (after, max(before, after)))
        bar = Text(BLOCK * kept, style=f"part.{kind}").append(FREE * (cells - kept), style="quiet")
        label = Text(LABELS[kind], no_wrap=True, overflow="ellipsis")
        table.add_row(label, f"{before:,}", change, f"{after:,}", *([bar] if bars else []))
    return table


def _lines(diff: CompactionDiff) -> Iterator[Text | Parted]:
    """What became of the messages, the facts that are left, and what can be done."""
    hidden = sum(last - first + 1 for first, last in diff.hidden)
    shortened = [f"{counted(diff.shortened, 'message')} shortened"] if diff.shortened else []
    gone = [f"{counted(hidden, 'message')} hidden ({as_text(diff.hidden)})"] if hidden else []
    if gone or shortened:
        yield Text(", ".join((*gone, *shortened)) + ".")
    if diff.record.kept:
        yield Text(f"Can still be read: {one_line(kept_in_words(diff.record.kept))}.")
    summary = next((item.id for item in reversed(diff.made) if isinstance(item, Summary)), "")
    reads = f"/context show {one_line(summary, 20)} · " if summary else ""
    ids = [one_line(item.id, 20) for item in diff.made] or [str(diff.hidden[0][0])] if diff.hidden else []
    restores = f"/context expand {ids[-1]} · " if ids else ""
    yield Parted(f"Try: {reads}{restores}/context undo", style="quiet")
