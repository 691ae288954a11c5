"""Write docs/benchmarks.md from the JSON of a run: all figures, pictures, and where nca is not ahead."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks.bars import bars
from benchmarks.behind import MEETS_TARGETS, behind
from benchmarks.behind import in_short as behind_in_short
from benchmarks.crossed import crossed
from benchmarks.effects import told_table
from benchmarks.goals import goals
from benchmarks.grown import grown
from benchmarks.headline import README_HEAD, headline, kept_to_budget, met_first, readme_rows
from benchmarks.next_steps import ahead as fetched_again_ahead
from benchmarks.next_steps import best, next_steps, short_table, summed
from benchmarks.public import public
from benchmarks.sections import SECTIONS
from benchmarks.small_model import closed_book, closed_book_in_short, probed
from benchmarks.summed import Total, label_of, page_text, seconds, share, table, totals

Row = dict[str, Any]
Figures = Mapping[str, Any]
FIRST_PAGE_WINDOW, MOST_BARS = 64_000, 8
NO_PARTS = ("date", "renewed", "command", "machine", "peers", "settings", "probes", "closed_book")
"""What describes a run, and what has a command of its own."""


def page(figures: Figures) -> str:
    """docs/benchmarks.md, in two screens; `details` has all else."""
    parts = [*_opening(figures), *_first_contact(figures), *_next_steps(figures), *closed_book_in_short(figures)]
    parts += [*_compacted_once(figures), *_behind(figures), *_repeat(figures)]
    return page_text(parts)


def details(figures: Figures) -> str:
    """docs/benchmarks-details.md."""
    parts: list[str] = [*_head(figures), *headline(figures), *next_steps(figures), *told_table(figures)]
    parts += [*closed_book(figures), *probed(figures), *_all_behind(figures)]
    for section in (goals, *SECTIONS, public, crossed, grown):
        parts += section(figures)
    return page_text(parts)


def pictures(figures: Figures) -> dict[str, str]:
    """Name and text of each picture."""
    found = totals(figures["compactions"])
    made = {
        "bench-facts.svg": bars(
            "Exact facts kept after a compaction",
            [(one.name, _ratio(one.facts), share(one.facts)) for one in _best(found, "facts")],
        ),
        "bench-words.svg": bars(
            "The user's own turns kept word for word",
            [(one.name, _ratio(one.words), share(one.words)) for one in _best(found, "words")],
        ),
    }
    if new := met_first(figures):
        shares = [(one.name, one.by["person"][0]) for one in kept_to_budget(new) if one.by]
        made["bench-first-contact.svg"] = bars(
            "What the person said, readable in each request of new sessions",
            [(name, value, f"{100 * value:.0f}%") for name, value in shares],
        )
    if steps := best(figures, FIRST_PAGE_WINDOW):
        named = ((label, summed(of, "names", "calls") or 0.0) for label, of in steps.items())
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


def _best(found: Sequence[Total], kind: str) -> list[Total]:
    """nca, and the best of those who meet their targets, of those that have such a pair."""
    having = [one for one in found if getattr(one, kind)[1]]
    own = sorted((one for one in having if one.label == "nca"), key=lambda one: one.has_model)
    others = [one for one in having if not one.label.startswith("nca") and _ratio(one.met) >= MEETS_TARGETS]
    others.sort(key=lambda one: _ratio(getattr(one, kind)), reverse=True)
    return [*own, *others][:MOST_BARS]


def _ratio(pair: tuple[int, int]) -> float:
    return pair[0] / pair[1] if pair[1] else 0.0


def _opening(figures: Figures) -> Iterator[str]:
    dates = sorted({figures["date"], *figures.get("renewed", {}).values()})
    yield "# Benchmarks"
    yield (
        "What can a model still read after a compaction? nca and the programs that do the same get the"
        " same sessions, windows and targets. Only the closed book asks a model. Measured"
        f" {'on' if len(dates) == 1 else 'from ' + dates[0] + ' to'} {dates[-1]}."
        " [The details](benchmarks-details.md) have the versions, all programs and tables, real sessions, times, and"
        " how each figure is counted."
    )


def _first_contact(figures: Figures) -> Iterator[str]:
    rows = met_first(figures)
    if not rows:
        return
    sessions = len({row["session"] for row in rows})
    yield "## First contact"
    yield (
        f"{sessions} sessions of this release were new to nca: they were played by hand, and their facts marked,"
        " before the measurement. How many of the facts said so far can be read in each request, in windows of"
        " 8,000, 12,000 and 24,000 tokens? nca's figures come from the first contact, before anything was changed"
        f" for a session. [The details](benchmarks-details.md#what-each-request-still-says) {_since(figures)}list"
        " the sessions of nca's development separately."
    )
    yield table(README_HEAD, readme_rows(figures))
    yield (
        "*Over the budget*: the budget is the window less 35% for the answer, counted in cl100k"
        " and, after the dot, in o200k, in which nca counts if no model is named. The two differ most for"
        " text in other than Latin letters. Programs above it in more than a quarter of the requests (o200k) are only"
        " in the details. *Over the window*: in cl100k. *Valid*: OpenAI, Anthropic, Gemini and Mistral would accept the"
        " request. *Cost*: with a prefix cache, as a share of sending everything each time. *With a summary*: a script"
        f" writes the summary, without facts, in place of a model.{_of_codex(rows)}"
    )
    yield "![what each request still says](pictures/bench-first-contact.svg)"


def _of_codex(rows: Sequence[dict[str, Any]]) -> str:
    """Why it has as much of the person's words as nca."""
    is_shown = any(one.name.startswith("Codex") for one in kept_to_budget(rows))
    return " Codex's rule keeps the person's messages and a summary, but no answer or result." if is_shown else ""


