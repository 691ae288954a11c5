"""Sessions with facts marked by hand, through every program in small windows: what each request still says.

Each program drives each session request by request: when its own count says that it is due, it compacts before the
request. Then every request is judged by its messages alone: the facts due, its validity, its size, its price.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks.asking import ask, packed
from benchmarks.comparison import SUMMARY, VARIANTS, Variant, limits, named
from benchmarks.environments import Environment
from benchmarks.mending import mended
from benchmarks.requests import heads, judged, requests_of
from benchmarks.stated import RULE, SPEAKERS, Recorded, readable
from benchmarks.summed import percent, table
from benchmarks.tokens import tokens

Row = dict[str, Any]
Figures = Mapping[str, Any]
WINDOWS = (8_000, 12_000, 24_000)
WINDOWS_OF_REAL = (*WINDOWS, 64_000)
MOST_SECONDS = 40.0
"""For one session in one window. Some programs count all of it anew before each of several hundred requests."""
LEVEL, KEPT_BUDGET = 0.005, 0.25
"""Shares that differ by less are level. A larger share of requests above the budget is not kept to it."""
COUNTS = ("requests", "refused", "over", "too_large")


def replayed(
    environments: Mapping[str, Environment],
    sessions: Sequence[Recorded],
    folder: Path,
    variants: Sequence[Variant] = VARIANTS,
    windows: Sequence[int] = WINDOWS,
) -> Iterator[Row]:
    """A row for each variant, session, and window that the session does not fit into, but each step without results."""
    found = []
    for number, session in enumerate(sessions):
        rows = mended(session.rows)
        path = str(packed(rows, folder / f"stated-{number}.json"))
        for window in windows:
            if largest_step_tokens(rows) <= limits(window)["budget_tokens"] < tokens(rows):
                found.append((session, rows, {"file": path, "summary": SUMMARY, **limits(window)}))
    for variant in variants:
        if environments[variant.peer].is_ready:
            task = {"op": "replay", "variant": variant.name}
            answers = ask(environments[variant.peer], task, [case for *_, case in found], most_seconds=MOST_SECONDS)
            for (session, rows, case), answer in zip(found, answers, strict=True):
                place = {"session": session.name, "window_tokens": case["window_tokens"]}
                yield {**named(variant), **place, **_judged(session, rows, case, answer)}


def largest_step_tokens(rows: Sequence[Row]) -> int:
    """The most that a request has to hold whole: the person's newest words, the newest calls. Results may give way."""
    steps = (rows[begin:end] for begin, end in pairwise([0, *heads(rows)]))
    return max(tokens([row for row in step if row["role"] != "tool"]) for step in steps)


def _judged(session: Recorded, rows: list[Row], case: Row, answer: Row) -> Row:
    if "error" in answer:
        return {"error": answer["error"]}
    requests = requests_of(answer)
    kinds = {name: [0, 0] for name in ("rules", "others", *SPEAKERS.values())}
    for head, request in zip(heads(rows), requests, strict=True):
        due = session.due(rows[head - 1]["_number"] if head else 0)
        kept = readable(due, request)
        for fact in due:
            for kind in ("rules" if fact.kind == RULE else "others", session.speaker(fact)):
                kinds[kind][0] += fact in kept
                kinds[kind][1] += 1
    return {"compactions": answer["compactions"], **judged(rows, requests, case), **kinds}


@dataclass(frozen=True, slots=True)
class Standing:
    """One program over all sessions, each of them one vote: shares of what was due, by window and over all."""

    label: str
    has_model: bool
    rules: Mapping[int, float]
    others: Mapping[int, float]
    by: Mapping[str, Mapping[int, float]]
    """By who said a fact; empty where it was not measured."""
    requests: int
    refused: int
    over: int
    too_large: int
    over_o200k: int | None
    """None where not all was counted in this vocabulary."""
    cost_ratio: float
    failures: tuple[str, ...]

    @property
    def over_of_all(self) -> str:
        newer = "" if self.over_o200k is None else f" · {self.over_o200k}"
        return f"{self.over}{newer} of {self.requests}"

    @property
    def keeps_to_budget(self) -> bool:
        """Who exceeds the budget more often keeps more for that reason. By o200k, else by cl100k, which counts more."""
        return (self.over if self.over_o200k is None else self.over_o200k) <= KEPT_BUDGET * self.requests

    @property
    def name(self) -> str:
        return f"{self.label}, with a summary" if self.has_model else self.label


