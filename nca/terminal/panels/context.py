"""What /context shows: the window as a picture, what is heavy, what was compacted, what comes next, what one can do.

By default it is one screen: sections come in the order of their worth while there are rows for them. `/context all`
has everything.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from nca.models.costs import money
from nca.terminal.panels.context_chart import bar, parts_of, picture
from nca.terminal.render.sanitize import one_line
from nca.terminal.render.tables import new_table
from nca.terminal.render.theme import plain_console
from nca.terminal.render.wording import counted, percent

if TYPE_CHECKING:
    from rich.table import Table

    from nca.agent.stats import ContextStats
    from nca.agent.usage_breakdown import HeavyItem
    from nca.sessions.views import CompactionRecord

AROUND_ROWS = 4
"""Rows of a screen that are not the panel's: the prompt, the toolbar, and empty lines."""
FEWEST_ROWS = 8
SECTION_ROWS = 7
"""Rows below the picture that a small screen keeps: what is there, what is heaviest, what was read again."""
SHOWN = 3
LISTED = 10
"""Rows of a list: on one screen, and in all."""
_REASONS_FROM_WIDTH = 48

BY_HAND = {"clear", "expand", "pin", "collapse", "restore"}
"""Changes of the view that are recorded beside compactions, and are none."""


def context_panel(
    stats: ContextStats,
    width: int,
    rows: int = 24,
    *,
    records: Sequence[CompactionRecord] = (),
    is_all: bool = False,
) -> RenderableType:
    """The panel for a window of `width` columns and `rows` rows; its usage is the one of the toolbar and the notices.

    records  the compactions of the session
    is_all   everything, however long it gets
    """
    done = [record for record in records if not record.undone and not set(record.stages) & BY_HAND]
    if is_all:
        return Group(*_everything(stats, done, width))
    room = max(FEWEST_ROWS, rows - AROUND_ROWS)
    head, foot = _headline(stats), [*_next(stats), _actions(stats)]
    room -= _height(Group(head, *foot), width) + 1
    parts = parts_of(stats, max(5, room - SECTION_ROWS))
    shown: list[RenderableType] = [head, bar(parts, width), picture(parts, stats.budget_tokens, width)]
    room -= _height(shown[-1], width)
    for section in _sections(stats, done, width):
        needed = _height(section, width)
        if needed <= room:
            shown.append(section)
            room -= needed
    return Group(*shown, *foot)


def _sections(stats: ContextStats, done: Sequence[CompactionRecord], width: int) -> Iterator[RenderableType]:
    """What comes in where there are rows, the worthiest first."""
    yield Text(_contents(stats))
    if stats.heaviest:
        yield _heaviest(stats.heaviest[:SHOWN], width)
    yield from _repeated(stats, SHOWN - 1)
    if done:
        yield Text(_compacted(stats, done))
    if price := _price(stats):
        yield Text(price)
    yield from _ranked("By tool, calls and results", stats.by_tool[:SHOWN])
    yield from _ranked("By file", stats.by_file[:SHOWN])


def _everything(stats: ContextStats, done: Sequence[CompactionRecord], width: int) -> Iterator[RenderableType]:
    parts = parts_of(stats)
    yield from (_headline(stats), bar(parts, width), picture(parts, stats.budget_tokens, width), Text(_contents(stats)))
    if stats.heaviest:
        yield _heaviest(stats.heaviest[:LISTED], width)
    yield from _repeated(stats, LISTED)
    yield from _ranked("By tool, calls and results", stats.by_tool[:LISTED])
    yield from _ranked("By file", stats.by_file[:LISTED])
    if done:
        yield Text(_compacted(stats, done))
        yield _compactions(done)
    if price := _price(stats):
        yield Text(price)
    yield from _next(stats)
    yield _what_one_can_do()


def _headline(stats: ContextStats) -> Text:
    about = "about " if stats.is_estimate else ""
    text = Text(f"Context: {percent(stats.usage_ratio)} used", style="bold")
    text.append(f" · {about}{stats.used_tokens:,} of {stats.budget_tokens:,} tokens", style="not bold")
    text.append(f" (window {stats.window_tokens:,})", style="not bold dim")
    return text


def _contents(stats: ContextStats) -> str:
    text = f"{counted(stats.messages, 'message')} in {counted(stats.turns, 'turn')}"
    if stats.hidden_messages:
        text += f", {stats.hidden_messages:,} of them compacted"
        if stats.summaries:
            text += f" into {counted(stats.summaries, 'summary', 'summaries')}"
    if stats.stubbed_messages:
        text += f", {stats.stubbed_messages:,} shortened"
    if stats.pinned_messages:
        text += f", {stats.pinned_messages:,} pinned"
    return text + "."


