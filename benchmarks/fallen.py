"""What a quick run measures worse than the page: python -m benchmarks --quick fails on it.

Compared is only what both runs measure in the same way, case by case: shares kept, validity, targets, cost, recall.
Times are left out: one run on a machine that does other work as well says nothing about them. A case that needs too
much of the processor, or fails, keeps nothing; one that the machine was too busy for is in neither sum.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from benchmarks.peers.side import NO_END
from benchmarks.summed import WORDS

Row = Mapping[str, Any]
Figures = Mapping[str, Any]
Pair = tuple[float, float]
TOLERANCE = 0.02
"""A figure that is worse by more than this share of the page's fails the run: the same engine has the same figures."""
OWN, WHOLE = "nca", "recalled"
RULES = "rules of the user"
KEYS = {
    "headline": ("variant", "session", "window_tokens"),
    "marked": ("variant", "session", "window_tokens"),
    "compactions": ("variant", "material"),
    "replays": ("variant",),
    "next_steps": ("variant", "session", "window_tokens"),
    "effects": ("variant", "window_tokens"),
}
"""What tells the cases of a part."""
COMPARED = (*KEYS, WHOLE)
Case = tuple[Row, Row]
"""On the page, and now."""


def fallen(before: Figures, now: Figures) -> list[str]:
    """One line for each figure of nca's that fell by more than the tolerance. Raises SystemExit if there is none."""
    found = list(_figures(before, now))
    if not found and not untold(now):
        raise SystemExit("docs/benchmarks.json has no figure that this run measured too; run `make bench` first")
    return [
        f"{what}: {_shown(new)}, on the page {_shown(old)}: worse by more than {TOLERANCE:.0%}{why}"
        for what, old, new, is_less_better, why in found
        if (new > old * (1 + TOLERANCE) if is_less_better else new < old * (1 - TOLERANCE))
    ]


def untold(now: Figures) -> list[str]:
    """One line for each case of nca's that the machine was too busy for: not known to be worse, nor to be level."""
    return [
        f"{', '.join(str(part) for part in (name, *(row[key] for key in KEYS[name])))}: {row['error']}"
        for name in KEYS
        for row in _own(now, name).values()
        if _is_untold(row)
    ]


def _is_untold(row: Row) -> bool:
    return str(row.get("error", "")).startswith(NO_END)


def _figures(before: Figures, now: Figures) -> Iterator[tuple[str, float, float, bool, str]]:
    """What, the page's figure, this run's, whether less is better, and why cases failed."""
    for part, kinds in _SHARES.items():
        for variant, cases in _cases(before, now, part).items():
            name = f"{part}, nca{'' if variant == 'extract' else f' ({variant})'}"
            errors = [new["error"] for _, new in cases if "error" in new]
            why = f"; {len(errors)} of {len(cases)} cases failed: {errors[0]}" if errors else ""
            for what, pair in kinds.items():
                if shares := _shares(cases, pair):
                    yield f"{name}, {what}", *shares, False, why
            costs = [
                (old["cost_ratio"], new["cost_ratio"])
                for old, new in cases
                if "cost_ratio" in old and "cost_ratio" in new
            ]
            if costs:
                old, new = (statistics.geometric_mean(column) for column in zip(*costs, strict=True))
                yield f"{name}, cost", old, new, True, ""
    olds, news = before.get(WHOLE), now.get(WHOLE)
    if olds and news:
        for what in ("in_view", "with_search"):
            yield f"{WHOLE}, {what}", olds[what] / olds["facts"], news[what] / news["facts"], False, ""


def _own(figures: Figures, part: str) -> dict[tuple[Any, ...], Row]:
    """nca's rows of a part, by what tells its cases."""
    rows = [row for row in figures.get(part) or () if row["peer"] == OWN]
    return {tuple(row[key] for key in KEYS[part]): row for row in rows}


def _cases(before: Figures, now: Figures, part: str) -> dict[str, list[Case]]:
    """By variant: each case that both runs have."""
    news = _own(now, part)
    found: dict[str, list[Case]] = {}
    for key, old in _own(before, part).items():
        if key in news and "error" not in old and not _is_untold(news[key]):
            found.setdefault(str(old["variant"]), []).append((old, news[key]))
    return found


def _shares(cases: Sequence[Case], pair: Callable[[Row], Pair]) -> tuple[float, float] | None:
    """On the page and now, of all cases together; a case that fails now has nothing of what it had to keep."""
    olds = [pair(old) for old, _ in cases]
    news = [(0.0, due) if "error" in new else pair(new) for (_, due), (_, new) in zip(olds, cases, strict=True)]
    dues = [sum(due for _, due in pairs) for pairs in (olds, news)]
    if not all(dues):
        return None
    old, new = (sum(kept for kept, _ in pairs) / due for pairs, due in zip((olds, news), dues, strict=True))
    return old, new


def _said_by(row: Row, *, speaker: str) -> Pair:
    kept, due = row.get(speaker, (0, 0))
    return kept, due


def _named(row: Row) -> Pair:
    return sum(pair[0] for pair in row["names"].values()), sum(pair[1] for pair in row["names"].values())


def _kept(row: Row, *, of_rules: bool) -> Pair:
    pairs = [pair for kind, pair in row["facts"].items() if kind != WORDS and (kind == RULES) == of_rules]
    return sum(pair[0] for pair in pairs), sum(pair[1] for pair in pairs)


_REQUESTS: dict[str, Callable[[Row], Pair]] = {
    "rules readable": lambda row: tuple(row["rules"]),
    "other facts readable": lambda row: tuple(row["others"]),
    **{f"facts of the {one}": partial(_said_by, speaker=one) for one in ("person", "model", "tool")},
    "valid requests": lambda row: (row["requests"] - row["refused"], row["requests"]),
    "requests within the budget": lambda row: (row["requests"] - row["over"], row["requests"]),
}
_SHARES: dict[str, dict[str, Callable[[Row], Pair]]] = {
    "headline": _REQUESTS,
    "marked": _REQUESTS,
    "compactions": {
        "valid requests": lambda row: (not row["refused_by"] and not row["pair_faults"], 1),
        "targets met": lambda row: (row["is_met"], 1),
        "facts kept": lambda row: _kept(row, of_rules=False),
        "rules kept": lambda row: _kept(row, of_rules=True),
        "user's turns kept": lambda row: tuple(row["user_turns"]),
    },
    "next_steps": {"names of the next steps": _named},
    "effects": {"changes told": lambda row: tuple(row["told"])},
    "replays": {
        "valid requests": lambda row: (row["requests"] - row["broken"], row["requests"]),
        "requests within the budget": lambda row: (row["requests"] - row["over"], row["requests"]),
    },
}


def _shown(value: float) -> str:
    return f"{100 * value:.1f}%"
