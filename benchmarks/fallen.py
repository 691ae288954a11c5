"""What a quick run measures worse than the page: python -m benchmarks --quick fails on it.

Compared is only what both runs measure in the same way, case by case: shares kept, validity, targets, cost, recall.
Times are left out: one run on a machine that does other work as well says nothing about them.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from benchmarks.summed import WORDS

Row = Mapping[str, Any]
Figures = Mapping[str, Any]
Pair = tuple[float, float]
TOLERANCE = 0.1
"""A figure that is worse by more than this share of the page's fails the run."""
OWN = "nca"
RULES = "rules of the user"
KEYS = {
    "headline": ("variant", "session", "window_tokens"),
    "compactions": ("variant", "material"),
    "replays": ("variant",),
    "next_steps": ("variant", "session", "window_tokens"),
    "effects": ("variant", "window_tokens"),
}
"""What tells the cases of a part."""


def fallen(before: Figures, now: Figures) -> list[str]:
    """One line for each figure of nca's that fell by more than a tenth. Raises ValueError if none can be compared."""
    found = list(_figures(before, now))
    if not found:
        raise ValueError("docs/benchmarks.json has no figure that this run measured too; run `make bench` first")
    return [
        f"{what}: {_shown(new)}, on the page {_shown(old)}: worse by more than {TOLERANCE:.0%}"
        for what, old, new, is_less_better in found
        if (new > old * (1 + TOLERANCE) if is_less_better else new < old * (1 - TOLERANCE))
    ]


def _figures(before: Figures, now: Figures) -> Iterator[tuple[str, float, float, bool]]:
    """What, the page's figure, this run's, and whether less is better."""
    for part, kinds in _SHARES.items():
        for variant, pairs in _cases(before, now, part).items():
            name = f"{part}, nca{'' if variant == 'extract' else f' ({variant})'}"
            for what, pair in kinds.items():
                old, new = (_share([case[place] for case in pairs], pair) for place in (0, 1))
                if old is not None and new is not None:
                    yield f"{name}, {what}", old, new, False
            costs = [
                (old["cost_ratio"], new["cost_ratio"])
                for old, new in pairs
                if "cost_ratio" in old and "cost_ratio" in new
            ]
            if costs:
                means = [statistics.geometric_mean(column) for column in zip(*costs, strict=True)]
                yield f"{name}, cost", means[0], means[1], True
    old, new = before.get("recalled"), now.get("recalled")
    if old and new:
        for what in ("in_view", "with_search"):
            yield f"recalled, {what}", old[what] / old["facts"], new[what] / new["facts"], False


def _cases(before: Figures, now: Figures, part: str) -> dict[str, list[tuple[Row, Row]]]:
    """By variant: each case that both runs have, before and now."""

    def of(figures: Figures) -> dict[tuple[Any, ...], Row]:
        rows = [row for row in figures.get(part) or () if row["peer"] == OWN]
        return {tuple(row[key] for key in KEYS[part]): row for row in rows}

    olds, news = of(before), of(now)
    found: dict[str, list[tuple[Row, Row]]] = {}
    for key, old in olds.items():
        if key in news and "error" not in old:
            found.setdefault(str(old["variant"]), []).append((old, news[key]))
    return found


def _share(rows: Sequence[Row], pair: Callable[[Row], Pair]) -> float | None:
    """Of all cases together; a case that failed has nothing."""
    pairs = [(0.0, 1.0) if "error" in row else pair(row) for row in rows]
    due = sum(one[1] for one in pairs)
    return sum(one[0] for one in pairs) / due if due else None


def _said_by(row: Row, *, speaker: str) -> Pair:
    kept, due = row.get(speaker, (0, 0))
    return kept, due


def _named(row: Row) -> Pair:
    return sum(pair[0] for pair in row["names"].values()), sum(pair[1] for pair in row["names"].values())


def _kept(row: Row, *, of_rules: bool) -> Pair:
    pairs = [pair for kind, pair in row["facts"].items() if kind != WORDS and (kind == RULES) == of_rules]
    return sum(pair[0] for pair in pairs), sum(pair[1] for pair in pairs)


_SHARES: dict[str, dict[str, Callable[[Row], Pair]]] = {
    "headline": {
        "rules readable": lambda row: tuple(row["rules"]),
        "other facts readable": lambda row: tuple(row["others"]),
        **{f"facts of the {one}": partial(_said_by, speaker=one) for one in ("person", "model", "tool")},
        "valid requests": lambda row: (row["requests"] - row["refused"], row["requests"]),
        "requests within the budget": lambda row: (row["requests"] - row["over"], row["requests"]),
    },
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
