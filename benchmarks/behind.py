"""Find every row of a run in which another program does better than nca, and say why."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks import headline, next_steps, public, small_model
from benchmarks.summed import Total, of, seconds, share, totals

Figures = Mapping[str, Any]
Pair = tuple[int, int]
LEVEL, MISSED = 0.005, 1.02
"""Shares that differ by less are level; a result above this multiple of the target misses it."""
MEETS_TARGETS = 0.75
"""Who meets its target less often keeps more for that reason."""
MOST_NAMED = 2
_TAIL = re.compile(r" at \d+k| of [\d,]+ messages|, (?=played|real|with)")
"""What tells figures of one kind: the window, the length, the sessions."""
WHY = {
    "facts": "it keeps more of the session",
    "words": (
        "it clears results first and stops there; nca also keeps the newest results and the state of the work, and"
        " shortens the user's words where they are larger than the target"
    ),
    "rules": "it clears results first and stops there, so the turns with the rules stay",
    "cost": (
        "it compacts further below its target, or later, so it breaks the prefix less often; nca's estimate is"
        " cautious until a model has reported"
    ),
    "count": (
        "its plain count happens to suit this model and this kind of text; nca adds a margin until the model has"
        " reported once, and then follows the reports"
    ),
    "saved": "it clears all but the newest few results; nca also keeps the first line of each error",
    "check": "it does less: it adds up lengths and keeps no breakdown",
    "dicts": (
        "it does less (the page says what); nca checks, counts and reads each message for what should stay, in Python"
    ),
    "time": "it does less (it drops old messages without looking for what should stay), or it is compiled code",
}


@dataclass(frozen=True, slots=True)
class Ahead:
    """A program that does better in one row: what was measured, both figures, and why.

    is_fair   it keeps to its budget, or meets its targets, as nca does
    """

    what: str
    own: str
    other: str
    why: str = ""
    is_fair: bool = True


def behind(figures: Figures) -> Iterator[str]:
    """One line for each row in which other programs are ahead of nca."""
    for (what, own, why), others in _grouped(_all(figures)).items():
        yield f"**{what}**, nca {own}: {'; '.join(others)}.{f' Why: {why}.' if why else ''}"


def in_short(figures: Figures) -> Iterator[tuple[str, str, str]]:
    """For the first page, of each kind of figure the first row: what, nca's, and two of those who are ahead fairly."""
    seen = set()
    for (what, own, _), others in _grouped(one for one in _all(figures) if one.is_fair).items():
        kind = _TAIL.split(what)[0]
        if kind not in seen:
            seen.add(kind)
            more = f"; {len(others[MOST_NAMED:])} more" if others[MOST_NAMED:] else ""
            yield what, own, f"{'; '.join(others[:MOST_NAMED])}{more}"


def _grouped(rows: Iterable[Ahead]) -> dict[tuple[str, str, str], list[str]]:
    """By what, nca's figure and why: the others' figures."""
    groups: dict[tuple[str, str, str], list[str]] = {}
    for one in rows:
        groups.setdefault((one.what, one.own, one.why), []).append(one.other)
    return groups


def _all(figures: Figures) -> Iterator[Ahead]:
    for part in (next_steps, headline, small_model, public):
        yield from (Ahead(*row) for row in part.ahead(figures))
    found = totals(figures["compactions"])
    for has_model in (False, True):
        group = [one for one in found if one.has_model == has_model]
        own = next((one for one in group if one.label == "nca"), None)
        if own is not None:
            yield from _compared(own, [one for one in group if one.peer != "nca"])
    yield from _costs(figures)
    yield from _counted(figures)
    yield from _saved(figures)
    yield from _times(figures)


