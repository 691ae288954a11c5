"""The list below `/context`: all that is in the context, walked with the keys; and the window as a picture.

Nothing changes while the list is open: a key marks an action on an item, and the marks are the result.
Across, a row of the picture says what the part is; down, the bars add up to the window. No colour is needed to read it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Literal, NamedTuple

from rich.cells import cell_len
from rich.text import Text

from nca.context.parts import KINDS, LABELS
from nca.errors import NcaError, UsageError, sentence
from nca.humanize import counted, percent
from nca.terminal.panels.list_panel import BAR, Line, ListPanel, cut, wrapped
from nca.terminal.render.sanitize import one_line

if TYPE_CHECKING:
    from nca.agent.context import Context
    from nca.agent.stats import ContextStats
    from nca.agent.usage_breakdown import ContextItem


Change = Literal["collapse", "expand", "pin", "unpin", "compact"]
_MARKS: dict[Change, str] = {"collapse": "−", "expand": "+", "pin": "●", "unpin": "○", "compact": "▼"}
_BAR_CELLS = 8
_WITH_BAR_FROM, _WITH_STATE_FROM = 56, 72
"""Columns of a window from which on rows have a bar, and their mark in words."""


class ContextList(ListPanel["ContextItem", Mapping[str, Change]]):
    """`run` returns the change for each marked item, by its id; None if the person left with Escape."""

    def __init__(self, context: Context, see: Callable[[str], Awaitable[None]], theme: str, most_lines: int) -> None:
        """`see` prints an item, by its id."""
        super().__init__(theme, is_typed=False)
        self.most_lines = most_lines
        self._context = context
        self._see = see
        # Nothing changes while the list is open.
        self._frees = cache(lambda *seqs: context.collapse_tokens(seqs))
        self._pin_takes = cache(context.pin_tokens)
        self._in_order = context.items()
        self._is_by_size = True
        self.rows = self._arranged()
        self._pinned = {str(pin.seq): pin.tokens for pin in context.pins()}
        self._largest = max((item.tokens for item in self.rows), default=1) or 1
        self._said = ""
        self._search = ""
        self._is_searching = False
        self.marks: dict[str, Change] = {}

    @property
    def _orders(self) -> tuple[str, str]:
        """The order of the rows, and the other one."""
        return ("largest first", "in order") if self._is_by_size else ("in order", "largest first")

    def key_texts(self) -> Sequence[str]:
        if self._is_searching:
            return (f"Search: {self._search}▏ · ↑↓ · Enter keeps the matches · Esc ends the search",)
        count, other = len(self.marks), self._orders[1]
        applies = f"a applies {counted(count, 'change')}{self._freed()} · " if count else ""
        leave = "Esc shows all" if self._search else "Esc drops them" if count else "Esc leaves"
        whole = "Esc shows all" if self._search else "Esc leaves, no changes"
        return (
            f"↑↓ · Enter shows it whole · Tab {other} · / searches · {applies}{whole}",
            f"↑↓ · Enter shows it whole · Tab {other} · {applies}{whole}",
            f"↑↓ · Enter shows · Tab order · {applies}{leave}",
            f"{applies}{leave}" if count else "↑↓ · Enter · Tab · Esc",
            f"a applies {count} · Esc" if count else "Esc leaves",
        )

    def head(self, columns: int) -> Line:
        order, place = self._orders[0], self.selected + 1 if self.rows else 0
        head = f"  {'message':>9} {'tokens':>9}  {place:,} of {len(self.rows):,}"
        head += f" with “{one_line(self._search, 20)}”" if self._search else ""
        head += next((f", {one}" for one in (order, order.split()[0]) if len(head) + len(one) + 2 <= columns), "")
        return [("class:quiet", head)]

    def move(self, by: int) -> None:
        self._said = ""
        super().move(by)

    def enter(self) -> None:
        if not self._is_searching:
            self.background(self._show(self._item.id))
        elif self.rows:
            self._is_searching = False
        else:
            self.leave()

    def leave(self) -> None:
        if not self._is_searching and not self._search:
            self.end(None)
            return
        self._is_searching = False
        self._look_for("")

    def keys(self) -> Mapping[str, Callable[[], None]]:
        return {"tab": self._turn, "backspace": lambda: self._look_for(self._search[:-1])}

    def press(self, key: str) -> None:
        """A letter changes the chosen item, or belongs to the search."""
        actions: Mapping[str, Callable[[], None]] = {
            "c": lambda: self._mark("collapse"),
            "e": lambda: self._mark("expand"),
            "p": lambda: self._mark("unpin" if self._item.id in self._pinned else "pin"),
            "f": lambda: self._mark("compact"),
            "a": lambda: self.end(self.marks),
        }
        if self._is_searching:
            self._look_for(self._search + key)
        elif key == "/":
            self._is_searching = True
            self._look_for("")
        elif key in actions:
            actions[key]()
        else:
            self._said = f"{one_line(key, 1)} does nothing here; keys: {', '.join(actions)}, / to search."

    @property
    def _item(self) -> ContextItem:
        return self.rows[self.selected]

    async def _show(self, wanted: str) -> None:
        try:
            await self._see(wanted)
        except NcaError as error:
            self._said = str(error)
            self.redraw()

    def _turn(self) -> None:
        """The other order; the chosen item stays chosen."""
        self._is_by_size = not self._is_by_size
        self.keep()
        self._look_for(self._search)

    def _look_for(self, text: str) -> None:
        """Only the items with this text in their number, label or beginning; the chosen one stays, if it has it."""
        self._search, self._said = text, ""
        wanted = text.casefold()
        self.fill([item for item in self._arranged() if wanted in f"{item.id} {item.label} {item.excerpt}".casefold()])

    def _arranged(self) -> list[ContextItem]:
        return sorted(self._in_order, key=lambda item: -item.tokens) if self._is_by_size else self._in_order

    def _mark(self, change: Change) -> None:
        """Mark the chosen item, or take back the mark that it has already."""
        wanted = self._item.id
        self._said = self._refusal(change)
        if self.marks.get(wanted) == change:
            del self.marks[wanted]
        elif not self._said:
            if change == "compact":
                self.marks = {one: other for one, other in self.marks.items() if other != "compact"}
            self.marks[wanted] = change

    def _refusal(self, change: Change) -> str:
        """Why the chosen item cannot be changed so; "" if it can."""
        item = self._item
        if change == "collapse" and not item.is_collapsible:
            return self._why_not_collapsed(item)
        if change == "expand" and item.is_whole:
            return "It is already shown in full."
        if change in ("pin", "compact") and not item.id.isdecimal():
            return "Only messages can be pinned, or compacted from."
        if change == "pin" and self._pin_tokens + self._pin_takes(int(item.id)) > self._context.pins_budget_tokens:
            return f"Pins have room for {self._context.pins_budget_tokens:,} tokens; {self._pin_tokens:,} are taken."
        return ""

    def _why_not_collapsed(self, item: ContextItem) -> str:
        if not item.id.isdecimal():
            return "Only messages can be collapsed."
        try:
            self._frees(int(item.id))
        except UsageError as error:
            return sentence(error.message)
        return f"Message {item.id} would not get shorter."

    @property
    def _pin_tokens(self) -> int:
        """Tokens of all pins, marked ones included."""
        marked = (self._pin_takes(int(wanted)) for wanted, change in self.marks.items() if change == "pin")
        freed = (tokens for wanted, tokens in self._pinned.items() if self.marks.get(wanted) == "unpin")
        return sum(self._pinned.values()) + sum(marked) - sum(freed)

    def row(self, item: ContextItem, columns: int) -> Line:
        change = self.marks.get(item.id)
        mark = _MARKS[change] if change else "●" if item.id in self._pinned else " "
        row = [("class:notice", mark), ("class:accent", f"{one_line(item.id, 8):>8}"), ("", f" {item.tokens:>9,}  ")]
        if columns >= _WITH_BAR_FROM:
            cells = max(1, round(item.tokens / self._largest * _BAR_CELLS)) if item.tokens else 0
            row += [(f"{BAR}{item.kind}", BLOCK * cells), ("", " " * (_BAR_CELLS - cells + 2))]
        label, state = one_line(item.label, 200), self._state(item)
        if columns < _WITH_STATE_FROM or not state:
            return [*row, ("", label)]
        room = columns - 2 - sum(cell_len(text) for _, text in row) - len(state) - 2
        style = "class:notice" if change else "class:quiet"
        return [*row, ("", cut(label, max(0, room))), (style, f"  {state}")]

    def _state(self, item: ContextItem) -> str:
        change = self.marks.get(item.id)
        if change == "collapse":
            return f"collapse {_signed(-self._frees(int(item.id)))}"
        return "compact from here" if change == "compact" else change or ("pinned" if item.id in self._pinned else "")

    def about(self, columns: int) -> Sequence[Line]:
        """The chosen item, its beginning, and its keys; a narrow window needs two lines for these."""
        if (item := self.chosen) is None:
            return ()
        what = f"message {item.id}" if item.id.isdecimal() else f"summary {one_line(item.id, 20)}"
        facts = [what] + (["pinned"] if item.id in self._pinned else [])
        if item.score is not None:
            facts.append(f"importance {item.score:.2f}: {', '.join(item.reasons)}")
        style, said = ("class:notice", self._said) if self._said else ("", self._choices(item))
        about = [[("class:quiet", one_line(" · ".join(facts), 200))]]
        if columns < _WITH_STATE_FROM:
            return about + [[(style, line)] for line in wrapped(said, columns, 2)]
        return [*about, [("", one_line(item.excerpt, 400))], [(style, said)]]

    def _choices(self, item: ContextItem) -> str:
        """The keys for this item, with the tokens that each frees or takes."""
        choices = [f"c collapse {_signed(-self._frees(int(item.id)))}"] if item.is_collapsible else []
        if not item.is_whole:
            try:
                choices.append(f"e expand {_signed(self._context.expansion_tokens(item.id))}")
            except NcaError as error:
                choices.append(str(error))
        if item.id in self._pinned:
            choices.append("p unpin")
        elif item.id.isdecimal():
            choices.append(f"p pin {self._pin_takes(int(item.id)):,}")
        if item.id.isdecimal():
            choices.append(f"f compact from here −{self._from_here(item):,} at most")
        return " · ".join(choices)

    def _from_here(self, item: ContextItem) -> int:
        return sum(one.tokens for one in self._in_order[self._in_order.index(item) :])

    def _freed(self) -> str:
        """The tokens that the marks free, as far as is known in advance."""
        seqs = sorted(int(wanted) for wanted, change in self.marks.items() if change == "collapse")
        return f", about {_signed(-self._frees(*seqs))} tokens" if seqs else ""


def _signed(tokens: int) -> str:
    return f"{tokens:+,}".replace("-", "−")


BLOCK, FREE, RESERVE = "█", "░", "·"
_MARK = "┊"
_LEAST_BAR, _LEAST_LABEL, _SHARE = 5, 8, 4
"""Cells that the bars and the labels have at least, and those of a percentage."""


class WindowPart(NamedTuple):
    """A part of the window. One that is not part of the budget has no share of it."""

    label: str
    tokens: int
    style: str
    glyph: str = BLOCK
    is_in_budget: bool = True


def parts_of(stats: ContextStats, most: int = 0) -> list[WindowPart]:
    """The parts that add up to the window, or to the used tokens if those are more.

    most  at most this many: the smallest used parts become one; 0: no limit
    """
    used = [WindowPart(LABELS[kind], stats.parts[kind], f"part.{kind}") for kind in KINDS if stats.parts.get(kind)]
    rest = list(_unused(stats))
    room = max(2, most - len(rest))
    if most and len(used) > room:
        small = sorted(used, key=lambda part: part.tokens)[: len(used) - room + 1]
        used = [part for part in used if part not in small]
        used.append(WindowPart("everything else", sum(part.tokens for part in small), "none"))
    return [*used, *rest]


def picture(stats: ContextStats, width: int, most: int = 0, *, has_bars: bool = True) -> Text:
    """The parts (see `parts_of`) in a window of `width` columns, and where compaction begins.

    has_bars  else only names and numbers, which are all that a screen reader has use for
    """
    parts = parts_of(stats, most)
    tokens = max(len(f"{part.tokens:,}") for part in parts)
    around = tokens + _SHARE + 7
    label = min(max(cell_len(part.label) for part in parts), max(_LEAST_LABEL, width - around - _LEAST_BAR))
    cells = max(1, width - around - label - 1)
    total = sum(part.tokens for part in parts) or 1
    mark = round(stats.compact_at_tokens / total * cells) if stats.auto == "on" else cells
    lines = []
    for part, bar in zip(parts, _bars(parts, cells), strict=True):
        share = percent(part.tokens / stats.budget_tokens) if part.is_in_budget else ""
        line = Text(f" {cut(part.label, label)}  {part.tokens:>{tokens},}  ")
        line.append(f"{share:>{_SHARE}}  "[: width - line.cell_len], style="quiet")
        lines.append(line.append(_marked(bar, part, mark)) if has_bars else line)
    if has_bars and (said := _under_mark(f"compaction at {stats.compact_at_tokens:,}", mark, cells)):
        lines.append(Text(" " * (around + label) + said, style="quiet"))
    return Text("\n", no_wrap=True, overflow="crop").join(lines)


def _unused(stats: ContextStats) -> Iterator[WindowPart]:
    yield WindowPart("free", max(0, stats.budget_tokens - stats.used_tokens), "quiet", FREE)
    yield WindowPart("answer reserve", stats.reserve_tokens, "quiet", RESERVE, is_in_budget=False)
    excluded = stats.window_tokens - stats.budget_tokens - stats.reserve_tokens
    if excluded > 0:
        yield WindowPart("over max_tokens", excluded, "quiet", RESERVE, is_in_budget=False)


def _bars(parts: Sequence[WindowPart], cells: int) -> Iterator[str]:
    """Each part's bar after as many blanks as the parts before it take; a nonempty part has at least one cell."""
    total, before = sum(part.tokens for part in parts) or 1, 0
    for part in parts:
        start = min(cells - 1, round(before / total * cells))
        before += part.tokens
        end = max(start + 1, round(before / total * cells)) if part.tokens else start
        yield " " * start + part.glyph * (end - start) + " " * (cells - end)


def _marked(bar: str, part: WindowPart, mark: int) -> Text:
    """The bar, with a mark where compaction begins, unless a used part is there, or one of a single cell."""
    is_free = mark < len(bar) and (bar[mark] == " " or (part.glyph != BLOCK and bar.count(part.glyph) > 1))
    text = Text(bar[:mark] + _MARK + bar[mark + 1 :] if is_free else bar, style=part.style)
    if is_free:
        text.stylize("notice", mark, mark + 1)
    text.rstrip()
    return text


def _under_mark(text: str, mark: int, cells: int) -> str:
    """The text at the foot of the mark, to its right or to its left; "" where it has no room, or there is no mark."""
    if mark >= cells:
        return ""
    if mark + 2 + len(text) <= cells:
        return f"{' ' * mark}└ {text}"
    return f"{text} ┘".rjust(mark + 1) if len(text) + 2 <= mark + 1 else ""
