"""Every tool call has exactly one result, and every result its call. Results follow their calls, in their order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from nca.context.rules.rule import Span
from nca.context.rules.steps import steps
from nca.messages import Message, ToolCall

RESULT_UNAVAILABLE = "[Tool result unavailable - conversation was compacted]"
CALL_UNAVAILABLE = "[Tool call for {tool} - conversation was compacted]"
"""NeuroLink's texts for the missing half of a pair."""


def pair_spans(messages: Sequence[Message]) -> Iterable[Span]:
    """Each step with its results, and so each parallel batch."""
    return ((step.position, step.last) for step in steps(messages) if step.results)


def with_whole_pairs(messages: list[Message]) -> list[Message]:
    """A missing result and a missing call are made up, and marked; a second result for one call is left out."""
    found = list(steps(messages))
    answered = {position for step in found for position in step.results.values()}
    repeated = {position for step in found for position in step.repeated}
    missing = {step.position + len(step.results): step for step in found if step.is_open}
    if not missing and all(m.role != "tool" or i in answered for i, m in enumerate(messages)):
        return messages
    repaired: list[Message] = []
    for position, message in enumerate(messages):
        if message.role != "tool" or position in answered:
            repaired.append(message)
        elif position not in repeated:
            repaired.extend(_with_call(message))
        if position in missing:
            step = missing[position]
            repaired.extend(
                _missing_result(messages[step.position].tool_calls[place])
                for place in range(len(step.calls))
                if place not in step.results
            )
    return repaired


def _with_call(result: Message) -> list[Message]:
    tool = result.name or "tool"
    call = ToolCall(result.tool_call_id or "call", tool, "{}")
    text = CALL_UNAVAILABLE.format(tool=tool)
    answer = result if result.tool_call_id else msgspec.structs.replace(result, tool_call_id=call.id)
    return [Message("assistant", text, (call,), source="nca"), answer]


def _missing_result(call: ToolCall) -> Message:
    return Message("tool", RESULT_UNAVAILABLE, tool_call_id=call.id, name=call.name, source="nca")


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
