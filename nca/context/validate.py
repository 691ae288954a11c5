"""Check what a provider would refuse, before a request is sent. The other providers' checks build on OpenAI's.

Mistral requires ids of exactly nine characters. `nca.context.request` makes them; its check accepts any id that can be
mapped to one, so that a request can be checked before its provider is known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from nca.context.rules.calls import LONGEST_ID, LONGEST_NAME, is_safe

MAX_TOOLS = 128


_HELD_UNDER_TYPE = ("image_url", "input_audio", "file")
"""Types of parts that hold what they show under a key of the same name."""


def check_openai(messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]) -> list[str]:
    problems = [*pairs(messages), *shapes(messages)]
    if len(tools) > MAX_TOOLS:
        problems.append(f"{len(tools)} tools; at most {MAX_TOOLS}")
    return problems


def pairs(messages: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Each call has exactly one result directly after it, and each result its call."""
    waiting, seen = Counter[str](), set[str]()
    for index, message in enumerate(messages, 1):
        if message.get("role") == "tool":
            answered = repr(message.get("tool_call_id"))
            if not waiting[answered]:
                yield f"message {index}: a result for {answered}, which no call directly before waits for"
            waiting[answered] -= 1
            continue
        yield from (f"message {index}: call {call} has no result directly after it" for call in waiting.elements())
        ids = [repr(call.get("id", "")) for call in message.get("tool_calls") or ()]
        waiting = Counter(ids)
        for call_id in ids:
            if call_id in seen:
                yield f"message {index}: the call id {call_id} is used twice"
            seen.add(call_id)
    yield from (f"the end: call {call} has no result" for call in waiting.elements())


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
        if content == [] or (content is None and not calls and not (message.get("refusal") or message.get("audio"))):
            yield f"{place}: no content"
        for number, part in enumerate(content if isinstance(content, list | tuple) else (), 1):
            held = part.get("type") if isinstance(part, Mapping) else None
            if held in _HELD_UNDER_TYPE and not part.get(held):
                yield f"{place}, part {number}: {held} holds nothing"
        for call in calls or ():
            yield from (f"{place}: {problem}" for problem in call_problems(call))
        try:
            msgspec.json.encode(message)
        except (UnicodeEncodeError, TypeError, RecursionError, msgspec.EncodeError):
            yield f"{place}: the text cannot be encoded (lone surrogates?)"


def call_problems(call: Mapping[str, Any]) -> Iterator[str]:
    call_id, function = call.get("id"), call.get("function") or call.get("custom")
    if not isinstance(function, Mapping):
        function = {}
    if not isinstance(call_id, str) or not 0 < len(call_id) <= LONGEST_ID:
        yield f"the call id {call_id!r} must have 1 to {LONGEST_ID} characters"
    name = function.get("name")
    if not isinstance(name, str) or not is_safe(name, LONGEST_NAME):
        yield f"the function name {function.get('name')!r} must match [A-Za-z0-9_-]{{1,{LONGEST_NAME}}}"
    if call.get("type") == "custom" and isinstance(function.get("input"), str):
        return
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
    """System messages that come after others: providers move or reword them."""
    for index, message in enumerate(conversation(messages), 1):
        if message.get("role") in ("system", "developer"):
            yield f"conversation message {index}: a system message comes after others"


def check_anthropic(messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]) -> list[str]:
    problems = [*pairs(messages), *late_system(messages)]
    talk = conversation(messages)
    if not talk or talk[0].get("role") != "user":
        problems.append("the first message is not the user's")
    has_calls = False
    for index, message in enumerate(talk, 1):
        calls = message.get("tool_calls") or ()
        has_calls = has_calls or bool(calls)
        for call in calls:
            problems += [f"conversation message {index}: {problem}" for problem in call_problems(call)]
            if not is_safe(str(call.get("id", "")), LONGEST_ID):
                problems.append(f"conversation message {index}: the call id {call.get('id')!r} has other characters")
        is_block = bool(message.get("provider_specific_fields"))
        is_blank = not text_of(message).strip() and not has_media(message)
        if is_blank and not is_block and (not calls or message.get("content")):
            problems.append(f"conversation message {index}: the text is empty")
        problems += [
            f"conversation message {index}: an empty text part"
            for part in (message.get("content") if isinstance(message.get("content"), list) else None) or ()
            if isinstance(part, Mapping) and part.get("type") == "text" and not str(part.get("text", "")).strip()
        ]
    return problems


