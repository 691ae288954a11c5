"""Anthropic's rules for a request, checked on its OpenAI-shaped form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nca.context.rules.ids import SAFE
from nca.context.validate.openai import call_problems, conversation, has_media, late_system, pairs, text_of


def check(messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]) -> list[str]:
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
            if not SAFE.fullmatch(str(call.get("id", ""))):
                problems.append(f"conversation message {index}: the call id {call.get('id')!r} has other characters")
        is_block = bool(message.get("provider_specific_fields"))
        if not calls and not text_of(message).strip() and not has_media(message) and not is_block:
            problems.append(f"conversation message {index}: the text is empty")
        problems += [
            f"conversation message {index}: an empty text part"
            for part in (message.get("content") if isinstance(message.get("content"), list) else None) or ()
            if isinstance(part, Mapping) and part.get("type") == "text" and not str(part.get("text", "")).strip()
        ]
    return problems
