"""The `/context` panel: the window as a picture, its contents, its largest items, and the next action.

It fills one screen: sections are added in order of importance while there are rows left. `/context all` shows all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Column
from rich.text import Text

from nca.context.retention import kept_in_words
from nca.humanize import counted, local_time, used_in_words
from nca.models.catalog import money
from nca.terminal.panels.context_list import picture
from nca.terminal.render.layout import Parted, new_table
from nca.terminal.render.sanitize import one_line
from nca.terminal.render.theme import plain_console

if TYPE_CHECKING:
    from nca.agent.stats import ContextStats
    from nca.agent.usage_breakdown import HeavyItem
    from nca.sessions.views import CompactionRecord

AROUND_ROWS = 4
"""Rows of the screen that the panel leaves free: the prompt, the toolbar, and empty lines."""
LIST_ROWS = 10
"""Rows for the list of all items, if it is below the panel."""
FEWEST_ROWS = 8
SECTION_ROWS = 8
"""Rows below the picture that a small screen keeps for the contents, the largest items and the repeated reads."""
SHOWN = 3
LISTED = 10
"""Rows of a list: on one screen, and with `/context all`."""
TWO_COLUMNS_FROM = 120
"""In a window of at least this many columns, sections are side by side."""
_BETWEEN_COLUMNS = 3
_REASONS_FROM_WIDTH = 80
_CHARACTERS_FROM_WIDTH = 52
_ROLES = {"user": "you", "assistant": "the model", "tool": "tool results", "summary": "summaries, records"}


def context_panel(
    stats: ContextStats,
    width: int,
    rows: int = 24,
    *,
    records: Sequence[CompactionRecord] = (),
    is_all: bool = False,
    has_bars: bool = True,
    collapsible: str = "",
    kept: Mapping[str, tuple[int, int]] | None = None,
) -> RenderableType:
    """The panel for a window of `width` columns and `rows` rows. Its usage is the one in the toolbar and the notices.

    records  the session's compactions
    is_all   show everything, however long it gets
    has_bars  as of `picture`; else the sections are below each other too
    collapsible  the number of a message to suggest; "": no suggestion
    kept     what can be read now, where the view was changed since the last compaction
    """
    # Columns of text side by side cannot be read aloud.
    width = width if has_bars else min(width, TWO_COLUMNS_FROM - 1)
    done = in_effect(records)
    most = LISTED if is_all else SHOWN
    lines, sections = list(_lines(stats, done, most, kept)), list(_sections(stats, _section_width(width), most))
    tries = _suggestions(stats, collapsible, can_undo=any(not record.undone for record in records), is_all=is_all)
    if is_all:
        sections += [*_by_role(stats, _section_width(width)), *_compactions(done, kept)]
        return _spaced(
            *_head(stats, width, has_bars=has_bars), Group(*lines, *_next(stats)), *_columns(sections, width), tries
        )
    room = max(FEWEST_ROWS, rows - AROUND_ROWS)
    head = _head(stats, width, max(5, room - SECTION_ROWS), has_bars=has_bars)
    foot = Group(*_next(stats), tries)
    shown: list[RenderableType] = []

    def page(parts: Sequence[RenderableType]) -> Group:
        said = [part for part in parts if isinstance(part, Text)]
        tables = [part for part in parts if not isinstance(part, Text)]
        return _spaced(*head, *([Group(*said)] if said else ()), *_columns(tables, width), foot)

    by_importance: list[RenderableType] = [*lines[:1], *sections[:1], *lines[1:], *sections[1:]]
    for part in by_importance:
        if height(page([*shown, part]), width) <= room:
            shown.append(part)
    return page(shown)


def context_head(stats: ContextStats, width: int, rows: int) -> RenderableType:
    """The panel above a list of all items: the picture, and the next action if there is room."""
    foot = Text(_contents(stats))
    for line in _next(stats):
        foot.append(" ").append(line)
    # Between its parts are two empty lines, and around it two; the mark of the picture has a row of its own.
    most = rows - list_rows(rows) - height(foot, width) - 6
    head = _head(stats, width, max(5, most))
    return _spaced(*head, foot) if most >= 5 else _spaced(*head)


def list_rows(rows: int) -> int:
    """The fewest lines of the list of all items below its head, on a screen of so many rows."""
    return max(6, min(LIST_ROWS, rows // 2))


def _head(stats: ContextStats, width: int, most: int = 0, *, has_bars: bool = True) -> tuple[Text, Text]:
    return _headline(stats), picture(stats, width, most, has_bars=has_bars)


def _lines(
    stats: ContextStats, done: Sequence[CompactionRecord], most: int, kept: Mapping[str, tuple[int, int]] | None
) -> Iterator[Text]:
    """The facts that fit a sentence, most important first."""
    yield Text(_contents(stats))
    yield from _repeated(stats, most)
    if done:
        yield Text(_savings(stats, done, kept))
    if price := _price(stats):
        yield Text(price)


def _sections(stats: ContextStats, width: int, most: int) -> Iterator[Group]:
    """Lists of at most `most` rows, most important first."""
    if stats.heaviest:
        yield _largest(stats.heaviest[:most], width)
    yield from _ranked("By tool, calls and results", stats.by_tool[:most])
    yield from _ranked("By file", stats.by_file[:most])


def _section_width(width: int) -> int:
    """Cells of a section in a window of so many columns."""
    return width if width < TWO_COLUMNS_FROM else (width - _BETWEEN_COLUMNS) // 2


def _columns(sections: Sequence[RenderableType], width: int) -> Sequence[RenderableType]:
    """The sections, in two columns if the window has room for them."""
    if width < TWO_COLUMNS_FROM or len(sections) < 2:
        return sections
    table = new_table(Column(ratio=1), Column(ratio=1), gap=_BETWEEN_COLUMNS)
    table.expand = True
    table.add_row(_spaced(*sections[::2]), _spaced(*sections[1::2]))
    return [table]


def _spaced(*parts: RenderableType) -> Group:
    """The parts with an empty line between each two."""
    return Group(*[one for part in parts for one in (Text(), part)][1:])


def _headline(stats: ContextStats) -> Text:
    about = "about " if stats.is_estimate else ""
    text = Text(f"Context: {used_in_words(stats.usage_ratio)}", style="bold")
    text.append(f" · {about}{stats.used_tokens:,} of {stats.budget_tokens:,} tokens", style="not bold")
    origin = f", {stats.window_origin}" if stats.window_origin else ""
    text.append(f" (window {stats.window_tokens:,}{origin})", style="not bold dim")
    return text


def _contents(stats: ContextStats) -> str:
    summaries = f" ({counted(stats.summaries, 'summary', 'summaries')})" if stats.summaries else ""
    parts = [f"{stats.hidden_messages:,} compacted{summaries}"] if stats.hidden_messages else []
    parts += [f"{stats.stubbed_messages:,} shortened"] if stats.stubbed_messages else []
    parts += [f"{stats.pinned_messages:,} pinned"] if stats.pinned_messages else []
    text = f"{counted(stats.messages, 'message')} in {counted(stats.turns, 'turn')}"
    text = f"{text}: {', '.join(parts)}." if parts else f"{text}."
    return f"{text} {stats.aside_messages:,} more not in the conversation." if stats.aside_messages else text


def _largest(items: Sequence[HeavyItem], width: int) -> Group:
    """The largest items, one per line: the id for other commands, tokens, kind, and importance.

    In a narrow window the importance is a number only: what the item is says more.
    """
    # In a narrow window only the third column shrinks; its text is cut instead of wrapped.
    whole, right = Column(no_wrap=True), Column(justify="right", no_wrap=True)
    table = new_table(Column(justify="right", no_wrap=True, style="accent"), right, "", whole, gap=1, indent=2)
    for item in items:
        reasons = f" {', '.join(item.reasons)}" if width >= _REASONS_FROM_WIDTH else ""
        remark = "" if item.score is None else f"{item.score:.2f}{reasons}"
        label = Text(one_line(item.label, 80), no_wrap=True, overflow="ellipsis")
        table.add_row(one_line(item.id, 20), f"{item.tokens:,}", label, Text(one_line(remark, 40), style="quiet"))
    return _titled("Largest items (id, tokens, importance)", table)


def _repeated(stats: ContextStats, most: int) -> Iterator[Text]:
    """Files that were read more than once, and the command that drops the earlier reads."""
    for one in stats.repeated[:most]:
        ids = " ".join(str(seq) for seq in one.seqs[:8])
        text = Text(f"{one_line(one.path, 60)} was read {len(one.seqs) + 1} times ({one.tokens:,} tokens of copies): ")
        yield text.append(f"/context collapse {ids}", style="accent").append(".")
    if len(stats.repeated) > most:
        more = sum(one.tokens for one in stats.repeated[most:])
        files = counted(len(stats.repeated) - most, "more file")
        yield Text(f"{files} with repeated reads ({more:,} tokens of copies).", style="quiet")


def _savings(stats: ContextStats, done: Sequence[CompactionRecord], kept: Mapping[str, tuple[int, int]] | None) -> str:
    """The tokens that compactions saved, and the facts that they kept, or what of them is readable now."""
    # Each counts all that was ever stated, so the newest says how much is left.
    newest = next((one for one in reversed(done) if one.total_facts), None)
    facts = f" and kept {_kept(newest)}" if newest else ""
    if kept:
        facts = f". Readable now: {one_line(kept_in_words(kept))}"
    saved = sum(one.tokens_before - one.tokens_after for one in done)
    summary = next((item.id for item in stats.heaviest if item.label.startswith("summary")), "")
    reads = f" Read the summary: /context show {one_line(summary, 20)}" if summary else ""
    made = sum(one.tokens_after < one.tokens_before for one in done)
    return f"{counted(made, 'compaction')} saved {max(0, saved):,} tokens{facts}.{reads}"


def _kept(record: CompactionRecord) -> str:
    return one_line(kept_in_words(record.kept, record.kept_facts, record.total_facts))


def _compactions(done: Sequence[CompactionRecord], now: Mapping[str, tuple[int, int]] | None) -> Iterator[Group]:
    """`now`: as `kept` of `context_panel`; then what a compaction kept was true before."""
    if not done:
        return
    rows: list[RenderableType] = []
    for record in done[-LISTED:]:
        stages = one_line(", ".join(record.stages))
        change = f"{record.tokens_before:,} → {record.tokens_after:,}"
        rows.append(_indented(Text(f"{local_time(record.at)}  {change}  {one_line(record.trigger)}: {stages}"), 2))
        if record.total_facts:
            rows.append(_indented(Text(f"kept {'at that time ' if now else ''}{_kept(record)}", style="quiet"), 4))
    yield _titled("Compactions", Group(*rows))


def _by_role(stats: ContextStats, width: int) -> Iterator[Group]:
    if not stats.by_role:
        return
    titles = ("messages", "tokens", "characters")[: 3 if width >= _CHARACTERS_FROM_WIDTH else 2]
    right = [Column(title, justify="right", no_wrap=True) for title in titles]
    table = new_table(Column("", no_wrap=True), *right, has_header=True, indent=2)
    for share in stats.by_role:
        role = one_line(_ROLES.get(share.role, share.role), 20)
        numbers = (share.messages, share.tokens, share.chars)[: len(titles)]
        table.add_row(role, *(f"{number:,}" for number in numbers))
    yield _titled("By role", table)


def _indented(text: Text, cells: int) -> Padding:
    """Its further lines are indented like the first."""
    return Padding(text, (0, 0, 0, cells))


def _price(stats: ContextStats) -> str:
    """The cost of reading the next request, and the cost and savings of compaction; "" if no price is known."""
    prices = stats.prices
    if not prices.request:
        return ""
    text = f"Reading the next request costs {money(prices.request)}{_if_cached(prices.request_cached)}."
    if prices.saves:
        cost = f" and cost {money(prices.compactions)}" if prices.compactions else ""
        text += f" Compaction saves {money(prices.saves)} per request{_if_cached(prices.saves_cached)}{cost}."
    return text


def _if_cached(cost: float | None) -> str:
    return "" if cost is None else f" ({money(cost)} if cached)"


def _ranked(title: str, rows: Sequence[tuple[str, int]]) -> Iterator[Group]:
    if not rows:
        return
    table = new_table(Column(justify="right", no_wrap=True), "", gap=1, indent=2)
    for label, tokens in rows:
        table.add_row(f"{tokens:,}", Text(one_line(label, 80), no_wrap=True, overflow="ellipsis"))
    yield _titled(title, table)


def _next(stats: ContextStats) -> Iterator[Text]:
    if stats.next_rung:
        yield Text(f"Next: {one_line(stats.next_rung)}.", style="accent")


def in_effect(records: Sequence[CompactionRecord]) -> list[CompactionRecord]:
    """The compactions behind the current view."""
    return [record for record in records if not record.undone and not record.is_by_hand]


def _suggestions(stats: ContextStats, collapsible: str, *, can_undo: bool, is_all: bool) -> Parted:
    """Commands to try, with the id of the largest message."""
    number = next((item.id for item in stats.heaviest if item.id.isdecimal()), "N")
    undo = ["undo"] if can_undo else []
    acting = [f"pin {number}", f"compact from {number}"] if stats.messages else []
    words = (*([f"collapse {collapsible}"] if collapsible else []), *acting, *undo)
    more = "/help context lists all" if is_all else "all"
    return Parted(f"Try: /context {' · '.join((*words, more))}", style="quiet")


def _titled(title: str, table: RenderableType) -> Group:
    return Group(Text(title, style="bold"), table)


def height(shown: RenderableType, width: int) -> int:
    """The rows that it takes."""
    return len(plain_console({"COLUMNS": str(width)}).render_lines(shown, pad=False))