def check_gemini(messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]) -> list[str]:
    problems = [*pairs(messages), *late_system(messages)]
    talk = conversation(messages)
    if not talk or talk[0].get("role") != "user":
        problems.append("the first content is not the user's")
    for index, message in enumerate(talk, 1):
        place = f"conversation message {index}"
        calls = message.get("tool_calls") or ()
        problems += [f"{place}: {problem}" for call in calls for problem in call_problems(call)]
        before = talk[index - 2].get("role") if index > 1 else ""
        if calls and before not in ("user", "tool"):
            problems.append(f"{place}: a function call must directly follow the user or a function response")
        if calls:
            answered = [m.get("tool_call_id") for m in talk[index : index + len(calls)] if m.get("role") == "tool"]
            if answered != [call.get("id") for call in calls]:
                problems.append(f"{place}: the function responses are not those of its calls, in their order")
        if not calls and not text_of(message).strip() and not has_media(message):
            problems.append(f"{place}: an empty part")
    return problems


def check_mistral(messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]) -> list[str]:
    problems = [*pairs(messages), *late_system(messages)]
    talk = conversation(messages)
    for index, message in enumerate(talk, 1):
        place = f"conversation message {index}"
        role, before = message.get("role"), talk[index - 2].get("role") if index > 1 else ""
        if role == "user" and before == "tool":
            problems.append(f"{place}: a user message directly after a tool message (code 3230)")
        if role == "tool" and before not in ("assistant", "tool"):
            problems.append(f"{place}: a tool message after {before or 'nothing'}")
        if role == "assistant" and not message.get("tool_calls") and not text_of(message).strip():
            problems.append(f"{place}: an assistant message with neither content nor tool calls")
        problems += [f"{place}: {p}" for call in message.get("tool_calls") or () for p in call_problems(call)]
    return problems


Messages = Sequence[Mapping[str, Any]]
Check = Callable[[Messages, Sequence[Mapping[str, Any]]], list[str]]

CHECKS: Mapping[str, Check] = {
    "openai": check_openai,
    "anthropic": check_anthropic,
    "gemini": check_gemini,
    "mistral": check_mistral,
}
FAMILIES: Mapping[str, str] = {
    "azure": "openai",
    "bedrock": "anthropic",
    "google-ai": "gemini",
    "google": "gemini",
    "vertex": "gemini",
    "vertex_ai": "gemini",
    "codestral": "mistral",
    "claude": "anthropic",
    "gpt": "openai",
}
"""Providers that speak another one's rules, and families of models; all others speak OpenAI's."""

_IN_PRICE_MAP: Mapping[str, str] = {
    "vertex_ai-language-models": "gemini",
    "vertex_ai-anthropic_models": "anthropic",
    "vertex_ai-mistral_models": "mistral",
    "bedrock_converse": "anthropic",
}
"""Names that only litellm's price map has: models named without a provider get them."""


def validate_request(
    messages: Messages, provider: str, *, tools: Sequence[Mapping[str, Any]] | None = None
) -> list[str]:
    """One line for each thing that the provider would refuse; empty if the request is valid.

    `messages` are OpenAI-shaped.
    """
    return CHECKS[family_of(provider)](messages, tools or ())


def family_of(provider: str) -> str:
    """Whose rules a provider follows: a key of CHECKS."""
    name = provider.lower()
    family = FAMILIES.get(name) or _IN_PRICE_MAP.get(name, name)
    return family if family in CHECKS else "openai"