def standings(rows: Sequence[Row]) -> list[Standing]:
    """In the order of the variants. A case that failed keeps nothing and has no cost."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row["peer"], row["variant"]), []).append(row)
    return [_standing(of_one) for of_one in groups.values()]


def _standing(rows: Sequence[Row]) -> Standing:
    done = [row for row in rows if "error" not in row]
    return Standing(
        rows[0]["label"],
        rows[0]["has_model"],
        _by_window(rows, "rules"),
        _by_window(rows, "others"),
        {one: _by_window(rows, one) for one in SPEAKERS.values() if any(row.get(one, (0, 0))[1] for row in done)},
        **{name: sum(row[name] for row in done) for name in COUNTS},
        over_o200k=sum(row["over_o200k"] for row in done) if all("over_o200k" in row for row in done) else None,
        cost_ratio=statistics.geometric_mean(row["cost_ratio"] for row in done) if done else 0.0,
        failures=tuple(dict.fromkeys(row["error"] for row in rows if "error" in row)),
    )


def _by_window(rows: Sequence[Row], kind: str) -> dict[int, float]:
    """Window 0: over all. Each session is one vote, however many windows it is larger than."""
    windows = sorted({row["window_tokens"] for row in rows})
    found = {window: _votes([row for row in rows if row["window_tokens"] == window], kind) for window in windows}
    return {0: _votes(rows, kind), **found}


def _votes(rows: Sequence[Row], kind: str) -> float:
    shares: dict[str, list[float]] = {}
    for row in rows:
        kept, due = row.get(kind, (0, 1) if "error" in row else (0, 0))
        if due:
            shares.setdefault(row["session"], []).append(kept / due)
    return statistics.mean(map(statistics.mean, shares.values())) if shares else 0.0


def met_first(figures: Figures) -> list[Row]:
    """The rows of sessions that this release met for the first time."""
    names = figures["settings"].get("first_contact", {}).get("sessions", ())
    return [row for row in figures.get("headline") or () if row["session"] in names]


def headline(figures: Figures) -> Iterator[str]:
    """The section on request by request, of all sessions; nothing where it was not measured."""
    rows = figures.get("headline")
    if not rows:
        return
    new = met_first(figures)
    used = [row for row in rows if row not in new]
    yield "## What each request still says"
    yield (
        "Sessions played by hand ([how](playing.md)). The person's rules, decisions, names and numbers, and what the"
        " model and the tools said that matters later, are marked by hand. Each program drives each session request by"
        " request in windows of 8,000, 12,000 and 24,000 tokens. Before every request it is asked whether its own count"
        " is above 80% of the budget (the window less 35%), and then compacts to half of the budget; nca decides by its"
        " own defaults. `trim_messages` is called before every request, as intended."
    )
    yield (
        "- *Person, model, tool*: of the facts that each has said so far, how many can be read in a request, over all"
        " requests. *Rules, other facts*: the same by what they are. Each session is one vote."
    )
    yield (
        "- *Valid*: requests that OpenAI, Anthropic, Gemini and Mistral would all take, by a checker"
        " (`benchmarks/validity.py`) that shares no code with nca."
    )
    yield (
        "- *Over, too large*: requests above the budget, and above the whole window, by a real tokenizer (cl100k);"
        " behind the dot, where all was counted by it, above the budget by a newer one (o200k), in which nca counts"
        " where no model is named."
    )
    yield (
        "- *Cost*: of all requests with a prefix cache (0.1 for what continues the previous request, 1.25 for the"
        " rest), as a share of sending the whole history each time."
    )
    yield (
        "- *With a summary*: a script answers where a model would be asked, the same text without facts for everybody;"
        " so only what code keeps is counted. Who leaves all facts to the model's summary has less here than with a"
        " real model."
    )
    for title, found in (("First contact", new), ("Sessions used for development", used)):
        if found:
            yield f"### {title}: {', '.join(dict.fromkeys(row['session'] for row in found))}"
            met = figures["settings"].get("first_contact", {})
            if since := met.get("since" if found is new else "before"):
                yield since
            yield from _spoken(found)
            yield from _table(found)
    yield (
        "Not independent of nca: the sessions were played through nca, so what was read twice there is what nca had let"
        " go; and nca was developed with the older ones at hand. The next table has sessions of other programs."
    )
    yield from _marked(figures.get("marked"))


def _spoken(rows: Sequence[Row]) -> Iterator[str]:
    """By who said a fact, in each window."""
    found = [one for one in standings(rows) if one.by]
    windows = sorted({row["window_tokens"] for row in rows})
    if found:
        speakers = [one for one in SPEAKERS.values() if any(one in standing.by for standing in found)]
        head = ("", *(f"{one} at {window // 1_000}k" for one in speakers for window in windows))
        yield table(head, [(one.name, *_by(one, speakers, windows)) for one in found])


def _by(one: Standing, speakers: Sequence[str], windows: Sequence[int], places: int = 1) -> list[str]:
    shares = [one.by.get(speaker, {}).get(window) for speaker in speakers for window in windows]
    return ["–" if share is None else f"{100 * share:.{places}f}%" for share in shares]


def _marked(rows: Sequence[Row] | None) -> Iterator[str]:
    if not rows:
        return
    sessions = dict.fromkeys(row["session"] for row in rows)
    yield "### Real sessions of other programs"
    yield (
        f"The same for {len(sessions)} real sessions: coding, customer service, fixing of issues. What must stay"
        " readable was marked by hand (`benchmarks/marks/`), after nca's own patterns had been written and without"
        " looking at them. A session is replayed in the windows that it does not fit into; a window is left out where"
        " the newest words and calls of some request, which nobody may shorten, are larger than the budget. The"
        " sessions are not in the repository, but published: the test fixtures of pi (badlogic/pi-mono), tau-bench"
        " (sierra-research/tau-bench) and SWE-agent (SWE-agent/SWE-agent). A hash in the marks tells who has them that"
        " they are the same; `NCA_TRANSCRIPTS` names the folder."
    )
    yield from _table(rows)


def _table(rows: Sequence[Row]) -> Iterator[str]:
    found = standings(rows)
    windows = sorted({row["window_tokens"] for row in rows})
    at = [f"at {window // 1_000}k" for window in windows]
    head = ("", "rules", *at, "other facts", *at, "valid", "over", "too large", "cost")
    yield table(head, [_cells(one, (0, *windows)) for one in found])
    for one in found:
        yield from (f"- {one.name}: {failure} in one case or more, which counts as lost." for failure in one.failures)


def _cells(one: Standing, windows: Sequence[int], places: int = 1) -> tuple[str, ...]:
    shares = [f"{100 * of_kind[window]:.{places}f}%" for of_kind in (one.rules, one.others) for window in windows]
    valid = f"{100 * (1 - one.refused / one.requests):.0f}%" if one.requests else "–"
    return (
        one.name,
        *shares,
        valid,
        one.over_of_all,
        str(one.too_large),
        percent(one.cost_ratio) if one.cost_ratio else "–",
    )


README_OTHERS = 6
"""Rows in README beside nca's."""
README_HEAD = ("", "the person's", "the model's", "a tool's", "valid", "over the budget", "over the window", "cost")


