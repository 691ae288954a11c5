"""Messages that no stage may touch: system messages, pins, the newest user message, an open step, the todo list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nca.context.rules.steps import open_step, unseen_step
from nca.context.todo import is_open
from nca.context.view import is_in
from nca.messages import Entry

if TYPE_CHECKING:
    from nca.context.history import History

COLLAPSE = "collapse"
"""The stage of a message that a person shortened: it stays so."""


def untouchable(history: History) -> set[int]:
    """The seqs that stay as they are; system messages only if they are shown."""
    kept = {entry.seq for entry in history.visible() if entry.message.role == "system"}
    kept |= {pin for pin in history.pins if pin <= history.head}
    if history.newest_user is not None:
        kept.add(history.newest_user)
    if (todo := history.newest_list) is not None and is_open(todo[1]) and is_in_work(history, todo[0]):
        kept.add(todo[0])
    step = _newest_step(history)
    if open_step([entry.message for entry in step]) is not None:
        kept.update(entry.seq for entry in step)
    return kept


def is_in_work(history: History, seq: int) -> bool:
    """Whether a list was written for one of the person's two newest requests: a model that left it behind, open or not,
    works on something else, and can ask for it."""
    between = range((history.newest_user or 0) - 1, seq, -1)
    messages = (history.message(one) for one in between if not is_in(one, history.view.aside))
    return not any(message.role == "user" and not message.is_synthetic for message in messages)


def is_within_step(history: History) -> bool:
    """Whether the model works on a step of a list that is in work, and has not just changed the list."""
    seq, plan = history.newest_list or (0, {})
    if not plan.get("doing") or not is_in_work(history, seq):
        return False
    last = history.head
    while last > seq and history.message(last).role == "tool":
        last -= 1
    return last > seq


def unseen(history: History) -> set[int]:
    """The seqs of a step with results that the model has not seen: it stays, and its contents are cut only last."""
    step = _newest_step(history)
    if unseen_step([entry.message for entry in step]) is None:
        return set()
    calls = {call.id for call in step[0].message.tool_calls}
    return {step[0].seq, *(entry.seq for entry in step[1:] if entry.message.tool_call_id in calls)}


def _newest_step(history: History) -> Sequence[Entry]:
    """The last assistant message and what follows it; nothing if there is none."""
    step: list[Entry] = []
    for entry in history.backwards():
        step.append(entry)
        if entry.message.role == "assistant":
            return step[::-1]
    return ()
