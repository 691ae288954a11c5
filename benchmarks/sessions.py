"""Generate short sessions of any length to measure growth. `material` has those that compactions are compared on."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator

from nca.messages import Message, ToolCall

WORDS = [
    "the",
    "a",
    "request",
    "view",
    "log",
    "budget",
    "window",
    "message",
    "result",
    "file",
    "path",
    "error",
    "test",
    "module",
    "function",
    "returns",
    "value",
    "because",
    "when",
    "after",
    "before",
    "must",
    "never",
    "always",
    "check",
    "write",
    "read",
    "line",
    "number",
    "tokens",
    "summary",
    "turn",
]


def generated(length: int, seed: int = 7) -> list[Message]:
    """A session of `length` messages: turns of a question, two steps with a result each, and an answer."""
    chance = random.Random(seed)
    messages: list[Message] = [Message("system", "You are a careful assistant.")]
    for turn in _turns(chance):
        messages += turn
        if len(messages) >= length:
            return messages[:length]
    raise AssertionError("the turns never end")


def _turns(chance: random.Random) -> Iterator[list[Message]]:
    number = 0
    while True:
        number += 1
        turn = [Message("user", _prose(chance, 30))]
        for step in range(2):
            call = ToolCall(f"call_{number}_{step}", "read_file", json.dumps({"path": f"src/part_{number % 40}.py"}))
            turn.append(Message("assistant", None, (call,)))
            turn.append(Message("tool", _prose(chance, 180), tool_call_id=call.id, name="read_file"))
        turn.append(Message("assistant", _prose(chance, 80)))
        yield turn


def _prose(chance: random.Random, words: int) -> str:
    return " ".join(chance.choices(WORDS, k=words))
