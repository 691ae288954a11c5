"""Turns as they are shown: where each begins, and which are complete."""

from __future__ import annotations

from collections.abc import Iterable, Set

from nca.messages import Entry, Message


def complete_turns(shown: Iterable[Entry], pins: Set[int] = frozenset()) -> list[int]:
    """The seqs of the person's messages that begin complete turns, oldest first.

    The newest turn is complete once the agent has answered; every other one is. A turn that begins with a pin cannot
    leave, so it is not counted.
    """
    begun: list[int] = []
    last: Message | None = None
    for entry in shown:
        last = entry.message
        if last.role == "user" and not last.is_synthetic:
            begun.append(entry.seq)
    if begun and last is not None and (last.role != "assistant" or last.tool_calls):
        begun.pop()
    return [seq for seq in begun if seq not in pins]
