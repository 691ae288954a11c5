"""Load and save docs/benchmarks.json, the figures on the page. What is not measured again keeps its earlier ones."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.comparison import VARIANTS

DOCS = Path(__file__).parent.parent / "docs"
FIGURES = DOCS / "benchmarks.json"
NOT_ASKED = "not in this run"
Row = dict[str, Any]
Figures = dict[str, Any]


def on_page() -> Figures:
    """The figures that are on the page; none before the first run."""
    return loaded(FIGURES)


def loaded(file: Path) -> Figures:
    """The figures in this file; none where there is no file."""
    found: Figures = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    return found


def save(figures: Figures, file: Path = FIGURES) -> None:
    file.write_text(json.dumps(figures, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def with_others(found: Figures) -> Figures:
    """These figures, and the earlier ones of parts that were not measured now."""
    before = on_page()
    is_whole = found.get("renewed") == {}
    renewed_on = {} if is_whole else {**before.get("renewed", {}), **found.get("renewed", {})}
    return {**before, **found, "renewed": renewed_on}


def as_first_counted(before: Figures, figures: Figures) -> Figures:
    """These figures with what nca kept of sessions of first contact as it was counted first.

    A session says what nca does with one that it has never met only once: later it may have been changed for it.
    """
    new = figures["settings"].get("first_contact", {}).get("sessions", ())
    first = {_case(row): row for row in before.get("headline") or () if row["peer"] == "nca" and row["session"] in new}
    return {**figures, "headline": [first.get(_case(row), row) for row in figures.get("headline") or ()]}


def renewed_among(before: Figures, found: Figures, labels: Sequence[str]) -> Figures:
    """Parts that were measured again, for variants of these names only (none: for all); the others keep their rows.

    A program that is of another version by now keeps the earlier one too, of the parts that were not measured again.
    """
    joined = {part: _joined(before.get(part), rows, labels) for part, rows in found.items() if part != "peers"}
    told = dict(before.get("peers") or {})
    for name, one in found["peers"].items():
        if one["reason"] != NOT_ASKED:
            old = told.get(name, {})
            earlier = old.get("earlier") or old.get("version")
            told[name] = {**one, **({"earlier": earlier} if earlier and earlier != one["version"] else {})}
    return joined | {"peers": {name: told[name] for name in found["peers"] if name in told}}


def _joined(before: Any, rows: Any, labels: Sequence[str]) -> Any:
    """The new rows of a part beside those that stay: of other programs, and of sessions that are not here."""
    if not rows or not isinstance(rows, list) or "peer" not in rows[0]:
        return rows or before
    order = {(one.peer, one.name): place for place, one in enumerate(VARIANTS)}
    places = set(map(_place, rows))
    kept = [row for row in before or () if _place(row) not in places or (labels and row["label"] not in labels)]
    new = [row for row in rows if not labels or row["label"] in labels]
    return sorted([*kept, *new], key=lambda row: order.get((row["peer"], row.get("variant", "")), len(order)))


def _case(row: Row) -> tuple[Any, ...]:
    return row["peer"], row["variant"], row["session"], row["window_tokens"]


def _place(row: Row) -> str:
    return str(row.get("material") or row.get("session", ""))