def _compared(own: Total, others: list[Total]) -> Iterator[Ahead]:
    kinds: dict[str, tuple[str, Callable[[Total], Pair], Callable[[Pair], str]]] = {
        "valid": ("valid requests", lambda one: one.valid, of),
        "met": ("targets met", lambda one: one.met, of),
        "facts": ("facts kept", lambda one: one.facts, share),
        "rules": ("rules kept", lambda one: one.rules, share),
        "words": ("user's turns kept", lambda one: one.words, share),
        "newest": ("newest message whole", lambda one: one.newest, of),
    }
    for kind, (what, pair, shown) in kinds.items():
        for one in others:
            if _part(pair(one)) > _part(pair(own)) + LEVEL:
                missed = f" but meets {of(one.met)} targets (nca: {of(own.met)})" if one.met[0] < own.met[0] else ""
                why = "" if missed else WHY.get(kind, "")
                yield Ahead(
                    what,
                    shown(pair(own)),
                    f"{one.name} {shown(pair(one))}{missed}",
                    why,
                    _part(one.met) >= MEETS_TARGETS,
                )


def _part(pair: Pair) -> float:
    return pair[0] / pair[1] if pair[1] else 0.0


def _costs(figures: Figures) -> Iterator[Ahead]:
    rows = [row for row in figures["replays"] if "cost_ratio" in row]
    for has_model in (False, True):
        own = next((row for row in rows if row["label"] == "nca" and row["has_model"] == has_model), None)
        for row in rows:
            if own is None or row["peer"] == "nca" or row["has_model"] != has_model:
                continue
            if row["cost_ratio"] < own["cost_ratio"] - LEVEL / 10:
                faults = f", {row['broken']} requests with unpaired calls" if row["broken"] else ""
                over = f", {row['over']} requests over the budget" if row["over"] else ""
                what = f"cost with a cache{', with a summary' if has_model else ''}"
                other = f"{row['label']} {100 * row['cost_ratio']:.2f}%{faults}{over}"
                yield Ahead(what, f"{100 * own['cost_ratio']:.2f}%", other, WHY["cost"], not over)


def _counted(figures: Figures) -> Iterator[Ahead]:
    own = next((row["p95"] for row in figures["counts"] if row["peer"] == "nca" and "p95" in row), None)
    for row in figures["counts"]:
        if own is not None and row.get("p95", 1.0) < own - LEVEL and row["peer"] != "nca":
            other = f"{row['peer']} {100 * row['p95']:.1f}%"
            yield Ahead("estimate without learning", f"{100 * own:.1f}%", other, WHY["count"])


def _saved(figures: Figures) -> Iterator[Ahead]:
    own = next((row["saved_ratio"] for row in figures["saved"] if row["peer"] == "nca" and "saved_ratio" in row), None)
    for row in figures["saved"]:
        if own is not None and row.get("saved_ratio", 0.0) > own + LEVEL and row["peer"] != "nca":
            refused = ", and its request is refused" if row["refused_by"] else ""
            other = f"{row['label']} {100 * row['saved_ratio']:.1f}%{refused}"
            yield Ahead("saved with every word kept", f"{100 * own:.1f}%", other, WHY["saved"], not refused)


def _times(figures: Figures) -> Iterator[Ahead]:
    for length in sorted({row["messages"] for row in figures["times"]}):
        rows = [row for row in figures["times"] if row["messages"] == length]
        own = next((row for row in rows if row["label"] == "nca, in a session"), {})
        dicts = next((row for row in rows if row["label"] == "nca"), {})
        for name, what, why in (("check_seconds", "check", "check"), ("seconds", "compaction", "time")):
            for row in _faster(rows, name, own):
                yield Ahead(f"{what} of {length:,} messages", f"{seconds(own[name])} in a session", row, WHY[why])
        for name, how in (("cold_seconds", "the first"), ("from_dicts_seconds", "again")):
            for row in _faster(rows, name, dicts):
                what = f"compaction of {length:,} messages from dicts, {how}"
                yield Ahead(what, f"{seconds(dicts[name])} by `nca.compact`", row, WHY["dicts"])


def _faster(rows: list[dict[str, Any]], name: str, own: Mapping[str, Any]) -> Iterator[str]:
    for row in rows:
        if row["peer"] == "nca" or name not in row or name not in own or row[name] >= own[name]:
            continue
        is_missed = name != "check_seconds" and row.get("of_target", 0) > MISSED
        missed = f", ending at {row['of_target']:.1f} × its target" if is_missed else ""
        yield f"{row['label']}{', with a summary' if row['has_model'] else ''} {seconds(row[name])}{missed}"
