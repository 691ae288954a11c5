"""The sections of docs/benchmarks.md, as lines of Markdown. What a run did not measure has no section."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from benchmarks.kinds import by_kind
from benchmarks.policy import policies
from benchmarks.summed import counted, label_of, of, seconds, share, table, totals
from benchmarks.timed import timed

Figures = Mapping[str, Any]
Section = Callable[[Figures], Iterator[str]]
PICTURES = "pictures"
MEGABYTE = 1024 * 1024
LEFT = {
    "rules of the user": "rules",
    "user turns": "user's turns",
    "paths touched": "changed paths",
    "error lines": "errors",
}
"""What can be lost, and how the page calls it."""


def _compactions(figures: Figures) -> Iterator[str]:
    found = totals(figures["compactions"])
    settings = figures["settings"]
    yield "## What is left after one compaction"
    yield (
        f"{settings['sessions']} sessions, each larger than its budget (the window minus 35%). The target is half of"
        " the budget. A session that is compacted at several points counts once, at the last. This table adds up all"
        " sessions, so the longest count most; in the next one each session has one vote."
    )
    yield (
        "- *Valid*: none of OpenAI, Anthropic, Gemini and Mistral would refuse the request, by a checker"
        " (`benchmarks/validity.py`) that shares no code with nca. The sessions were valid before."
    )
    yield (
        "- *Repaired*: the same for sessions as they were recorded, with empty messages, duplicate ids and calls"
        " without results."
    )
    yield "- *Target met*: by a real tokenizer (cl100k), not by anybody's estimate."
    yield (
        "- *Facts*: file paths, error lines and hashes that can still be read, whoever put them there. Patterns of the"
        " benchmark find them, not nca's."
    )
    yield (
        "- *Rules*: in generated sessions those that the generator put in, in 24 wordings. Not independent of nca:"
        " elsewhere they are the user's sentences with words such as always, never or must not, which nca looks for"
        " too. Rules that were marked by hand are in the tables above."
    )
    yield "- *Of the target*: how much of the target was used."
    rows = []
    for one in found:
        row = (
            one.name,
            of(one.valid),
            of(one.mended),
            of(one.met),
            share(one.facts),
            share(one.rules),
            share(one.words),
        )
        rows.append((*row, of(one.newest), f"{100 * one.fill:.0f}%"))
    head = ("", "valid", "repaired", "target met", "facts", "rules", "user's turns", "newest whole", "of the target")
    yield table(head, rows)
    changed = ", ".join(one.name for one in found if one.mutated)
    yield (
        "*With a summary* means that a model would be asked. Here a script answers: with what a frontier model wrote at"
        " that point of the real session, otherwise with a text without facts. So only what code keeps is counted."
        f" No compaction changed its own input{f', except for {changed}' if changed else ''}."
    )
    for one in found:
        for failure in one.failures:
            yield f"- {one.name}: {failure} in one session or more; it counts as not valid and not met."
    yield from _crowded(figures)
    yield from by_kind(figures["compactions"])
    yield from _picture("bench-facts.svg", "bench-words.svg")


def _crowded(figures: Figures) -> Iterator[str]:
    """Why nca loses rules and turns in sessions whose user messages exceed the target."""
    own = [row for row in counted(figures["compactions"]) if row["label"] == "nca" and not row["has_model"]]
    own = [row for row in own if not row["is_raw"] and "error" not in row]
    crowded = [row for row in own if row["user_tokens"] > row["target_tokens"]]
    if not crowded:
        return
    roomy = [row for row in own if row not in crowded]
    rules = [row["facts"].get("rules of the user", (0, 0)) for row in roomy]
    turns = [row["user_turns"] for row in roomy]
    yield (
        f"In {len(crowded)} of {len(own)} sessions ({', '.join(row['material'] for row in crowded)}) the user"
        " messages, which hold a program's output there, are larger than the target, so meeting it loses some of"
        f" them. In the other {len(roomy)} nca keeps {of(_summed(rules))} rules and {of(_summed(turns))} turns."
    )


def _summed(pairs: Sequence[Sequence[int]]) -> tuple[int, int]:
    return sum(pair[0] for pair in pairs), sum(pair[1] for pair in pairs)


def _times(figures: Figures) -> Iterator[str]:
    yield from timed(figures)
    lengths = sorted({row["messages"] for row in figures["times"]})
    longest = lengths[-1] if lengths else 0
    yield from _picture(*(f"bench-time-{length}.svg" for length in lengths if has_time(figures, length)))
    if any(row.get("check_seconds") for row in figures["times"] if row["messages"] == longest):
        yield from _picture("bench-check.svg")


def has_time(figures: Figures, length: int) -> bool:
    """Whether a session of this length was compacted in this run."""
    return any("cold_seconds" in row for row in figures["times"] if row["messages"] == length)


def _replays(figures: Figures) -> Iterator[str]:
    yield "## A session, request by request"
    yield (
        "The log grows as an agent's does. Before each request the program is asked whether its own count is above 80%"
        " of the budget; if so, it compacts to half. nca with all its stages decides by its own defaults (see below)."
        " `trim_messages` is called before every request, as intended. The cost is that of all requests with a prefix"
        " cache (0.1 for tokens that continue the previous request, 1.25 for the rest), as a share of sending the whole"
        " history each time at full price, counted by a real tokenizer. Each compaction breaks the prefix once. A"
        " program that drops most of the session has a low cost too, so the last columns say what can be read in the"
        " last request."
    )
    rows = []
    for row in figures["replays"]:
        if "error" in row:
            rows.append((label_of(row), row["error"], *[""] * (4 + len(LEFT))))
            continue
        numbers = (row["compactions"], row["breaks"], row["broken"], row["over"])
        left = (share(row["left"][kind]) for kind in LEFT)
        rows.append((label_of(row), f"{100 * row['cost_ratio']:.2f}%", *map(str, numbers), *left))
    columns = ("compactions", "prefix breaks", "with unpaired calls", "over the budget", *LEFT.values())
    yield table(("", "cost", *columns), rows)


def _counts(figures: Figures) -> Iterator[str]:
    if not figures["counts"]:
        return
    yield "## Estimates compared with reported counts"
    yield (
        "The real session has the provider's own counts. What the transcript does not contain (system prompt, tools) is"
        " taken from the first report, for every program. Those that count by model are told which it was. The error is"
        " that of all later requests up to the first compaction, without learning."
    )
    rows = [
        (row["peer"], row["error"], "", "")
        if "error" in row
        else (row["peer"], row["counter"], f"{100 * row['p95']:.1f}%", f"{100 * row['lowest']:+.1f}%")
        for row in figures["counts"]
    ]
    yield table(("", "counter", "95% are within", "lowest"), rows)
    yield "\n".join(f"nca in a session: {line}." for line in figures["anchored"])


def _saved(figures: Figures) -> Iterator[str]:
    if not figures["saved"]:
        return
    yield "## Savings with every word of user and model kept"
    yield "Only tool results are shortened, as far as each program can. A share of the real session's tokens."
    rows = [
        (
            row["label"],
            row.get("error") or f"{100 * row['saved_ratio']:.0f}%",
            ", ".join(row.get("refused_by", ())) or "nobody",
        )
        for row in figures["saved"]
    ]
    yield table(("", "saved", "refused by"), rows)


def _errors(figures: Figures) -> Iterator[str]:
    if not figures["errors"]:
        return
    yield "## Which errors are a context overflow"
    yield (
        "Error replies of some forty providers, with look-alikes: rate limits that mention tokens, output limits that"
        " are too high. langchain, strands and pydantic-ai decide inside their provider clients and cannot be asked"
        " separately. Not independent of nca: it was developed with these replies at hand, the others were not."
    )
    rows = [
        (row["label"], row["error"], "")
        if "error" in row
        else (row["label"], of((row["found"], row["overflows"])), of((row["false_alarms"], row["others"])))
        for row in figures["errors"]
    ]
    yield table(("", "overflows found", "false alarms"), rows)


def _recalled(figures: Figures) -> Iterator[str]:
    if not figures["recalled"]:
        return
    row = figures["recalled"]
    yield "## What can be recalled after a compaction"
    yield (
        f"Of {row['facts']} facts in a generated session of 1,000 messages, {row['in_view']} can be read after one"
        f" compaction, and {row['with_search']} with nca's `recall`, which searches the whole log. The other programs'"
        " compactions keep no log: what they drop is gone unless the surrounding program has kept it. Not independent"
        " of nca: its authors wrote the generator."
    )


def _commands(figures: Figures) -> Iterator[str]:
    if not figures["commands"]:
        return
    own = next((row["seconds"] for row in figures["commands"] if row["peer"] == "nca"), 0)
    yield "## Start"
    yield (
        "`--version` of programs with a command: median time, ratio to nca's, and peak memory. nca answers it before it"
        " loads anything else, so this is no start of a chat: `python -m benchmarks.start` measures that, of nca alone."
    )
    rows = [
        (
            row["peer"],
            seconds(row["seconds"]),
            f"{row['seconds'] / own:.1f} ×" if own else "–",
            f"{row['peak_bytes'] / MEGABYTE:.0f} MB{' (' + row['error'] + ')' if 'error' in row else ''}",
        )
        for row in figures["commands"]
    ]
    yield table(("", "time", "ratio", "memory"), rows)


def _engine(figures: Figures) -> Iterator[str]:
    if not figures["engine"]:
        return
    yield "## nca alone, on a real session"
    yield (
        "What is kept is found by the benchmark's own patterns. Not independent of nca: tokens, targets and the cost of"
        " the prefix cache are counted by nca's estimate here, the weights of its search were chosen on the other half"
        " of these questions, and the invented talks were written by its authors."
    )
    yield from (f"- {line}" for line in figures["engine"])


def _loop(figures: Figures) -> Iterator[str]:
    for run in figures["loop"]:
        yield f"## With a model in the loop: {run['model']}"
        if "error" in run:
            yield f"Not run: {run['error']}"
            continue
        yield (
            f"Sessions several times as large as a window of {run['window_tokens']:,} tokens, compacted before each"
            " request above the threshold. At the end the model answers four questions (a code that the user gave, a"
            " file that was changed, the next task, a decision); an answer is right if it contains the word."
            f" {run['runs']} runs on different sessions: the mean, and the lowest and highest run. *Summaries*: how"
            " many of all compactions had one, and how many the model wrote or began. Code writes the summary if"
            " there is no room to ask the model or its answer cannot be used. What is planted is said in several"
            " wordings, not only in those that nca looks for."
        )
        rows = [
            (
                row["label"],
                f"{100 * row['mean']:.0f}%",
                f"{100 * row['spread'][0]:.0f} to {100 * row['spread'][1]:.0f}%",
                *(f"{100 * value:.0f}%" for value in row["by_kind"].values()),
                f"{row['summaries']} of {row['compactions']}, {row['by_model']} by the model"
                if row["compactions"]
                else "–",
            )
            for row in run["rows"]
        ]
        yield table(("", "right", "spread", *run["rows"][0]["by_kind"], "summaries"), rows)


def _picture(*names: str) -> Iterator[str]:
    for name in names:
        yield f"![{name.removesuffix('.svg').replace('-', ' ')}]({PICTURES}/{name})"


SECTIONS: tuple[Section, ...] = (
    _compactions, _times, _replays, policies, _counts, _saved, _errors, _recalled, _commands, _engine, _loop,
)  # fmt: skip
