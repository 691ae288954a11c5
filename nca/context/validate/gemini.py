"""Gemini's rules for a request, checked on its OpenAI-shaped form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nca.context.validate.openai import call_problems, conversation, has_media, late_system, pairs, text_of


def check(messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]) -> list[str]:
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
