"""Count the facts that can still be read after a compaction, whoever wrote the summary."""

from __future__ import annotations

from nca.context import ledger
from nca.context.history import History
from nca.context.request import resolve
from nca.context.view import Verbatim, View, ranges_of, seqs

GRAM = 4
"""A fact whose first characters stand nowhere in a text does not stand there."""


class KeptFacts:
    """Counted when somebody first asks, for the log as it was: looking for facts costs more than a plan does."""

    def __init__(self, history: History, before: View, after: View) -> None:
        self._history = history
        self._views = before, after
        self._head = history.head
        self._counted: tuple[int, int] | None = None

    def count(self) -> tuple[int, int]:
        """(facts still in the new view, facts of the messages that it shows no longer)."""
        if self._counted is None:
            shown_before, shown_after = (_verbatim(view, self._head) for view in self._views)
            lost = [self._history.message(seq) for seq in sorted(shown_before - shown_after)]
            wanted = ledger.facts_of(ledger.extract(lost, self._history.facts))
            self._counted = self._held(wanted), len(wanted)
        return self._counted

    def _held(self, wanted: list[str]) -> int:
        pieces = []
        later = self._history.head - self._head
        for message in resolve(self._history, self._views[1])[: -later or None]:
            pieces.append(message.text)
            pieces.extend(part.text for part in message.attachments)
            pieces.extend(call.arguments for call in message.tool_calls)
        text = "\n".join(pieces)
        # Thousands of facts against a hundred thousand characters: most are ruled out by how they begin.
        grams = {text[place : place + GRAM] for place in range(len(text))} if len(wanted) > len(text) // 1_000 else None
        return sum((grams is None or fact[:GRAM] in grams or len(fact) < GRAM) and fact in text for fact in wanted)


def _verbatim(view: View, head: int) -> set[int]:
    shown = set(range(view.tail, head + 1))
    for item in view.items:
        if isinstance(item, Verbatim):
            shown.update(seqs(ranges_of(item)))
    return shown
