"""The section on how cost grows with the length of a session and with the number of sessions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks.recording import FILES
from benchmarks.summed import seconds, table

Figures = Mapping[str, Any]
PICTURES = ("growth-time.svg", "growth-bytes.svg", "growth-sessions.svg")
KILOBYTE = 1024


def grown(figures: Figures) -> Iterator[str]:
    """Lines of Markdown; none if growth was not measured."""
    found = figures.get("growth")
    if not found:
        return
    yield "## How cost grows"
    yield (
        "nca alone: a store on disk, the real conversation, and a scripted model whose window is full after a hundred"
        " messages. Each length runs in its own process."
    )
    yield (
        "- *Turn*: message in, check, request, a file written and recorded for rewind, request, answer in, all of it"
        " durable. *Mean*: including compactions."
    )
    yield "- *Resume*: from the closed store to the prompt. *Search*: time, and of it the processor's."
    yield "- *Memory*: the additional memory of the process."
    yield from _by_length(found["lengths"])
    yield "By the number of sessions in one store, with four messages each:"
    yield from _by_count(found["counts"])
    yield from _recording(found.get("recording") or {})
    for name in PICTURES:
        yield f"![{name.removesuffix('.svg').replace('-', ' ')}](pictures/{name})"


def _by_length(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    names = ("turn", "turn_mean", "check", "resume")
    lines = [
        (
            f"{row['messages']:,}",
            *(seconds(row[name]) for name in names),
            seconds(row["search"]) + (f" ({seconds(row['search_cpu'])})" if "search_cpu" in row else ""),
            f"{row['database_bytes'] / row['messages'] / KILOBYTE:.1f} KB per message",
            f"{row['resident_bytes'] / KILOBYTE**2:.0f} MB",
        )
        for row in rows
    ]
    yield table(("messages", "turn", "mean", "check", "resume", "search", "database", "memory"), lines)


def _by_count(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    names = ("open_store", "list", "latest", "find", "search", "expire")
    lines = [(f"{row['sessions']:,}", *(seconds(row[name]) for name in names)) for row in rows]
    yield table(("sessions", "open", "list", "--continue", "by id", "search", "expiry"), lines)


def _recording(found: Mapping[str, Sequence[float]]) -> Iterator[str]:
    """What the record of files costs a command of the shell, which may change any file."""
    if not found:
        return
    yield f"What the record for rewind adds to a command in a workspace of {FILES:,} files:"
    lines = [(what, *(seconds(value / 1_000) for value in pair)) for what, pair in found.items()]
    yield table(("", "time", "of the processor"), lines)
