"""The section on time: compactions from dicts to dicts, and what a program takes that has the messages already."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks.summed import label_of, seconds, table

Row = dict[str, Any]
Figures = Mapping[str, Any]
MEGABYTE = 1024 * 1024
WHAT_IT_DOES = (
    "*nca* checks every message, counts it, makes the view from the log (words, answers, calls, changes, names), and"
    " checks the result; *stages 1, 2, 4* is the same without the summary.",
    "*NeuroLink* counts characters, shortens results and drops the oldest messages; it neither checks messages nor"
    " looks for what should stay, and may stop above its target.",
    "*langchain*, *strands* and *deepagents* count characters and drop or summarize the oldest messages; *deepagents*"
    " also writes what goes to a file.",
    "*OpenAI Agents*: the limit writes all messages to SQLite and reads the newest back; the trimmer shortens old"
    " results and has no target.",
    "*litellm*, *aider* and *gptme* count with a real tokenizer; *pydantic-ai-harness* clears results before it drops"
    " or summarizes.",
    "*With a summary*: a script answers at no cost where a model would take seconds.",
)


def timed(figures: Figures) -> Iterator[str]:
    """Lines of Markdown, without the pictures."""
    rows = figures["times"]
    lengths = sorted({row["messages"] for row in rows})
    yield "## Time"
    yield "### From dicts to dicts"
    yield (
        "Each program gets messages as dicts that it has never seen, and gives dicts back; nca by `nca.compact`."
        " *First*: the first thing that a new process does, so nothing is cached or compiled. *Again*: the median of"
        " all calls, each with messages that are read anew. In brackets: the size of the result, by the program's own"
        " count, as a share of the target."
    )
    yield from _table(rows, lengths, {"first": "cold_seconds", "again": "from_dicts_seconds"}, sized="cold_seconds")
    yield from (f"- {line}" for line in WHAT_IT_DOES)
    yield "### In a session"
    yield (
        "The messages have the program's own form already. A check runs before every request. *nca, in a session* has"
        " counted each message when it arrived, as in its chat; the others keep nothing between two calls."
    )
    yield from _table(rows, lengths, {"check": "check_seconds", "compaction": "seconds"}, sized="seconds")
    for row in rows:
        if "error" in row:
            yield f"- {label_of(row)} at {row['messages']:,}: {row['error']}."
    yield from _peaks(rows, lengths[-1] if lengths else 0)


def _table(rows: Sequence[Row], lengths: Sequence[int], columns: Mapping[str, str], *, sized: str) -> Iterator[str]:
    """A row for each program with any of these figures, and a column for each figure and length."""
    groups: dict[str, dict[int, Row]] = {}
    for row in rows:
        groups.setdefault(label_of(row), {})[row["messages"]] = row
    head = ("", *(f"{name}, {length:,}" for name in columns for length in lengths))
    lines = [
        (label, *(_cell(of.get(length, {}), name, name == sized) for name in columns.values() for length in lengths))
        for label, of in groups.items()
        if any(name in row for row in of.values() for name in columns.values())
    ]
    if lines:
        yield table(head, lines)


def _cell(row: Row, name: str, has_size: bool) -> str:
    if name not in row:
        return "–"
    left = f" ({row['of_target']:.2f})" if has_size and "of_target" in row else ""
    return f"{seconds(row[name])}{left}"


def _peaks(rows: Sequence[Row], longest: int) -> Iterator[str]:
    peaks = [
        (label_of(row), f"{row['peak_bytes'] / MEGABYTE:,.0f} MB")
        for row in rows
        if row["messages"] == longest and "peak_bytes" in row
    ]
    if peaks:
        yield f"Peak memory of the whole process at {longest:,} messages, including the messages."
        yield table(("", "peak"), peaks)
