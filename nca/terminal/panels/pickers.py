"""Choose a model (the likely ones, and while something is typed, all that are known), or a message to go back to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import islice

from nca.agent.rewinding import Point, Rewinds
from nca.errors import StoreError
from nca.humanize import local_time, short_tokens
from nca.models.catalog import FROM_LIST, ModelFacts, describe
from nca.models.lookup import Offer, once
from nca.terminal.panels.list_panel import Line, ListPanel, wrapped
from nca.terminal.render.file_changes import totals
from nca.terminal.render.sanitize import one_line, to_terminal

_MODEL_KEYS = (
    "↑↓ choose · Enter switches · type to search all · Esc cancels",
    "↑↓ choose · Enter switches · Esc cancels",
    "↑↓ · Enter · Esc",
)
_MILLION = 1_000_000
_NARROW = 70
_ABOUT_LINES = 2
_NAME_CELLS, _MEASURED = 44, 100
"""Most cells of the names' column, and how many names it is as wide as."""


class ModelPicker(ListPanel[Offer, str]):
    """Picks once. `known` reads every known model, when something is typed first; `served` asks a server for its."""

    def __init__(
        self,
        likely: Sequence[Offer],
        known: Callable[[], Sequence[Offer]],
        theme: str = "auto",
        in_use: ModelFacts | None = None,
        served: Callable[[], Sequence[Offer]] = tuple,
    ) -> None:
        """`in_use`: the model that answers now, with the window in force."""
        super().__init__(theme)
        self.rows = self._likely = list(likely)
        self._read_known, self._ask_served = cache(known), served
        self._facts = {in_use.name: in_use} if in_use else {}
        self._in_use = in_use

    def key_texts(self) -> Sequence[str]:
        return _MODEL_KEYS

    def nothing(self) -> str:
        return "none is known; Enter takes the name as typed"

    def enter(self) -> None:
        if name := self.chosen.name if self.chosen else self.buffer.text.strip():
            self.end(name)

    def begin(self) -> None:
        self.background(self._wait_for_server())

    async def _wait_for_server(self) -> None:
        self.add(await asyncio.to_thread(self._ask_served))
        self.redraw()

    def add(self, served: Sequence[Offer]) -> None:
        """Add what a server lists, with its windows."""
        for one in served:
            facts = self._describe(one.name)
            if one.window_tokens and facts is not self._in_use:
                self._facts[one.name] = facts.with_window(one.window_tokens, FROM_LIST)
        self._likely = once([*self._likely, *served])
        self._filter(self.buffer.text)

    def typed(self, text: str) -> None:
        self._filter(text)
        self.choose_first()

    def _filter(self, text: str) -> None:
        words = text.lower().split()
        every = once([*self._likely, *self._read_known()]) if words else self._likely
        self.fill([offer for offer in every if all(word in offer.name.lower() for word in words)])

    def _describe(self, name: str) -> ModelFacts:
        if name not in self._facts:
            self._facts[name] = describe(name)
        return self._facts[name]

    def row(self, offer: Offer, columns: int) -> Line:
        name = one_line(offer.name, 120)
        if columns < _NARROW:
            return [("", name)]
        facts = self._describe(offer.name)
        window = "" if facts.is_window_guess else short_tokens(facts.window_tokens)
        cells = min(_NAME_CELLS, max(len(one.name) for one in self.rows[:_MEASURED]))
        return [("", f"{name:<{cells}}"), ("class:quiet", f"{window:>7}  {_prices(facts):<20}  {offer.why}")]

    def about(self, columns: int) -> Sequence[Line]:
        if (offer := self.chosen) is None:
            return [[("", "")]] * _ABOUT_LINES
        facts = self._describe(offer.name)
        window = f"window {facts.window_tokens:,} tokens" + (" (assumed)" if facts.is_window_guess else "")
        takes = [word for word, can in (("tools", facts.can_use_tools), ("images", facts.can_see)) if can]
        parts = (
            offer.why,
            window,
            _prices(facts) or "price not known",
            f"takes {' and '.join(takes)}" if takes else "",
        )
        return [[("class:quiet", line)] for line in wrapped(" · ".join(filter(None, parts)), columns, _ABOUT_LINES)]


def _prices(facts: ModelFacts) -> str:
    """US dollars for a million tokens, in and out."""
    if facts.input_cost is None or facts.output_cost is None:
        return ""
    return f"${facts.input_cost * _MILLION:,.2f} in, ${facts.output_cost * _MILLION:,.2f} out"


