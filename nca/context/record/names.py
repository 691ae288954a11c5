"""Names that came up: identifiers, paths and numbers, by how often, how lately, and by whom they were said."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import islice

from nca.context.record.past import Past
from nca.context.record.piece import Piece, Section, fixed

HALF_LIFE = 150
"""Messages after which a mention counts half."""
LOOKED_AT = 1_000
"""Messages, from the newest on: a mention further back counts a hundredth."""
WEIGHT = {"user": 3.0, "assistant": 2.0, "tool": 0.5}


def names(past: Past) -> Iterator[Piece]:
    """Names by weight, without those that can be read already."""
    weights: dict[str, float] = defaultdict(float)
    for age, entry in enumerate(islice(past.near(), LOOKED_AT)):
        weight = WEIGHT.get(entry.message.role, 0.0) * 0.5 ** (age / HALF_LIFE)
        for name in past.history.named.of(entry.message) if weight and not past.newer(entry.seq) else ():
            weights[name] += weight
    for one in past.record_lines(Section.NAMES):
        weights[one.text] += 1 / (1 + one.order)
    for order, name in enumerate(sorted(weights, key=lambda name: (-weights[name], name))):
        if name not in past.readable:
            yield fixed(("name", name), 0, name, order)
