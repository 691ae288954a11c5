"""Names that came up: identifiers, paths and numbers, by how often, how lately, and by whom they were said."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from nca.context.record.past import Past
from nca.context.record.piece import Piece
from nca.context.record.text import Section
from nca.context.tokens import text_tokens

HALF_LIFE = 150
"""Messages after which a mention counts half."""
LOOKED_AT = 1_000
"""Messages, from the newest on: a mention further back counts a hundredth."""
WEIGHT = {"user": 3.0, "assistant": 2.0, "tool": 0.5}
SEPARATOR_TOKENS = 1


def names(past: Past) -> Iterator[Piece]:
    """Names by weight; whoever takes them leaves out what can be read already."""
    weights: dict[str, float] = defaultdict(float)
    newest: dict[str, int] = {}
    for age, entry in enumerate(past.near()):
        if age >= LOOKED_AT:
            break
        weight = WEIGHT.get(entry.message.role, 0.0) * 0.5 ** (age / HALF_LIFE)
        for name in past.history.named.of(entry.message) if weight else ():
            weights[name] += weight
            newest.setdefault(name, entry.seq)
    for one in past.section(Section.NAMES):
        weights[one.text] += 1 / (1 + one.order)
    for order, name in enumerate(sorted(weights, key=lambda name: (-weights[name], name))):
        yield Piece(("name", name), newest.get(name, 0), name, text_tokens(name) + SEPARATOR_TOKENS, order=order)
