"""Plain lines break between words, however a text arrives, and code and tables stay as they are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.text import Text

from nca.terminal.panels.list_panel import wrapped as fitted
from nca.terminal.render.layout import Parted, WordWrap, hung, without_dots, wrapped
from nca.terminal.render.theme import plain_console


def test_prose_is_broken_and_code_and_tables_are_not() -> None:
    prose = "a person reads words, not letters"
    assert wrapped(prose, 12).split("\n") == ["a person", "reads words,", "not letters"]
    assert wrapped(f"- {prose}", 12).split("\n")[0] == "- a person"
    for kept in (f"```\n{prose}\n```", f"    {prose}", f"| {prose} |", "averylongword" * 3):
        assert wrapped(kept, 12) == kept
    assert wrapped(f"```\n```\n{prose}", 12).count("\n") == 4


@given(st.lists(st.text(" ab\n日`|", max_size=8)), st.integers(1, 20))
def test_nothing_is_lost_and_pieces_do_not_matter(pieces: list[str], columns: int) -> None:
    wrap = WordWrap(columns)
    text = "".join(map(wrap.feed, pieces)) + wrap.finish()
    assert text.split() == "".join(pieces).split()
    assert text == wrapped("".join(pieces), columns)


@given(st.lists(st.text("ab ", min_size=1, max_size=12).filter(str.strip), min_size=1, max_size=8), st.integers(16, 60))
def test_no_dot_between_parts_is_left_at_the_end_of_a_row(parts: list[str], columns: int) -> None:
    line = " · ".join(" ".join(part.split()) for part in parts)
    console = plain_console({"COLUMNS": str(columns)})
    with console.capture() as captured:
        console.print(Parted(line))
    for rows in (captured.get(), without_dots(wrapped(line, columns)), "\n".join(fitted(line, columns, 40))):
        assert not any(row.rstrip().endswith("·") for row in rows.splitlines())
        assert rows.replace("·", " ").split() == line.replace("·", " ").split()


@pytest.mark.parametrize("took", ["0.1 s", "18 s", "1 min 02 s"])
@pytest.mark.parametrize("columns", range(40, 80))
def test_a_duration_is_no_row_of_its_own(columns: int, took: str) -> None:
    line = f"Compacted 1,954 → 1,610 tokens (kept 3 of 3 messages, 2 of 2 answers whole). · {took}"
    console = plain_console({"COLUMNS": str(columns)})
    with console.capture() as captured:
        console.print(Parted(line))
    for rows in (captured.get().splitlines(), [row.plain for row in hung(Text(line), console, columns)]):
        assert rows[-1].rstrip().endswith(f"whole). · {took}")
