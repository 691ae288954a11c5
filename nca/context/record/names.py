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
    """Names by weight, without those that can be read already."""
    weights: dict[str, float] = defaultdict(float)
    for age, entry in enumerate(islice(past.near(), LOOKED_AT)):
        for name, weight in _mentioned(past, entry):
            weights[name] += weight * 0.5 ** (age / HALF_LIFE)
    for one in past.record_lines(Section.NAMES):
        weights[one.text] += 1 / (1 + one.order)
    for order, name in enumerate(sorted(weights, key=lambda name: (-weights[name], name))):
        if name not in past.readable:
            yield fixed(("name", name), 0, name, order)


def _mentioned(past: Past, entry: Entry) -> Iterator[tuple[str, float]]:
    """The names in a message that has no newer version, and their weights."""
    message = entry.message
    if message.role not in ("user", "assistant", "tool") or past.newer(entry.seq):
        return
    found = past.history.named.of(message)
    if message.role == "assistant":
        yield from ((name, ANSWERED) for name in found)
        return
    said = past.said(message)
    typed = names_of(said.typed[:TEXT_CHARS]) if said is not None else frozenset[str]()
    yield from ((name, TYPED) for name in typed)
    yield from ((name, SHOWN) for name in _without_series(found - typed))


def _without_series(found: Collection[str]) -> Iterator[str]:
    alike = Counter(name.translate(_ALIKE) for name in found)
    return (name for name in found if alike[name.translate(_ALIKE)] <= MOST_ALIKE)