def _heaviest(items: Sequence[HeavyItem], width: int) -> Group:
    """What weighs most, one a line: the id that other commands take, its tokens, what it is, how much it matters."""
    table = new_table(gap=1, indent=2)
    table.add_column(justify="right", no_wrap=True, style="accent")
    table.add_column(justify="right", no_wrap=True)
    # Only this column gives way where the window is narrow; its texts are cut instead of wrapped.
    table.add_column()
    table.add_column(no_wrap=True)
    for item in items:
        remark = _importance(item) if width >= _REASONS_FROM_WIDTH else ""
        shown = Text(one_line(item.label, 80), no_wrap=True, overflow="ellipsis")
        table.add_row(one_line(item.id, 20), f"{item.tokens:,}", shown, Text(one_line(remark, 40), style="quiet"))
    return Group(Text("Heaviest: id, tokens, and how much it matters (0–1)", style="quiet"), table)


def _importance(item: HeavyItem) -> str:
    return "" if item.score is None else f"{item.score:.2f} {', '.join(item.reasons)}"


def _repeated(stats: ContextStats, most: int) -> Iterator[Text]:
    """Files that were read again, and the command that lets go of the earlier reads."""
    for one in stats.repeated[:most]:
        ids = " ".join(str(seq) for seq in one.seqs[:8])
        text = Text(f"{one_line(one.path, 60)} is there {len(one.seqs) + 1} times, {one.tokens:,} tokens too many: ")
        yield text.append(f"/context collapse {ids}", style="accent")
    if len(stats.repeated) > most:
        more = sum(one.tokens for one in stats.repeated[most:])
        yield Text(f"{len(stats.repeated) - most} more files were read again ({more:,} tokens).", style="quiet")


def _compacted(stats: ContextStats, done: Sequence[CompactionRecord]) -> str:
    """What compaction took away and what of it is kept."""
    kept, total = sum(one.kept_facts for one in done), sum(one.total_facts for one in done)
    facts = f", kept {kept:,} of {total:,} facts" if total else ""
    saved = sum(one.tokens_before - one.tokens_after for one in done)
    ids = [item.id for item in stats.heaviest if item.label == "summary"]
    back = f"; /context expand {one_line(ids[0], 20)} shows its originals" if ids else ""
    return f"{counted(len(done), 'compaction')}: {saved:,} tokens less{facts}{back}."


def _compactions(done: Sequence[CompactionRecord]) -> Table:
    table = new_table(gap=2, indent=2)
    for _ in range(2):
        table.add_column(no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(overflow="fold")
    for record in done[-LISTED:]:
        facts = f"kept {record.kept_facts} of {record.total_facts} facts" if record.total_facts else ""
        change = f"{record.tokens_before:,} → {record.tokens_after:,}"
        stages = one_line(", ".join(record.stages))
        table.add_row(one_line(record.id), one_line(record.trigger), change, Text(f"{stages}  {facts}", style="quiet"))
    return table


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


def _ranked(title: str, rows: Sequence[tuple[str, int]]) -> Iterator[RenderableType]:
    if not rows:
        return
    table = new_table(gap=1, indent=2)
    table.add_column(justify="right", no_wrap=True)
    table.add_column()
    for label, tokens in rows:
        table.add_row(f"{tokens:,}", Text(one_line(label, 80), no_wrap=True, overflow="ellipsis"))
    yield Group(Text(title, style="quiet"), table)


def _next(stats: ContextStats) -> Iterator[Text]:
    if stats.next_rung:
        yield Text(f"Next: {one_line(stats.next_rung)}.", style="accent")


def _actions(stats: ContextStats) -> Text:
    """What one can do about it, with ids from above where there are any."""
    number = next((item.id for item in stats.heaviest if item.id.isdecimal()), "N")
    words = (f"collapse {number}", f"pin {number}", f"compact from {number}", "undo", "all")
    return Text("Do: /context " + " · ".join(words), style="quiet")


def _what_one_can_do() -> Group:
    table = new_table(gap=2, indent=2)
    table.add_column(no_wrap=True, style="accent")
    table.add_column(overflow="fold")
    for command, about in (
        ("/context collapse N…", "show these messages in short"),
        ("/context expand N", "put originals back: a message's number, a summary's id"),
        ("/context pin N", "keep a message whatever is compacted"),
        ("/context compact", "make room now; --preview shows first what would go"),
        ("/context compact from N", "summarize message N and all after it; before N: all before it"),
        ("/context undo", "back to before the last change"),
        ("/context search TEXT", "find what was compacted away"),
    ):
        table.add_row(command, about)
    return Group(Text("What one can do", style="quiet"), table)


def _height(shown: RenderableType, width: int) -> int:
    """Rows that it takes."""
    return len(plain_console({"COLUMNS": str(width)}).render_lines(shown, pad=False))
