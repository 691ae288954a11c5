"""Write docs/benchmarks.md from the JSON of a run: all figures, pictures, and where nca is not ahead."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from benchmarks.bars import bars
from benchmarks.behind import behind
from benchmarks.goals import goals
from benchmarks.grown import grown
from benchmarks.headline import headline
from benchmarks.probes import probed
from benchmarks.public import public
from benchmarks.sections import SECTIONS
from benchmarks.summed import seconds, share, table, totals
from benchmarks.timed import label_of

Row = dict[str, Any]
Figures = Mapping[str, Any]
NO_PARTS = ("date", "command", "machine", "peers", "settings", "probes")
"""What describes a run, and what has a command of its own."""


def page(figures: Figures) -> str:
    parts: list[str] = [*_head(figures), *headline(figures), *probed(figures), *_behind(figures)]
    for section in (goals, *SECTIONS, public, grown):
        parts += section(figures)
    return "\n".join(parts).rstrip() + "\n"


def pictures(figures: Figures) -> dict[str, str]:
    """Name and text of each picture."""
    found = totals(figures["compactions"])
    made = {
        "bench-facts.svg": bars(
            "Exact facts kept after a compaction",
            [(one.name, _ratio(one.facts), share(one.facts)) for one in found if one.facts[1]],
        ),
        "bench-words.svg": bars(
            "The user's own turns kept word for word",
            [(one.name, _ratio(one.words), share(one.words)) for one in found if one.words[1]],
        ),
    }
    length = max((row["messages"] for row in figures["times"]), default=0)
    for messages in sorted({row["messages"] for row in figures["times"]}):
        timed = [row for row in figures["times"] if row["messages"] == messages and "cold_seconds" in row]
        if timed:
            rows = [(label_of(row), row["cold_seconds"], seconds(row["cold_seconds"])) for row in timed]
            made[f"bench-time-{messages}.svg"] = bars(f"The first compaction of {messages:,} dicts", rows, is_log=True)
    checks = [row for row in figures["times"] if row["messages"] == length and row.get("check_seconds")]
    if checks:
        rows = [(label_of(row), row["check_seconds"], seconds(row["check_seconds"])) for row in checks]
        made["bench-check.svg"] = bars(f"A check of {length:,} messages", rows, is_log=True)
    return made


def _ratio(pair: tuple[int, int]) -> float:
    return pair[0] / pair[1] if pair[1] else 0.0


def _head(figures: Figures) -> Iterator[str]:
    machine = figures["machine"]
    parts = [name for name, found in figures.items() if found and name not in NO_PARTS]
    yield "# Benchmarks"
    yield ""
    yield (
        "Made by `make bench`. The code is in `benchmarks/`, all figures of this run are in `docs/benchmarks.json`."
        " Each program runs in its own environment, is called directly through a small adapter (`benchmarks/peers/`),"
        " and gets the same sessions, windows and targets. Only its own work is timed: neither its start nor reading"
        " the file. Times are medians of one run on one machine, so compare ratios rather than absolute times."
        f" `python -m benchmarks --only PART` repeats one part: {', '.join(parts)}."
    )
    yield ""
    yield (
        f"Run on {figures['date']} by `{figures.get('command', 'make bench')}`: {machine['cores']} cores"
        f" ({machine['processor']}), {machine['memory_bytes'] / 1024**3:.0f} GB,"
        f" {machine['system']}, Python {machine['python']}{', Node ' + machine['node'] if machine['node'] else ''}."
    )
    yield ""
    versions = [(name, one["version"] or f"not measured: {one['reason']}") for name, one in figures["peers"].items()]
    yield from table(("", "version"), versions)
    yield ""


def _behind(figures: Figures) -> Iterator[str]:
    yield "## Where nca is not ahead"
    yield ""
    lines = list(behind(figures))
    yield from (f"- {line}" for line in lines)
    if not lines:
        yield "nca is ahead or level in every row of this run."
    yield ""