def kept_to_budget(rows: Sequence[Row]) -> list[Standing]:
    """nca, and of those that keep to their budget the ones that keep most of what the person said."""
    found = standings(rows)
    own = sorted((one for one in found if one.label == "nca"), key=lambda one: one.has_model)
    others = [one for one in found if not one.label.startswith("nca") and one.keeps_to_budget]
    others.sort(key=lambda one: (one.by.get("person") or one.others)[0], reverse=True)
    return [*own, *others[:README_OTHERS]]


def readme_rows(figures: Figures) -> list[tuple[str, ...]]:
    """The short table: what each request still says of new sessions."""
    rows = met_first(figures) or list(figures.get("headline") or ())
    return [_short(one) for one in kept_to_budget(rows)]


def _short(one: Standing) -> tuple[str, ...]:
    name, *_, valid, over, large, cost = _cells(one, (0,), places=0)
    return (name, *_by(one, list(SPEAKERS.values()), (0,), places=0), valid, over, large, cost)


def ahead(figures: Figures) -> Iterator[tuple[str, str, str, str, bool]]:
    """Where another program does better than nca in these tables: what, nca's figure, the other's, and whether it
    keeps to its budget as well."""
    for part, sessions in (("headline", "played sessions"), ("marked", "real sessions")):
        found = standings(figures.get(part) or ())
        for own in [one for one in found if one.label == "nca"]:
            where = f"{sessions}{', with a summary' if own.has_model else ''}"
            for other in found:
                if other.has_model == own.has_model and not other.label.startswith("nca"):
                    for what, mine, theirs in _better(own, other):
                        yield f"{what}, {where}", mine, theirs, "", other.keeps_to_budget


def _better(own: Standing, other: Standing) -> Iterator[tuple[str, str, str]]:
    but = f" with {other.over} of {other.requests} requests over the budget (nca: {own.over})" if other.over else ""
    spoken = [(f"the {who}'s facts", own.by[who], other.by[who]) for who in own.by if who in other.by]
    for what, mine, theirs in (("rules", own.rules, other.rules), ("other facts", own.others, other.others), *spoken):
        behind = [window for window in mine if theirs[window] > mine[window] + LEVEL]
        for window in [0] if 0 in behind else behind:
            at = f" at {window // 1_000}k" if window else ""
            yield f"{what} readable{at}", percent(mine[window]), f"{other.name} {percent(theirs[window])}{but}"
    if own.requests and other.requests and other.refused / other.requests < own.refused / own.requests:
        yield (
            "requests refused",
            f"{own.refused} of {own.requests}",
            f"{other.name} {other.refused} of {other.requests}",
        )
    if other.over < own.over and not other.failures:
        kept = f" with {percent(other.others[0])} of the facts (nca: {percent(own.others[0])})"
        yield "requests over the budget", f"{own.over} of {own.requests}", f"{other.name} {other.over}{kept}"
    if other.cost_ratio and other.cost_ratio < own.cost_ratio - LEVEL:
        kept = f" with {percent(other.others[0])} of the facts (nca: {percent(own.others[0])})"
        yield "cost with a cache", percent(own.cost_ratio), f"{other.name} {percent(other.cost_ratio)}{kept}"
