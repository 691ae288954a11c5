"""Choose a model: the likely ones, and while something is typed, all that are known of the providers with a key."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from nca.models.catalog import ModelFacts, describe
from nca.models.lookup import Offer
from nca.terminal.panels.list_panel import Line, Listing, ListPanel
from nca.terminal.render.humanize import short_tokens
from nca.terminal.render.sanitize import one_line

_KEYS = (
    "↑↓ choose · Enter switches · type to search all · Esc cancels",
    "↑↓ choose · Enter switches · Esc cancels",
    "↑↓ · Enter · Esc",
)
_MILLION = 1_000_000
_NARROW = 70
_NAME_CELLS, _MEASURED = 44, 100
"""Most cells of the names' column, and how many names it is as wide as."""


class ModelPicker(ListPanel[str]):
    """Picks once. `known` reads every known model, when something is typed first."""

    def __init__(
        self,
        likely: Sequence[Offer],
        known: Callable[[], Sequence[Offer]],
        theme: str = "auto",
        in_use: ModelFacts | None = None,
    ) -> None:
        """`in_use`: the model that answers now, with the window in force."""
        super().__init__(theme)
        self._likely = list(likely)
        self._read_known = known
        self._known: Sequence[Offer] | None = None
        self._matching = self._likely
        self._selected = 0
        self._facts = {in_use.name: in_use} if in_use else {}

    def listing(self, columns: int) -> Listing:
        shown = self._matching
        if not shown:
            nothing = [("class:quiet", "none is known; Enter takes the name as it is typed")]
            return Listing(1, lambda _: nothing, -1, [[("", "")]], _KEYS)
        about: Line = [("class:quiet", self._about(shown[self._selected]))]
        return Listing(len(shown), lambda number: self._row(shown[number], columns), self._selected, [about], _KEYS)

    def move(self, by: int) -> None:
        self._selected = max(0, min(len(self._matching) - 1, self._selected + by))

    def enter(self) -> None:
        typed = self.buffer.text.strip()
        if self._matching:
            self.end(self._matching[self._selected].name)
        elif typed:
            self.end(typed)

    def typed(self, text: str) -> None:
        words = text.lower().split()
        if words and self._known is None:
            likely = {offer.name for offer in self._likely}
            self._known = [offer for offer in self._read_known() if offer.name not in likely]
        every = [*self._likely, *(self._known or ())] if words else self._likely
        self._matching = [offer for offer in every if all(word in offer.name.lower() for word in words)]
        self._selected = 0

    def _describe(self, name: str) -> ModelFacts:
        if name not in self._facts:
            self._facts[name] = describe(name)
        return self._facts[name]

    def _row(self, offer: Offer, columns: int) -> Line:
        name = one_line(offer.name, 120)
        if columns < _NARROW:
            return [("", name)]
        facts = self._describe(offer.name)
        window = "" if facts.window_is_assumed else short_tokens(facts.window_tokens)
        cells = min(_NAME_CELLS, max(len(one.name) for one in self._matching[:_MEASURED]))
        return [("", f"{name:<{cells}}"), ("class:quiet", f"{window:>7}  {_prices(facts):<20}  {offer.why}")]

    def _about(self, offer: Offer) -> str:
        facts = self._describe(offer.name)
        window = "window not known" if facts.window_is_assumed else f"window {facts.window_tokens:,} tokens"
        takes = [word for word, can in (("tools", facts.can_use_tools), ("images", facts.can_see)) if can]
        parts = (
            offer.why,
            window,
            _prices(facts) or "price not known",
            f"takes {' and '.join(takes)}" if takes else "",
        )
        return " · ".join(filter(None, parts))


def _prices(facts: ModelFacts) -> str:
    """US dollars for a million tokens, in and out."""
    if facts.input_cost is None or facts.output_cost is None:
        return ""
    return f"${facts.input_cost * _MILLION:,.2f} in, ${facts.output_cost * _MILLION:,.2f} out"
