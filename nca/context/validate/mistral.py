"""Mistral's rules for a request, checked on its OpenAI-shaped form.

Mistral requires ids of exactly nine characters. `nca.context.request` makes them; this check accepts any id that can be
mapped to one, so that a request can be checked before its provider is known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nca.context.validate.openai import call_problems, conversation, late_system, pairs, text_of


def check(messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]) -> list[str]:
    problems = [*pairs(messages), *late_system(messages)]
    talk = conversation(messages)
    for index, message in enumerate(talk, 1):
        place = f"conversation message {index}"
        role, before = message.get("role"), talk[index - 2].get("role") if index > 1 else ""
        if role == "user" and before == "tool":
            problems.append(f"{place}: a user message directly behind a tool message (code 3230)")
        if role == "tool" and before not in ("assistant", "tool"):
            problems.append(f"{place}: a tool message behind {before or 'nothing'}")
        if role == "assistant" and not message.get("tool_calls") and not text_of(message).strip():
            problems.append(f"{place}: an assistant message with neither content nor tool calls")
        problems += [f"{place}: {p}" for call in message.get("tool_calls") or () for p in call_problems(call)]
    return problems