_REWIND_KEYS = ("↑↓ choose · Enter goes back to before it · Esc cancels", "↑↓ · Enter · Esc")
_TEXT_CHARS = 400
_WHEN_CHARS = 16
_AT_ONCE, _SEARCHED = 50, 1_000
"""Messages that are read at once, and that a search looks through."""
_DATED_FROM, _WIDE = 56, 80
"""Columns from which on a row has the date, and from which on what its turn took and changed."""
LEFT_MARK = "↩"
"""The mark of messages on another branch."""
FILES_ALONE = "with the files that you took back later"
_LEFT_KEYS = tuple(f"{keys} · {LEFT_MARK} other branch" for keys in _REWIND_KEYS)


class RewindPicker(ListPanel[Point, Point]):
    """Picks once."""

    def __init__(self, rewinds: Rewinds, theme: str = "auto") -> None:
        super().__init__(theme)
        self._rewinds = rewinds
        self._coming: Iterator[Point] = rewinds.points()
        self._points: list[Point] = []
        self._totals: dict[tuple[int, int], str] = {}
        self._read(_AT_ONCE)

    @property
    def is_empty(self) -> bool:
        return not self._points

    def begin(self) -> None:
        self.look(self._count_near)

    def key_texts(self) -> Sequence[str]:
        return _LEFT_KEYS + _REWIND_KEYS[1:] if any(point.is_left for point in self.rows) else _REWIND_KEYS

    def move(self, by: int) -> None:
        if self.selected + by >= len(self.rows):
            self._read(_AT_ONCE)
        super().move(by)
        self.look(self._count_near)

    def enter(self) -> None:
        if self.chosen is not None:
            self.end(self.chosen)

    def typed(self, text: str) -> None:
        self._read(_SEARCHED - len(self._points))
        self.choose_first()
        self.look(self._count_near)

    def _read(self, most: int) -> None:
        """Take up so many more points."""
        self._points += islice(self._coming, max(0, most))
        words = self.buffer.text.lower().split()
        self.fill([one for one in self._points if all(word in one.text.lower() for word in words)])

    def head(self, columns: int) -> Line:
        """The headings above the columns of the rows, after the mark."""
        if columns < _DATED_FROM:
            head = "when  message"
        elif columns < _WIDE:
            head = f"{'when':<{_WHEN_CHARS}}  message"
        else:
            changed = f"{'changed':<{self._widest}}  " if self._widest else ""
            head = f"{'when':<{_WHEN_CHARS}} {'tokens':>6}  {changed}message"
        return [("class:label", f"  {head}")]

    @property
    def _widest(self) -> int:
        """Columns for what the turns changed; 0 while nothing is known to have changed."""
        widest = max(map(len, self._totals.values()), default=0)
        return max(widest, len("changed")) if widest else 0

    def row(self, point: Point, columns: int) -> Line:
        style = "class:quiet" if point.is_left else ""
        mark = f"{LEFT_MARK} " if point.is_left else ""
        what = f"{'the end of another branch' if point.is_left else FILES_ALONE}: " if point.rewind else ""
        text = f"{mark}{what}{one_line(point.text, _TEXT_CHARS)}"
        when = local_time(point.at)
        if columns < _DATED_FROM:
            return [(style, f"{when[11:16]} {text}")]
        if columns < _WIDE:
            return [(style, f"{when}  {text}")]
        changed = self._totals.get((point.seq, point.rewind), "")
        size = "" if point.rewind else short_tokens(point.tokens)
        return [(style, f"{when} {size:>6}  {changed:<{self._widest}}{'  ' if self._widest else ''}{text}")]

    def about(self, columns: int) -> Sequence[Line]:
        if (point := self.chosen) is None:
            return [[("", "")]] * 2
        if point.rewind:
            facts = ["the end of another branch; going there shows it again" if point.is_left else FILES_ALONE]
        else:
            facts = [self._totals.get((point.seq, 0), "") or "no file changed"]
            facts.append(f"{point.tokens:,} tokens in its turn")
            facts += ["on another branch"] if point.is_left else []
        facts.append(local_time(point.at))
        return [[("class:quiet", " · ".join(facts))], [("", f"› {to_terminal(one_line(point.text, _TEXT_CHARS))}")]]

    async def _count_near(self) -> None:
        """Look up what the turns near the chosen one changed."""
        near = self.rows[max(0, self.selected - self.most_lines) : self.selected + self.most_lines]
        for point in near:
            if (key := (point.seq, point.rewind)) not in self._totals:
                try:
                    self._totals[key] = await asyncio.to_thread(totals, await self._rewinds.changes(point))
                except StoreError:
                    # Going back reports a fault of the record; the list does without it.
                    self._totals[key] = ""
                self.redraw()
