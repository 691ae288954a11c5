"""Write README's table from the JSON of a run, between two markers. A test compares the two."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.summed import Total, of, share, table, totals

ROOT = Path(__file__).parent.parent
FIGURES = ROOT / "docs" / "benchmarks.json"
BEGIN, END = "<!-- figures: made by `make bench` -->", "<!-- end of figures -->"
HEAD = ("", "request valid", "target met", "facts kept", "rules kept", "user's turns kept", "cost with a cache")


def readme_table(figures: Mapping[str, Any]) -> str:
    """The table, one row for each way to compact."""
    cost = {(row["peer"], row["variant"]): row.get("cost_ratio") for row in figures["replays"]}
    variants = {(row["peer"], row["label"], row["has_model"]): row["variant"] for row in figures["compactions"]}
    rows = []
    for total in sorted(totals(figures["compactions"]), key=_order):
        paid = cost.get((total.peer, variants[total.peer, total.label, total.has_model]))
        price = f"{100 * paid:.1f}%" if paid is not None else "–"
        numbers = (share(total.facts), share(total.rules), share(total.words), price)
        rows.append((total.name, of(total.valid), of(total.met), *numbers))
    return "\n".join(table(HEAD, rows))


def _order(total: Total) -> tuple[bool, bool]:
    return total.has_model, total.peer != "nca"


def renewed(text: str, figures: Mapping[str, Any]) -> str:
    """README with the table of these figures. Raises ValueError where the markers are missing."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"README.md: the markers {BEGIN} and {END} are missing")
    return f"{before}{begin}\n{readme_table(figures)}\n{end}{after}"
