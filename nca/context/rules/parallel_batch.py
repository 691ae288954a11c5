"""A parallel batch of tool calls stays whole: its results follow directly, in the order of the calls."""

from __future__ import annotations

from nca.context.rules.steps import steps
from nca.messages import Message


def with_results_in_order(messages: list[Message]) -> list[Message]:
    """Results move up to their call; what stood between comes after them."""
    order: list[int] = []
    moved: set[int] = set()
    batches = {step.position: [step.results[place] for place in sorted(step.results)] for step in steps(messages)}
    if all(found == list(range(position + 1, position + 1 + len(found))) for position, found in batches.items()):
        return messages
    for position in range(len(messages)):
        if position in moved:
            continue
        order.append(position)
        for result in batches.get(position, ()):
            order.append(result)
            moved.add(result)
    return [messages[position] for position in order]
