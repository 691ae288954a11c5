"""Calls and their results: pairs in order, arguments that are JSON objects, ids that are unique.

Every call has exactly one result, and every result its call. Templates parse the arguments of past calls, and a broken
one fails.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from string import ascii_letters, digits
from typing import Literal

import msgspec

from nca.context.rules.steps import Span, steps
from nca.messages import Message, ToolCall

SAFE = frozenset(f"{ascii_letters}{digits}_-")
"""The characters that every provider takes in ids and names of tools."""
Form = Literal["safe", "any", "nine"]
"""The ids that are taken: those that every provider takes; any of a valid length, as OpenAI; Mistral's."""
LONGEST_NAME, LONGEST_ID, NEW_CHARS, MISTRAL_CHARS = 64, 40, 24, 9
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
    """Results move up to their call, in the order of the calls; messages between come after them."""
    return _moved(
        messages, {step.position: [step.results[place] for place in sorted(step.results)] for step in steps(messages)}
    )


def with_results_after_calls(messages: list[Message]) -> list[Message]:
    """Results move up to their call, in the order that they have; messages between come after them."""
    return _moved(messages, {step.position: sorted(step.results.values()) for step in steps(messages)})


def _moved(messages: list[Message], batches: Mapping[int, list[int]]) -> list[Message]:
    """batches  by the position of each step: its results, in the order in which they should follow it"""
    order: list[int] = []
    moved: set[int] = set()
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


def with_valid_arguments(messages: list[Message]) -> list[Message]:
    """Arguments that are not a JSON object become `{}`; a name that providers refuse becomes one that they accept."""
    if all(is_valid(call) for message in messages for call in message.tool_calls):
        return messages
    return [
        msgspec.structs.replace(message, tool_calls=tuple(_repaired(call) for call in message.tool_calls))
        if message.tool_calls
        else message
        for message in messages
    ]


def is_valid(call: ToolCall) -> bool:
    """Whether providers take the call's name and arguments."""
    return _is_name(call.name) and _is_object(call.arguments)


@lru_cache(maxsize=1_024)
def _is_name(name: str) -> bool:
    return is_safe(name, LONGEST_NAME)


@lru_cache(maxsize=4_096)
def _is_object(arguments: str) -> bool:
    try:
        return isinstance(msgspec.json.decode(arguments), dict)
    except (msgspec.DecodeError, RecursionError):
        return False


def is_safe(text: str, chars: int) -> bool:
    """Whether every provider takes this as an id or a tool's name of at most this many characters."""
    return 0 < len(text) <= chars and SAFE.issuperset(text)


def _repaired(call: ToolCall) -> ToolCall:
    name = call.name
    if not _is_name(name):
        name = "".join(c if c in SAFE else "_" for c in name)[:LONGEST_NAME]
        name = name if name.strip("_-") else "tool"
    return msgspec.structs.replace(call, name=name, arguments=call.arguments if _is_object(call.arguments) else "{}")


def with_unique_ids(messages: list[Message], *, form: Form = "safe") -> list[Message]:
    """Ids that occur twice or have another form are renamed. Every call must come directly before its results."""
    ids = [call.id for message in messages for call in message.tool_calls]
    # Most logs have nothing to rename, and all ids together are looked at in a tenth of the time.
    if len(set(ids)) == len(ids) and _are_taken(ids, form):
        return messages
    used: set[str] = set()
    repaired: list[Message] = []
    waiting: list[tuple[str, str]] = []
    for message in messages:
        if message.tool_calls:
            renamed = [(call.id, _renamed(call.id, used, form)) for call in message.tool_calls]
            waiting = list(renamed)
            calls = tuple(
                msgspec.structs.replace(call, id=new)
                for call, (_, new) in zip(message.tool_calls, renamed, strict=True)
            )
            repaired.append(msgspec.structs.replace(message, tool_calls=calls))
        elif message.role == "tool":
            match = next((pair for pair in waiting if pair[0] == message.tool_call_id), None)
            if match is None:
                repaired.append(message)
                continue
            waiting.remove(match)
            repaired.append(msgspec.structs.replace(message, tool_call_id=match[1]))
        else:
            repaired.append(message)
    return repaired


def _are_taken(ids: Sequence[str], form: Form) -> bool:
    """Whether a provider takes these ids as they are."""
    lengths, text = set(map(len, ids)), "".join(ids)
    if form == "nine":
        return lengths <= {MISTRAL_CHARS} and text.isascii() and (text.isalnum() or not ids)
    return 0 not in lengths and max(lengths, default=1) <= LONGEST_ID and (form == "any" or SAFE.issuperset(text))


def _renamed(old: str, used: set[str], form: Form) -> str:
    """The same id if it fits and is free; else one derived from it: the same log gives the same bytes."""
    new, again = old, 0
    chars = MISTRAL_CHARS if form == "nine" else NEW_CHARS
    while not _are_taken([new], form) or new in used:
        new = blake2b(f"{old}/{again}".encode("utf-8", "replace"), digest_size=16).hexdigest()[:chars]
        again += 1
    used.add(new)
    return new
