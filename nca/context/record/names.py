"""Names that came up: identifiers, paths and numbers, by how often, how lately, and by whom they were said."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator
from itertools import islice

from nca.context.named import TEXT_CHARS, names_of
from nca.context.record.past import Past
from nca.context.record.piece import Piece, Section, fixed
from nca.messages import Entry

HALF_LIFE = 150
"""Messages after which a mention counts half."""
LOOKED_AT = 1_000
"""Messages, from the newest on: a mention further back counts a hundredth."""
TYPED, ANSWERED, SHOWN = 3.0, 2.0, 0.5
"""The weights of a mention: in what the person typed, what the model said, and in a result or what was pasted."""
MOST_ALIKE = 8
"""A text with more names that differ only in digits has a series of values, such as times. They are told with it."""
_ALIKE = str.maketrans("123456789", "0" * 9)


def names(past: Past) -> Iterator[Piece]:
    """Names by weight, of those that a call, a result or a shown text has, without those that can be read already.

    What was only talked about is in the words themselves: a talk has times and numbers, and no names to work with.
    """
    weights: dict[str, float] = defaultdict(float)
    shown = set[str]()
    for age, entry in enumerate(islice(past.near(), LOOKED_AT)):
        for weight, found, is_shown in _mentioned(past, entry):
            for name in found:
                weights[name] += weight * 0.5 ** (age / HALF_LIFE)
            shown.update(found if is_shown else ())
    for one in past.record_lines(Section.NAMES):
        weights[one.text] += 1 / (1 + one.order)
        shown.add(one.text)
    for order, name in enumerate(sorted(shown, key=lambda name: (-weights[name], name))):
        if name not in past.readable:
            yield fixed(("name", name), 0, name, order)


def _mentioned(past: Past, entry: Entry) -> Iterator[tuple[float, Collection[str], bool]]:
    """The names in a message that has no newer version, with their weight, and whether they were shown there."""
    message, named = entry.message, past.history.named
    if message.role not in ("user", "assistant", "tool") or past.newer(entry.seq):
        return
    if message.role == "assistant":
        called = named.called(message)
        yield ANSWERED, called, True
        yield ANSWERED, named.of(message) - called, False
        return
    said = past.said(message)
    typed = names_of(said.typed[:TEXT_CHARS]) if said is not None else frozenset[str]()
    is_shown = message.role == "tool" or (said is not None and bool(said.beside or said.files))
    yield TYPED, typed, is_shown
    yield SHOWN, set(_without_series(named.of(message) - typed)), is_shown


def _without_series(found: Collection[str]) -> Iterator[str]:
    alike = Counter(name.translate(_ALIKE) for name in found)
    return (name for name in found if alike[name.translate(_ALIKE)] <= MOST_ALIKE)
