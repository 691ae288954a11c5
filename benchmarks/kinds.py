"""The tables by kind of session: what is kept after one compaction, where each session has one vote."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from typing import Any

from benchmarks.summed import WORDS, counted, label_of, table

Row = dict[str, Any]
RULES = "rules of the user"


def by_kind(compactions: Sequence[Row]) -> Iterator[str]:
    """Lines of Markdown; none where there is one kind of session only."""
    rows = [row for row in counted(compactions) if not row["is_raw"] and "kind" in row]
    kinds = list(dict.fromkeys(row["kind"] for row in rows))
    if len(kinds) < 2:
        return
    sizes = {kind: len({row["session"] for row in rows if row["kind"] == kind}) for kind in kinds}
    yield "By kind of session, each session one vote: facts, rules and user's turns kept, in %; targets met."
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(label_of(row), []).append(row)
    head = ("", *(f"{kind} ({sizes[kind]})" for kind in kinds), f"all ({sum(sizes.values())})")
    lines = []
    for name, group in groups.items():
        of_kinds = [_cell([row for row in group if row["kind"] == kind]) for kind in kinds]
        lines.append((name, *of_kinds, _cell(group)))
    yield table(head, lines)


def _cell(rows: Sequence[Row]) -> str:
    """`87 · 100 · 71, 3 of 4`: shares of facts, rules and turns, and targets met; a failure keeps nothing."""
    shares = [_vote(rows, kind) for kind in ("facts", RULES, WORDS)]
    met = sum(row.get("is_met", False) for row in rows)
    return f"{' · '.join(shares)}, {met} of {len(rows)}"


def _vote(rows: Sequence[Row], kind: str) -> str:
    found = [kept / due for row in rows for kept, due in [_pair(row, kind)] if due]
    return f"{100 * statistics.mean(found):.0f}" if found else "–"


def _pair(row: Row, kind: str) -> tuple[int, int]:
    """How many were kept of how many. What failed keeps nothing of what there may have been."""
    if "error" in row:
        return 0, 1
    if kind == WORDS:
        return row["user_turns"][0], row["user_turns"][1]
    of_kind = [pair for name, pair in row["facts"].items() if name not in (RULES, WORDS)]
    pairs = of_kind if kind == "facts" else [row["facts"].get(kind, (0, 0))]
    return sum(pair[0] for pair in pairs), sum(pair[1] for pair in pairs)
