"""How much of everything that was ever stated can be read now: checked by code, whoever wrote the record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from nca.context.history import History
from nca.context.record.commits import known_by
from nca.context.record.ledger import (
    DECISIONS,
    FAILING,
    FILES,
    RULES,
    WORDS,
    Ledger,
    extract,
    merge,
    parted,
)
from nca.context.record.statements import single_rules
from nca.context.request import resolve
from nca.context.view import Summary, View, without_ranges

COUNTED = {
    "rules": (RULES,),
    "words": (WORDS,),
    "decisions": (DECISIONS,),
    "state": (FILES, FAILING),
}
"""By kind: what counts as stated. Contents that one call brings back do not."""


_IN_WORDS = {
    "rules": "rules",
    "words": "of your messages",
    "decisions": "decisions",
    "state": "changed files and open errors",
}


def kept_in_words(by_kind: Mapping[str, tuple[int, int]], kept: int = 0, total: int = 0) -> str:
    """`3 of 3 rules, 12 of 14 of your messages`: what can still be read of everything that was stated, by kind.

    Without kinds, as of an older session, the sum.
    """
    if not by_kind:
        return f"{kept:,} of {total:,} facts"
    return ", ".join(f"{kept:,} of {total:,} {_IN_WORDS.get(kind, kind)}" for kind, (kept, total) in by_kind.items())


class KeptFacts:
    """Counted when somebody first asks, for the log as it was: looking for facts costs more than a plan does."""

    def __init__(self, history: History, before: View, after: View) -> None:
        self._history = history
        self._views = before, after
        self._head = history.head
        self._counted: dict[str, tuple[int, int]] | None = None

    def count(self) -> tuple[int, int]:
        """(statements that can be read in the new view, all that were ever stated)."""
        counted = self.by_kind()
        return sum(kept for kept, _ in counted.values()), sum(total for _, total in counted.values())

    def by_kind(self) -> dict[str, tuple[int, int]]:
        """The same by kind, as COUNTED has them; kinds without a statement are left out."""
        if self._counted is None:
            text = self._text(self._views[1])
            ledger = self._stated()
            found = {
                kind: [fact for category in categories for fact in _facts(ledger, category)]
                for kind, categories in COUNTED.items()
            }
            self._counted = {
                kind: (sum(" ".join(fact.split()) in text for fact in facts), len(facts))
                for kind, facts in found.items()
                if facts
            }
        return self._counted

    def _stated(self) -> Ledger:
        """What the records of either view hold, and what the messages state that the earlier one still shows."""
        before, after = self._views
        records = [item.ledger for view in (before, after) for item in view.items if isinstance(item, Summary)]
        # A summary of another stage keeps no ledger: what it stands for is looked at again.
        hidden = [span for item in before.items if isinstance(item, Summary) and item.ledger for span in item.ranges]
        # Only these are read: a log may be a million messages long.
        spans = without_ranges([(1, self._head)], [*hidden, *before.aside])
        shown = [entry for first, last in spans for entry in self._history.entries[first - 1 : last]]
        return merge([*records, extract(shown, self._history.facts)])

    def _text(self, view: View) -> str:
        """All that can be read in a view, white space folded."""
        later = self._history.head - self._head
        pieces: list[str] = []
        for message in resolve(self._history, view)[: -later or None]:
            pieces.append(message.text)
            pieces.extend(part.text for part in message.attachments)
            pieces.extend(call.arguments for call in message.tool_calls)
        return " ".join("\n".join(pieces).split())


def _facts(ledger: Ledger, category: str) -> Iterator[str]:
    """What must be readable of each line: of state the file or command, of what was said the text itself."""
    for line in ledger.get(category, ()):
        _, text = parted(line)
        if category == FILES:
            yield known_by(text.partition("\t")[0])
        elif category == FAILING:
            yield text.split("\t")[1] if "\t" in text else text
        elif category == RULES:
            # Of a long message a record may have the rules alone.
            yield from single_rules(text)
        else:
            yield text
