"""What no stage may touch: system messages, pins, the newest user message, an open step (spec 3), the todo list."""

from __future__ import annotations

from collections.abc import Sequence, Set

from nca.context.rules.open_step import open_step, unseen_step
from nca.context.todo import open_list
from nca.messages import Entry


def newest_user(entries: Sequence[Entry]) -> int | None:
    """The seq of the newest message that a person wrote."""
    for entry in reversed(entries):
        if entry.message.role == "user" and not entry.message.is_synthetic:
            return entry.seq
    return None


def untouchable(entries: Sequence[Entry], pins: Set[int]) -> set[int]:
    """The seqs that stay as they are."""
    kept = {entry.seq for entry in entries if entry.message.role == "system"}
    kept.update(entry.seq for entry in entries if entry.seq in pins)
    newest = newest_user(entries)
    if newest is not None:
        kept.add(newest)
    if (todo := open_list(entries)) is not None:
        kept.add(todo)
    position = open_step([entry.message for entry in entries])
    if position is not None:
        kept.update(entry.seq for entry in entries[position:])
    return kept


def unseen(entries: Sequence[Entry]) -> set[int]:
    """The seqs of a step whose results the model has not seen yet: it stays, and only at last its contents are cut."""
    position = unseen_step([entry.message for entry in entries])
    if position is None:
        return set()
    calls = {call.id for call in entries[position].message.tool_calls}
    results = [entry.seq for entry in entries[position + 1 :] if entry.message.tool_call_id in calls]
    return {entries[position].seq, *results}
