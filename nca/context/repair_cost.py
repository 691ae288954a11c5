"""Count what the repair of a broken log adds to a request."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from operator import is_

import msgspec

from nca.context.history import History
from nca.context.request import repair, resolve
from nca.context.rules.cut_points import regular_spans
from nca.context.tokens import message_tokens
from nca.context.view import View
from nca.messages import Message


def repair_costs(history: History, view: View, seqs: Sequence[int], provider: str) -> list[int]:
    """Raw tokens that repairs added to the requests with this view, when the log ended at each of `seqs`."""
    if not seqs:
        return []
    shown = resolve(history, msgspec.structs.replace(view, tail=history.head + 1))
    sent = [*shown, *(entry.message for entry in history.entries[view.tail - 1 : max(seqs)])]
    if regular_spans(sent) is not None and all(map(is_, repair(sent, provider), sent)):
        return [0] * len(seqs)
    ends = [len(shown) + max(0, seq - view.tail + 1) for seq in seqs]
    starts = [0, *(place for place in range(1, len(sent)) if _begins_turn(sent[place - 1], sent[place]))]
    known, before = {0: 0}, 0
    for start, stop in pairwise([*starts, len(sent)]):
        known |= {end: before + repair_cost_of(sent[start:end], provider) for end in set(ends) if start < end < stop}
        known[stop] = before = before + repair_cost_of(sent[start:stop], provider)
    return [known[end] for end in ends]


def _begins_turn(before: Message, message: Message) -> bool:
    """Whether no repair reaches beyond the beginning of this message: a turn that follows a plain answer."""
    is_answer = before.role == "assistant" and before.text.strip() and not before.tool_calls
    return bool(is_answer and message.role == "user" and message.text.strip())


def repair_cost_of(messages: Sequence[Message], provider: str) -> int:
    """Raw tokens that the repair of these messages adds, or takes away (below 0); 0 before a conversation begins."""
    if all(message.role == "system" for message in messages):
        return 0
    repaired = repair(messages, provider)
    if len(repaired) == len(messages) and all(map(is_, repaired, messages)):
        return 0
    before, after = {id(message) for message in messages}, {id(message) for message in repaired}
    added = sum(message_tokens(message) for message in repaired if id(message) not in before)
    return added - sum(message_tokens(message) for message in messages if id(message) not in after)
