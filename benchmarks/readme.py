"""Write README's table from the JSON of a run, between two markers, and find what README leaves out of the page.

Tests compare README and the page.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.behind import behind
from benchmarks.headline import README_HEAD, readme_rows
from benchmarks.summed import table

ROOT = Path(__file__).parent.parent
FIGURES = ROOT / "docs" / "benchmarks.json"
BEGIN, END = "<!-- figures: made by `make bench` -->", "<!-- end of figures -->"
NOT_AHEAD = "**Where nca is not ahead.**"
SAID = {
    r"questions answered by": "answers from them",
    r"cost with a cache": "cost less",
    r".* readable.*, played sessions": "exceed the budget",
    r".* readable.*, real sessions": "real sessions",
    r"requests over the budget": "never exceeds the budget",
    r"what questions of": "LoCoMo",
    r"(facts|rules|user's turns) kept": "after one compaction",
    r"estimate without learning": "first estimate",
    r"saved with every word kept": "by code alone",
    r"compaction of .* from dicts": "from dicts",
    r"compaction of": "in a session",
}
"""What the page's lines begin with, and the words by which README says the same."""


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


def unsaid(text: str, figures: Mapping[str, Any]) -> Iterator[str]:
    """The page's lines of where nca is not ahead that README's paragraph of that name does not say."""
    paragraph = " ".join(text.partition(NOT_AHEAD)[2].partition("\n\n")[0].split())
    for line in behind(figures):
        words = next((said for start, said in SAID.items() if re.match(rf"\*\*{start}", line)), None)
        if words is None or words not in paragraph:
            yield line
