"""The example of docs/context.md: a session by code, compacted for four windows, and what of it is left."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import nca

PAGE = Path(__file__).parent.parent / "docs" / "context.md"
TURNS, READS, LOG_LINES, STEPS = 20, 4, 200, 8
LOG_TURN, PLAN_TURN = 6, 8
SIZE = "93,000"
WORDS = (
    "parser invoice ledger column report branch filter handler number before after every should reads writes keeps"
    " checks empty result folder total because order"
)


def _prose(chance: random.Random, count: int) -> str:
    words = chance.choices(WORDS.split(), k=count)
    return " ".join(word.title() + "." * (place % 12 == 11) for place, word in enumerate(words)) + "."


def _call(name: str, number: str, result: str, **arguments: str) -> list[dict[str, Any]]:
    call = {"id": number, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": number, "content": result},
    ]


def session() -> tuple[list[dict[str, Any]], list[str], list[str], list[str]]:
    """The messages, and of each turn what was typed and answered; at last the lines of the pasted log."""
    chance = random.Random(7)
    log = [f"12:{n // 60:02}:{n % 60:02} INFO request {n} took {chance.randint(3, 90)} ms" for n in range(LOG_LINES)]
    log[120] = "12:02:00 FATAL the disk of node 7 is full"
    messages: list[dict[str, Any]] = []
    typed, answers = [], []
    for turn in range(TURNS):
        typed.append(_prose(chance, 80))
        pasted = "\n\n" + "\n".join(log) if turn == LOG_TURN else ""
        messages.append({"role": "user", "content": typed[-1] + pasted})
        for read in range(READS):
            lines = [f"    {_prose(chance, 6)[:-1].lower()} = {chance.randint(100, 999)}" for _ in range(90)]
            path = f"src/part{turn:02}/file{read}.py"
            messages += _call("read_file", f"r{turn}-{read}", "\n".join(lines), path=path)
        path = f"src/part{turn:02}/changed.py"
        messages += _call(
            "edit_file",
            f"e{turn}",
            f"Edited {path}.",
            path=path,
            old_text=_prose(chance, 90),
            new_text=_prose(chance, 90),
        )
        messages += _call(
            "bash", f"b{turn}", f"{turn + 3} passed in 0.4 s", command=f"pytest tests/test_part{turn:02}.py"
        )
        steps = "\n".join(f"{step}. Step {step} of the plan: {_prose(chance, 5)}" for step in range(1, STEPS + 1))
        answers.append(steps if turn == PLAN_TURN else _prose(chance, 70))
        messages.append({"role": "assistant", "content": answers[-1]})
    return messages, typed, answers, log


def left(window_tokens: int) -> list[str]:
    """A column of the table: what `nca.compact` leaves in this window."""
    messages, typed, answers, log = session()
    result = nca.compact(messages, context_window=window_tokens)
    text = "\n".join(json.dumps(message, ensure_ascii=False) for message in result.messages)
    text = text.replace("\\n", "\n")
    files = {m["tool_call_id"]: m["content"] for m in messages if m["role"] == "tool" and "-" in m["tool_call_id"]}
    named = [f"src/part{turn:02}/file{read}.py" for turn in range(TURNS) for read in range(READS)]
    changed = [f"src/part{turn:02}/changed.py" for turn in range(TURNS)]
    shown = [typed, log, answers, answers[PLAN_TURN].split("\n"), changed, named, list(files.values())]
    return [f"{result.target_tokens:,}", *(str(sum(one in text for one in of)) for of in shown)]


def test_the_table_says_what_is_left() -> None:
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    head = next(place for place, line in enumerate(lines) if line.startswith("| window (target)"))
    table = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in (lines[head], *lines[head + 2 : head + 10])
    ]
    _, *windows = table[0]
    rows = [row for row in table[1:] if row[0] != "how"]
    assert f"{SIZE} tokens" in "\n".join(lines)
    for place, cell in enumerate(windows, 1):
        window, _, target = cell.partition(" ")
        expected = [target.strip("()"), *(row[place].replace(";", ",").split(",")[0] for row in rows)]
        assert left(int(window.replace(",", ""))) == expected
