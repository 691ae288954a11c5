"""Sessions to measure on: a real transcript where a folder is given, and generated ones of any length."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nca.context.history import History
from nca.messages import Entry, Message, ToolCall
from nca.wire import message_from_dict

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


def rows_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def history_of(rows: list[dict[str, Any]]) -> History:
    messages = [message_from_dict(row) for row in rows if not row["role"].startswith("_")]
    return History(Entry(seq, message) for seq, message in enumerate(messages, 1))


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
