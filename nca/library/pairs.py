"""Repair tool calls and results that lack their other half, and validate a request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nca.context.rules.calls import with_results_in_order, with_unique_ids, with_whole_pairs
from nca.context.validate import CHECKS
from nca.context.validate import validate_request as check
from nca.errors import InvalidMessages, UsageError
from nca.library.inputs import is_list, kind_of, read_conversation, read_text, read_tools
from nca.messages import Message
from nca.shapes.detect import shape_of
from nca.wire import message_to_dict


@dataclass(frozen=True, slots=True)
class RepairResult:
    """A conversation in which every tool call has exactly one result, directly behind it.

    repaired                whether anything was wrong
    messages                in the shape that was handed in; they carry no marks, because a provider refuses unknown
                            keys
    orphaned_calls_fixed    calls that got a made-up result
    orphaned_results_fixed  results that got a made-up call
    synthetic               where in `messages` something made up stands, from 0
    """

    repaired: bool
    messages: list[dict[str, Any]]
    orphaned_calls_fixed: int
    orphaned_results_fixed: int
    synthetic: tuple[int, ...] = ()


def repair_tool_pairs(messages: Sequence[Mapping[str, Any]] | Mapping[str, Any]) -> RepairResult:
    """Give every tool call one result and every result its call, in any shape that `compact` takes.

    A call without a result gets "[Tool result unavailable - conversation was compacted]"; a result without a call gets
    an assistant message "[Tool call for <tool> - conversation was compacted]" that makes it. A second result for one
    call is left out; results move up to their call, in the order of a parallel batch; ids that stand for several calls
    become different ones. Nothing else is changed: see `validate_request` for the other rules of providers.

    Raises InvalidMessages.
    """
    shaped = read_conversation(messages)
    read = shaped.messages
    whole = with_results_in_order(with_whole_pairs(with_results_in_order(read)))
    known = {id(message) for message in read}
    made = [position for position, message in enumerate(whole) if id(message) not in known]
    ids = [call.id for message in whole for call in message.tool_calls]
    renamed = with_unique_ids(whole) if len(set(ids)) < len(ids) else whole
    written = shaped.write(renamed, read)
    return RepairResult(
        repaired=_differs(read, renamed),
        messages=written.rows,
        orphaned_calls_fixed=sum(whole[position].role == "tool" for position in made),
        orphaned_results_fixed=sum(whole[position].role == "assistant" for position in made),
        synthetic=tuple(dict.fromkeys(written.places[position] for position in made)),
    )


def validate_request(
    messages: Sequence[Mapping[str, Any]] | Mapping[str, Any],
    provider: str,
    *,
    tools: Sequence[Mapping[str, Any]] | None = None,
) -> list[str]:
    """One line for each thing that the provider would refuse of a request; empty where it is valid.

    messages   in any shape that `compact` takes; the lines count messages as OpenAI's shape has them, where a system
               prompt and each tool result are messages of their own

    provider   openai, anthropic, gemini, mistral, or a name of theirs (azure, bedrock, vertex …); all others are
               held to OpenAI's rules

    Raises UsageError for a missing provider, InvalidMessages for what is no list of messages at all.
    """
    if not read_text(provider, "provider"):
        raise UsageError(f"provider: is missing; valid: {', '.join(CHECKS)}, or a name of theirs.")
    if isinstance(messages, Mapping) or (is_list(messages) and messages and shape_of(messages) != "openai"):
        shaped = read_conversation(messages)
        rows = [message_to_dict(message) for message in shaped.messages]
        return check(rows, provider, tools=read_tools(shaped.tools if tools is None else tools))
    if not is_list(messages):
        raise InvalidMessages(f"messages: expected a list of messages, found {kind_of(messages)}.")
    for index, message in enumerate(messages, 1):
        _check_shape(message, f"message {index}")
    return check(messages, provider, tools=read_tools(tools)) if messages else ["there are no messages"]


def _differs(before: Sequence[Message], after: Sequence[Message]) -> bool:
    return len(before) != len(after) or any(one is not two for one, two in zip(before, after, strict=True))


def _check_shape(message: Any, place: str) -> None:
    """What no provider's rules can be asked about: things of another kind where objects, lists and text belong."""
    if not isinstance(message, Mapping):
        raise InvalidMessages(f"{place}: expected an object with role and content, found {kind_of(message)}.")
    content, calls = message.get("content"), message.get("tool_calls")
    if not (content is None or isinstance(content, str) or is_list(content)):
        raise InvalidMessages(f"{place}: content is {kind_of(content)}; valid: text, a list of parts, or null.")
    for part in content if isinstance(content, Sequence) and not isinstance(content, str) else ():
        if not isinstance(part, Mapping) or not isinstance(part.get("text", ""), str):
            raise InvalidMessages(f'{place}: a part of the content is {kind_of(part)}; valid: an object with a "type".')
    if not (calls is None or is_list(calls)):
        raise InvalidMessages(f"{place}: tool_calls is {kind_of(calls)}; valid: a list of calls.")
    for call in calls or ():
        if not isinstance(call, Mapping) or not isinstance(call.get("function") or {}, Mapping):
            raise InvalidMessages(f'{place}: a tool call is no {{"id", "type", "function": {{"name", "arguments"}}}}.')
