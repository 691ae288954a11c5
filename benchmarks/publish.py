"""Publish the figures of a run: the page, its details and pictures, and README's table between two markers."""

from __future__ import annotations

from benchmarks import growth
from benchmarks.figures import DOCS, Figures, as_first_counted, on_page, save, with_others
from benchmarks.headline import README_HEAD, readme_rows
from benchmarks.page import details, page, pictures
from benchmarks.summed import table

README = DOCS.parent / "README.md"
BEGIN, END = "<!-- figures: made by `make bench` -->", "<!-- end of figures -->"


def saved(found: Figures) -> None:
    """Put these figures in place of the earlier ones, and publish all."""
    figures = as_first_counted(on_page(), with_others(found))
    save(figures)
    publish(figures)


def publish(figures: Figures) -> None:
    """Write the page, its details, the pictures and README's table."""
    (DOCS / "pictures").mkdir(exist_ok=True)
    grown = growth.pictures(figures["growth"]) if figures.get("growth") else {}
    for name, text in {**pictures(figures), **grown}.items():
        (DOCS / "pictures" / name).write_text(text, encoding="utf-8")
    (DOCS / "benchmarks.md").write_text(page(figures), encoding="utf-8")
    (DOCS / "benchmarks-details.md").write_text(details(figures), encoding="utf-8")
    README.write_text(renewed(README.read_text(encoding="utf-8"), figures), encoding="utf-8")


def readme_table(figures: Figures) -> str:
    """The headline in short, one row for each way to compact."""
    return table(README_HEAD, readme_rows(figures))


def renewed(text: str, figures: Figures) -> str:
    """README with the table of these figures, if they have one. Raises ValueError where the markers are missing."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"README.md: the markers {BEGIN} and {END} are missing")
    if not figures.get("headline"):
        return text
    return f"{before}{begin}\n{readme_table(figures)}\n{end}{after}"
