"""Write docs/benchmarks.md from the JSON of a run: all figures, pictures, and where nca is not ahead."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from benchmarks.bars import bars
from benchmarks.behind import behind
from benchmarks.closed_book import closed_book, in_short
from benchmarks.crossed import crossed
from benchmarks.effects import told_table
from benchmarks.goals import goals
from benchmarks.grown import grown
from benchmarks.headline import README_HEAD, headline, kept_to_budget, met_first, readme_rows
from benchmarks.next_steps import by_variant, next_steps, short_table, summed
from benchmarks.probes import probed
from benchmarks.public import public
from benchmarks.sections import SECTIONS
from benchmarks.summed import label_of, seconds, share, table, totals

Row = dict[str, Any]
Figures = Mapping[str, Any]
FIRST_PAGE_WINDOW, MOST_BEHIND, MOST_NAMED = 64_000, 8, 2
NO_PARTS = ("date", "renewed", "command", "machine", "peers", "settings", "probes", "closed_book")
"""What describes a run, and what has a command of its own."""


def page(figures: Figures) -> str:
    """docs/benchmarks.md, in two screens; `details` has all else."""
    parts = [*_opening(figures), *_first_contact(figures), *_next_steps(figures), *in_short(figures)]
    parts += [*_behind(figures), *_repeat(figures)]
    return "\n".join(parts).rstrip() + "\n"


def details(figures: Figures) -> str:
    """docs/benchmarks-details.md."""
    parts: list[str] = [*_head(figures), *headline(figures), *next_steps(figures), *told_table(figures)]
    parts += [*closed_book(figures), *probed(figures), *_all_behind(figures)]
    for section in (goals, *SECTIONS, public, crossed, grown):
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
    if new := met_first(figures):
        shares = [(one.name, one.by["person"][0]) for one in kept_to_budget(new) if one.by]
        made["bench-first-contact.svg"] = bars(
            "What the person said, readable in each request of new sessions",
            [(name, value, f"{100 * value:.0f}%") for name, value in shares],
        )
    rows = [row for row in figures.get("next_steps") or () if row["window_tokens"] == FIRST_PAGE_WINDOW]
    if rows:
        alone = [row for row in rows if not row["has_model"]]
        named = ((label, summed(of, "names", "calls") or 0.0) for label, of in by_variant(alone).items())
        made["bench-next-steps.svg"] = bars(
            "Names in the agent's next calls that can be read, at 64,000 tokens",
            [(name, value, f"{100 * value:.0f}%") for name, value in named],
        )
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


def _opening(figures: Figures) -> Iterator[str]:
    yield "# Benchmarks"
    yield ""
    yield (
        f"Made by `make bench` on {figures['date']}.{_renewed(figures)} Each program (versions:"
        " [details](benchmarks-details.md)) runs in its own environment and gets the same sessions, windows and"
        " targets. All figures are in `docs/benchmarks.json`."
    )
    yield ""


def _first_contact(figures: Figures) -> Iterator[str]:
    rows = met_first(figures)
    if not rows:
        return
    names = list(dict.fromkeys(row["session"] for row in rows))
    yield "## First contact"
    yield ""
    yield (
        f"{len(names)} sessions that nca had not met before ({', '.join(names)}): played by hand for this release, and"
        f" marked before anything was changed for them.{_since(figures)} Of what was said so far and still matters, how"
        " much can be read in each request, in windows of 8,000, 12,000 and 24,000 tokens? Shown are those whose"
        " requests keep to the budget three times in four; *with a summary* means that a model is asked, for which a"
        " script answers here."
    )
    yield ""
    yield from table(README_HEAD, readme_rows(figures))
    yield ""
    yield "![what each request still says](pictures/bench-first-contact.svg)"
    yield ""


def _since(figures: Figures) -> str:
    since = figures["settings"]["first_contact"]["since"]
    return f" {since}" if since else ""


def _next_steps(figures: Figures) -> Iterator[str]:
    rows = figures.get("next_steps")
    if rows:
        yield "## The next steps"
        yield ""
        yield (
            "A session is compacted in its middle. Of the names, paths, numbers and ids that the agent uses in its next"
            " 40 messages and that came up before, how many can be read? Window of 64,000 tokens, everybody with the"
            " same target; *newest alone*: as many of the newest messages as are as large (in calls · in prose);"
            " *fetched again*: of the results that its next 20 calls fetch again, how many the view lacked."
        )
        yield ""
        yield from short_table(figures, FIRST_PAGE_WINDOW)
        yield ""
        yield "![what of the next steps can be read](pictures/bench-next-steps.svg)"
        yield ""
    told = [row for row in figures.get("effects") or () if label_of(row) == "nca"]
    if told:
        shares = ", ".join(f"{row['told'][0]} at {row['window_tokens'] // 1_000}k" for row in told)
        yield (
            f"Of {told[0]['told'][1]} bookings and cancellations of a day at an airline's desk nca can tell {shares}"
            " ([others](benchmarks-details.md#what-was-changed-elsewhere))."
        )
        yield ""


def _repeat(figures: Figures) -> Iterator[str]:
    yield "## Repeat it"
    yield ""
    yield (
        f"`{figures.get('command', 'make bench')}` repeats everything, `make bench-quick` nca's own part in some"
        " three minutes; it fails where a figure is worse than here by more than 2%. [Playing a session](playing.md)"
        " says how to add one of your own. [The details](benchmarks-details.md) have every table, real sessions, times"
        " and what is not measured independently."
    )
    yield ""
    yield "![exact facts kept after a compaction](pictures/bench-facts.svg)"
    yield ""
    yield "![the user's own turns kept](pictures/bench-words.svg)"
    yield ""


def _head(figures: Figures) -> Iterator[str]:
    machine = figures["machine"]
    parts = [name for name, found in figures.items() if found and name not in NO_PARTS]
    yield "# Benchmarks in detail"
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
        f"{_renewed(figures)}"
    )
    yield ""
    yield from table(("", "version"), [(name, _version(one)) for name, one in figures["peers"].items()])
    yield ""


def _version(peer: Row) -> str:
    earlier = f" ({peer['earlier']} in what was not measured again)" if "earlier" in peer else ""
    return f"{peer['version']}{earlier}" if peer["version"] else f"not measured: {peer['reason']}"


def _renewed(figures: Figures) -> str:
    """Which parts were measured again since."""
    dates = sorted(set(figures.get("renewed", {}).values()))
    again = (f"{', '.join(part for part, on in figures['renewed'].items() if on == day)} on {day}" for day in dates)
    return f" Measured again: {'; '.join(again)}." if dates else ""


def _behind(figures: Figures) -> Iterator[str]:
    yield "## Where nca is not ahead"
    yield ""
    lines = list(behind(figures, MOST_NAMED))
    yield from (f"- {_shorter(line)}" for line in lines[:MOST_BEHIND])
    if not lines:
        yield "nca is ahead or level in every row of this run."
    elif len(lines) > MOST_BEHIND:
        more = f"… and {len(lines) - MOST_BEHIND} more, each with why"
        yield f"- {more}: [all](benchmarks-details.md#where-nca-is-not-ahead)."
    yield ""


def _shorter(line: str) -> str:
    return line.partition(" Why: ")[0]


def _all_behind(figures: Figures) -> Iterator[str]:
    yield "## Where nca is not ahead"
    yield ""
    yield from (f"- {line}" for line in behind(figures))
    yield ""
