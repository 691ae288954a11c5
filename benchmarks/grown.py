"""The page's section on how cost grows with a session's length and with the number of sessions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks.summed import seconds, table

Figures = Mapping[str, Any]
PICTURES = ("growth-time.svg", "growth-bytes.svg", "growth-sessions.svg")
KILOBYTE = 1024


def grown(figures: Figures) -> Iterator[str]:
    """Lines of Markdown; none where growth was not measured."""
    found = figures.get("growth")
    if not found:
        return
    yield "## How cost grows"
    yield ""
    yield (
        "nca alone: a store on disk, the real conversation, a model that answers from a script in a window that a"
        " hundred messages fill; each length in a process of its own. *Turn*: message in, check, request, answer in,"
        " all of it durable; *mean*: with the compactions that fall due. *Resume*: from the closed store to the"
        " prompt. *Memory*: what the process holds more for it."
    )
    yield ""
    yield from _by_length(found["lengths"])
    yield ""
    yield "By the number of sessions in one store, four messages each:"
    yield ""
    yield from _by_count(found["counts"])
    yield ""
    for name in PICTURES:
        yield f"![{name.removesuffix('.svg').replace('-', ' ')}](pictures/{name})"
        yield ""


def _by_length(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    names = ("turn", "turn_mean", "check", "resume", "search")
    lines = [
        (
            f"{row['messages']:,}",
            *(seconds(row[name]) for name in names),
            f"{row['database_bytes'] / row['messages'] / KILOBYTE:.1f} KB a message",
            f"{row['resident_bytes'] / KILOBYTE**2:.0f} MB",
        )
        for row in rows
    ]
    yield from table(("messages", "turn", "mean", "check", "resume", "search", "database", "memory"), lines)


def _by_count(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    names = ("open_store", "list", "latest", "find", "search", "expire")
    lines = [(f"{row['sessions']:,}", *(seconds(row[name]) for name in names)) for row in rows]
    yield from table(("sessions", "open", "list", "--continue", "by id", "search", "tidying up"), lines)
