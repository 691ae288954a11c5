"""Count what the repair of a broken log adds to a request, kept up to date as the log grows.

Repairs look at neighbours. No repair reaches beyond the beginning of a turn that follows a plain answer, or beyond the
end of a whole step that another follows. So earlier messages are counted once, however long a turn becomes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import is_

import msgspec

from nca.context.history import History
from nca.context.request import repair, resolve
from nca.context.rules.cut_points import regular_spans
from nca.context.rules.messages import is_full
from nca.context.tokens import message_tokens
from nca.context.view import View
from nca.messages import Entry, Message

_SOMEBODY = Message("user", "x")
"""Stands before steps that are counted by themselves: they are not the beginning of a conversation."""


@dataclass(slots=True)
class _Known:
    """The counts so far, as seqs of a history with one view.

    head     the place up to which a turn's beginning was looked for
    base     the beginning of the newest turn, or else a step of the first one; 0 if neither is shown
    before   raw tokens that repairs add to the messages shown before `base`
    settled  up to here (not included) it is counted as well; `inside` is what they add between `base` and it
    """

    history: History
    view: View
    head: int
    base: int = 0
    is_turn: bool = False
    before: int = 0
    settled: int = 0
    inside: int = 0


class RepairCost:
    """For the requests to one provider."""

    def __init__(self, provider: str) -> None:
        self._provider = provider
        self._known: _Known | None = None

    def raw(self, history: History) -> int:
        """Raw tokens that repairs add to what the history shows, or take away (below 0)."""
        known = self._known
        if known is None or known.history is not history or known.view is not history.view or known.head > history.head:
            known = self._known = _Known(history, history.view, min(history.view.tail, history.head))
        self._find_turn(known)
        if not known.base and not self._find_step(known):
            return repair_cost_of(resolve(history), self._provider)
        self._settle(known)
        rest = history.entries[known.settled - 1 :]
        if _is_closed(rest):
            lead = history.message(known.base) if known.is_turn else _SOMEBODY
            return known.before + known.inside + self._of([lead, *(entry.message for entry in rest)])
        if known.is_turn:
            return known.before + self._of([entry.message for entry in history.entries[known.base - 1 :]])
        return repair_cost_of(resolve(history), self._provider)

    def _find_turn(self, known: _Known) -> None:
        """The newest turn that begins in the new messages."""
        history = known.history
        # After the tail's first message: the one before it in the log may not be shown.
        for seq in range(history.head, max(known.head, known.view.tail), -1):
            before, message = history.message(seq - 1), history.message(seq)
            is_answer = before.role == "assistant" and before.text.strip() and not before.tool_calls
            if not (is_answer and message.role == "user" and message.text.strip()):
                continue
            if known.is_turn:
                known.before += self._of([entry.message for entry in history.entries[known.base - 1 : seq - 1]])
            else:
                known.before = self._of(resolve(history)[: seq - 1 - history.head])
            known.base, known.is_turn, known.settled, known.inside = seq, True, seq + 1, 0
            break
        known.head = history.head

    def _find_step(self, known: _Known) -> bool:
        """The first separate step of a turn with a hidden beginning, or of the first turn."""
        history = known.history
        for seq in range(known.view.tail, history.head + 1):
            message = history.message(seq)
            if message.role != "assistant" or not message.tool_calls:
                continue
            shown = resolve(history)[: seq - 1 - history.head]
            if not shown or shown[-1].role not in ("user", "tool") or not shown[-1].text.strip():
                return False
            known.before, known.base, known.settled = self._of(shown), seq, seq
            return True
        return False

    def _settle(self, known: _Known) -> None:
        """Continue over whole steps, each with another after it, or with the person's messages meanwhile."""
        history = known.history
        while known.settled < history.head:
            step = history.message(known.settled)
            behind = known.settled + len(step.tool_calls) + 1
            if step.role != "assistant" or not step.tool_calls or behind > history.head:
                return
            if history.message(behind).role == "user":
                behind += 1
            # One that says nothing is left out, and then it is the one after it that matters.
            if behind > history.head or history.message(behind).role != "assistant":
                return
            whole = [entry.message for entry in history.entries[known.settled - 1 : behind - 1]]
            if not is_full(history.message(behind)) or regular_spans(whole) is None:
                return
            if whole[-1].role == "user":
                known.inside += self._of([_SOMEBODY, *whole])
            known.settled = behind

    def _of(self, messages: Sequence[Message]) -> int:
        return repair_cost_of(messages, self._provider)


def _is_closed(entries: Sequence[Entry]) -> bool:
    """Whether no result among these is one of a call before them."""
    calls = {call.id for entry in entries for call in entry.message.tool_calls}
    return all(entry.message.tool_call_id in calls for entry in entries if entry.message.role == "tool")


def repair_costs(history: History, view: View, seqs: Sequence[int], provider: str) -> list[int]:
    """Raw tokens that repairs added to the requests with this view, when the log ended at each of `seqs`."""
    ends = sorted(set(seqs))
    if not ends:
        return []
    shown = resolve(history, msgspec.structs.replace(view, tail=history.head + 1))
    sent = [*shown, *(entry.message for entry in history.entries[view.tail - 1 : ends[-1]])]
    if regular_spans(sent) is not None and all(map(is_, repair(sent, provider), sent)):
        return [0] * len(seqs)
    known: dict[int, int] = {}
    replayed, repair_cost = History(), RepairCost(provider)
    for end in ends:
        for place in range(replayed.head, len(shown) + max(0, end - view.tail + 1)):
            replayed.append(Entry(place + 1, sent[place]))
        known[end] = repair_cost.raw(replayed)
    return [known[seq] for seq in seqs]


def repair_cost_of(messages: Sequence[Message], provider: str) -> int:
    """Raw tokens that the repair of these messages adds; none for a conversation that has not begun."""
    if not messages:
        return 0
    repaired = repair(messages, provider)
    if len(repaired) == len(messages) and all(map(is_, repaired, messages)):
        return 0
    before, after = {id(message) for message in messages}, {id(message) for message in repaired}
    added = sum(message_tokens(message) for message in repaired if id(message) not in before)
    return added - sum(message_tokens(message) for message in messages if id(message) not in after)
