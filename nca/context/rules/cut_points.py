"""Where a view may be cut: the smallest blocks between legal cuts, from all rules together."""

from __future__ import annotations

from collections.abc import Sequence

from nca.context.rules import CUTS
from nca.context.rules.calls import is_valid
from nca.context.rules.messages import is_full
from nca.context.rules.steps import Span
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


def regular_spans(messages: Sequence[Message]) -> list[Span] | None:
    """The blocks of `messages` if each is full and every call has its results in order right after it, else None.

    For such messages `cut_points.blocks` returns the same, and repairs inside of a block change nothing.
    """
    spans: list[Span] = []
    position, end = 0, len(messages)
    while position < end:
        message = messages[position]
        content, calls = message.content, message.tool_calls
        if not calls:
            if message.role == "tool" or not ((type(content) is str and content.strip()) or is_full(message)):
                return None
            spans.append((position, position))
            position += 1
            continue
        last = position + len(calls)
        if last >= end or message.role != "assistant" or not (content is None or is_full(message)):
            return None
        for place, call in enumerate(calls, position + 1):
            result = messages[place]
            text = result.content
            if result.role != "tool" or result.tool_call_id != call.id or type(text) is not str:
                return None
            if not (text.strip() and is_valid(call)):
                return None
        spans.append((position, last))
        position = last + 1
    return spans
