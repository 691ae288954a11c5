"""Where a view may be cut: the smallest blocks between legal cuts, from all rules together."""

from __future__ import annotations

from collections.abc import Sequence

from nca.context.rules import CUTS
from nca.context.rules.rule import Span
from nca.messages import Message


def blocks(messages: Sequence[Message]) -> list[Span]:
    """Partition positions 0 … len-1 into the smallest spans between legal cuts."""
    reach = list(range(len(messages)))
    for spans_of in CUTS:
        for first, last in spans_of(messages):
            reach[first] = max(reach[first], last)
    spans: list[Span] = []
    position = 0
    while position < len(messages):
        last = position
        inside = position
        while inside <= last:
            last = max(last, reach[inside])
            inside += 1
        spans.append((position, last))
        position = last + 1
    return spans
