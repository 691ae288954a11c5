"""What an agent changed elsewhere: after a compaction, can it tell?

Customer-service conversations, one behind the other as on a day at a desk. Their calls book, cancel and change
reservations at an airline. In what each program keeps, a change can be told where one line has both the action and what
it was done to.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.asking import ask, packed
from benchmarks.comparison import SUMMARY, VARIANTS, Variant, limits, named, rows_of
from benchmarks.environments import Environment
from benchmarks.mending import mended
from benchmarks.peers.side import calls_of
from benchmarks.summed import label_of, table

Row = dict[str, Any]
FILE = "airline-support.jsonl"
WINDOWS = (16_000, 32_000, 64_000, 128_000)
ACTIONS = ("book_", "cancel_", "update_", "send_")
"""How the calls begin that change something at this airline."""
KEYS = ("reservation_id", "user_id")
"""What a change is done to: the first of these that the call gives."""
Effect = tuple[str, str]
"""The action, and what it was done to."""


def a_day(folder: Path) -> list[Row]:
    """The conversations of the file behind one system prompt; none where it is not there."""
    talks = [row["messages"] for row in rows_of(folder / FILE)] if (folder / FILE).is_file() else []
    system = [row for row in talks[0] if row["role"] == "system"] if talks else []
    return mended([*system, *(row for talk in talks for row in talk if row["role"] != "system")])


def effects(rows: Sequence[Row]) -> Counter[Effect]:
    """The changes that were made, each as often as it was; a call that failed made none."""
    results = {row["tool_call_id"]: str(row.get("content")) for row in rows if row["role"] == "tool"}
    found: Counter[Effect] = Counter()
    for call in (call for row in rows for call in calls_of(row)):
        name, given = call["function"]["name"], json.loads(call["function"]["arguments"] or "{}")
        key = next((str(given[one]) for one in KEYS if one in given), "")
        if name.startswith(ACTIONS) and key and not results.get(call["id"], "Error").startswith("Error"):
            found[name, key] += 1
    return found


def told(wanted: Counter[Effect], rows: Sequence[Row]) -> int:
    """How many of these can be told from what these messages say."""
    lines = [line for row in rows for line in _lines(row)]
    return sum(min(count, sum(name in line and key in line for line in lines)) for (name, key), count in wanted.items())


def _lines(row: Row) -> Iterator[str]:
    content = row.get("content") or ""
    text = content if isinstance(content, str) else "\n".join(str(part.get("text", "")) for part in content)
    yield from text.splitlines()
    yield from (f"{call['function']['name']} {call['function']['arguments']}" for call in calls_of(row))


def measured(
    environments: Mapping[str, Environment], folder: Path, scratch: Path, variants: Sequence[Variant] = VARIANTS
) -> Iterator[Row]:
    """A row for each variant and window: how many changes can be told, of how many."""
    rows = a_day(folder)
    wanted = effects(rows)
    cases = [{"file": str(packed(rows, scratch / "day.json")), "summary": SUMMARY, **limits(one)} for one in WINDOWS]
    for variant in variants:
        if not environments[variant.peer].is_ready or not wanted:
            continue
        answers = ask(environments[variant.peer], {"op": "compact", "variant": variant.name}, cases)
        for window, answer in zip(WINDOWS, answers, strict=True):
            failed = {"error": answer["error"]} if "error" in answer else {}
            kept = 0 if failed else told(wanted, answer["messages"])
            yield {**named(variant), "window_tokens": window, "told": [kept, wanted.total()], **failed}


def told_table(figures: Mapping[str, Any]) -> Iterator[str]:
    """The page's section; nothing where it was not measured."""
    rows = figures.get("effects")
    if not rows:
        return
    yield "## What was changed elsewhere"
    yield (
        f"40 conversations of an airline's desk (tau-bench) in a row, with {rows[0]['told'][1]} bookings, cancellations"
        " and changes, compacted at the end to half of the budget. A change can be told where one line has the action"
        " and the reservation or the person."
    )
    windows = sorted({row["window_tokens"] for row in rows})
    shares: dict[str, dict[int, str]] = {}
    for row in rows:
        shares.setdefault(label_of(row), {})[row["window_tokens"]] = (
            f"{row['told'][0]}{' (failed)' if 'error' in row else ''}"
        )
    head = ("", *(f"at {window // 1_000}k" for window in windows))
    yield table(head, [(label, *(of[window] for window in windows)) for label, of in shares.items()])