def _since(figures: Figures) -> str:
    return "say what has changed since, and " if figures["settings"]["first_contact"]["since"] else ""


def _compacted_once(figures: Figures) -> Iterator[str]:
    yield "## One compaction"
    yield (
        f"{figures['settings']['sessions']} sessions, generated and real, are compacted once, to half of the budget."
        " What stays word for word? The charts show the programs that meet the target at least three times in four"
        " ([all](benchmarks-details.md#what-is-left-after-one-compaction))."
    )
    yield "![exact facts kept after a compaction](pictures/bench-facts.svg)"
    yield "![the user's own turns kept](pictures/bench-words.svg)"


def _next_steps(figures: Figures) -> Iterator[str]:
    if figures.get("next_steps"):
        yield "## The next steps"
        yield (
            "A session is compacted in its middle, in a window of 64,000 tokens. The agent uses earlier names, paths,"
            " numbers and ids in its next 40 messages: how many of these can still be read?"
        )
        yield from short_table(figures, FIRST_PAGE_WINDOW)
        yield "![what of the next steps can be read](pictures/bench-next-steps.svg)"
        yield (
            "*Newest alone*: the same shares, in calls · in prose, if only the newest messages are kept, at the size of"
            " what the program kept. *Fetched again*: how many of the results that the agent's next 20 calls fetch"
            f" again the view lacked; fewer is better.{_not_first(figures)}"
        )
    told = [row for row in figures.get("effects") or () if label_of(row) == "nca"]
    if told:
        shares = ", ".join(f"{row['told'][0]} at {row['window_tokens'] // 1_000}k" for row in told)
        yield (
            f"Of {told[0]['told'][1]} bookings and cancellations of a day at an airline's desk, nca still lists"
            f" {shares} ([others](benchmarks-details.md#what-was-changed-elsewhere)). In a small window, the words of"
            " the 40 people come first, which leaves a tenth of the room for the bookings."
        )


def _not_first(figures: Figures) -> str:
    """Why nca lacks more of what is fetched again; "" where it does not."""
    if not any(fetched_again_ahead(figures)):
        return ""
    return (
        " nca is not first here: these are mostly parts of files, which the agent can read again, and nca gives"
        " their room to the person's words, names and the work done."
    )


def _repeat(figures: Figures) -> Iterator[str]:
    yield "## Repeat it"
    yield (
        "`make bench-quick` measures nca again, in some four minutes of one core, and fails if a figure is more"
        " than 2% worse than here. `make bench` installs the other programs under `.bench/`, measures everything, and"
        ' writes this page; `make bench BENCH="--only headline"` does so for one part. The sessions of first'
        " contact are in `tests/data/sessions`, all figures in `docs/benchmarks.json`; what needs"
        " [sessions from elsewhere](benchmarks-details.md#real-sessions-of-other-programs) is left out or unchanged."
        " [Playing a session](playing.md) says how to add one of your own."
    )


def _head(figures: Figures) -> Iterator[str]:
    machine = figures["machine"]
    parts = [name for name, found in figures.items() if found and name not in NO_PARTS]
    yield "# Benchmarks in detail"
    yield (
        "`make bench` made this page. The code is in `benchmarks/`, all figures of this run are in"
        " `docs/benchmarks.json`. Each program runs in its own environment, behind a small adapter"
        " (`benchmarks/peers/`), and gets the same sessions, windows and targets."
        " Times cover only its own work, not its start or reading the file. Times are medians of one run on one"
        " machine, so compare ratios rather than absolute times."
        f" `python -m benchmarks --only PART` repeats one part: {', '.join(parts)}."
    )
    yield (
        f"Run on {figures['date']} by `{figures.get('command', 'make bench')}`: {machine['cores']} cores"
        f" ({machine['processor']}), {machine['memory_bytes'] / 1024**3:.0f} GB,"
        f" {machine['system']}, Python {machine['python']}{', Node ' + machine['node'] if machine['node'] else ''}."
        f"{_renewed(figures)}"
    )
    yield table(("", "version"), [(name, _version(one)) for name, one in figures["peers"].items()])


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
    lines = list(behind_in_short(figures))
    if lines:
        yield table(("", "nca", "ahead"), lines)
    count = len(list(behind(figures)))
    yield (
        "The first row of each kind, without programs that exceed the budget or miss the target more than one time in"
        f" four; [all {count} rows](benchmarks-details.md#where-nca-is-not-ahead) say why."
        if count
        else "nca is ahead or level in every row of this run."
    )


def _all_behind(figures: Figures) -> Iterator[str]:
    yield "## Where nca is not ahead"
    yield from (f"- {line}" for line in behind(figures))
