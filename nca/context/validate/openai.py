"""OpenAI's rules for a chat request; the other checks build on them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from nca.context.rules.ids import SAFE

MAX_ID_CHARS = 40
MAX_TOOLS = 128
LONGEST_NAME = 64


def check(messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]) -> list[str]:
    problems = [*pairs(messages), *shapes(messages)]
    if len(tools) > MAX_TOOLS:
        problems.append(f"{len(tools)} tools; at most {MAX_TOOLS}")
    return problems


def pairs(messages: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Each call has exactly one result directly behind it, and each result its call."""
    waiting: list[str] = []
    seen: set[str] = set()
    for index, message in enumerate(messages, 1):
        if message.get("role") == "tool":
            answered = message.get("tool_call_id")
            if answered not in waiting:
                yield f"message {index}: a result for {answered!r}, which no call directly before waits for"
            else:
                waiting.remove(answered)
            continue
        yield from (f"message {index}: call {call!r} has no result directly behind it" for call in waiting)
        waiting = [call.get("id", "") for call in message.get("tool_calls") or ()]
        for call_id in waiting:
            if call_id in seen:
                yield f"message {index}: the call id {call_id!r} is used twice"
            seen.add(call_id)
    yield from (f"the end: call {call!r} has no result" for call in waiting)


def shapes(messages: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Ids, arguments, contents, names, and text that can be encoded."""
    if not messages:
        yield "there are no messages"
    for index, message in enumerate(messages, 1):
        place = f"message {index}"
        role, content, calls = message.get("role"), message.get("content"), message.get("tool_calls")
        if role not in ("system", "developer", "user", "assistant", "tool"):
            yield f"{place}: the role {role!r} is not known"
        if calls is not None and (not calls or role != "assistant"):
            yield f"{place}: tool_calls must be a non-empty list on an assistant message"
        if content is None and not calls:
            yield f"{place}: no content"
        for call in calls or ():
            yield from (f"{place}: {problem}" for problem in call_problems(call))
        try:
            msgspec.json.encode(message)
        except (UnicodeEncodeError, TypeError, msgspec.EncodeError):
            yield f"{place}: the text cannot be encoded (lone surrogates?)"


def call_problems(call: Mapping[str, Any]) -> Iterator[str]:
    call_id, function = call.get("id"), call.get("function") or {}
    if not isinstance(call_id, str) or not 0 < len(call_id) <= MAX_ID_CHARS:
        yield f"the call id {call_id!r} must have 1 to {MAX_ID_CHARS} characters"
    name = function.get("name")
    if not isinstance(name, str) or not SAFE.fullmatch(name) or len(name) > LONGEST_NAME:
        yield f"the function name {function.get('name')!r} must match [A-Za-z0-9_-]{{1,64}}"
    try:
        is_object = isinstance(msgspec.json.decode(function.get("arguments") or ""), dict)
    except (msgspec.DecodeError, RecursionError, TypeError):
        is_object = False
    if not is_object:
        yield f"the arguments of call {call_id!r} are not a JSON object"


def text_of(message: Mapping[str, Any]) -> str:
    """All text of a message's content."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content or () if isinstance(part, Mapping))


def has_media(message: Mapping[str, Any]) -> bool:
    content = message.get("content")
    return isinstance(content, Sequence) and any(
        isinstance(part, Mapping) and part.get("type") != "text" for part in content
    )


def conversation(messages: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The messages without the leading system ones."""
    start = next((i for i, m in enumerate(messages) if m.get("role") not in ("system", "developer")), len(messages))
    return list(messages[start:])


def late_system(messages: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """System messages that stand behind others: providers move or reword them."""
    for index, message in enumerate(conversation(messages), 1):
        if message.get("role") in ("system", "developer"):
            yield f"conversation message {index}: a system message stands behind others"
