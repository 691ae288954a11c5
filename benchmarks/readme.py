"""Write README's table from the JSON of a run, between two markers. A test compares README and the figures."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.headline import README_HEAD, readme_rows
from benchmarks.summed import table

ROOT = Path(__file__).parent.parent
FIGURES = ROOT / "docs" / "benchmarks.json"
BEGIN, END = "<!-- figures: made by `make bench` -->", "<!-- end of figures -->"


def readme_table(figures: Mapping[str, Any]) -> str:
    """The headline in short, one row for each way to compact."""
    return "\n".join(table(README_HEAD, readme_rows(figures)))


def renewed(text: str, figures: Mapping[str, Any]) -> str:
    """README with the table of these figures, if they have one. Raises ValueError where the markers are missing."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"README.md: the markers {BEGIN} and {END} are missing")
    if not figures.get("headline"):
        return text
    return f"{before}{begin}\n{readme_table(figures)}\n{end}{after}"
