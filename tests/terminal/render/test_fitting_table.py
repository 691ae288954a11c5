"""Tables in windows of any width: nothing is left out, and no word is parted as long as it fits."""

from __future__ import annotations

import io
from collections.abc import Sequence

import pytest
from rich.console import Console
from rich.text import Text

from nca.terminal.render.layout import WHOLE, fitting_table

COLUMNS = {
    "tool": ["read_file", "list_directory"],
    "needs": ["read, runs", "read, runs"],
    "calls": ["", "12"],
    "from": ["/home/me/.config/nca/config.toml", "here"],
}


def drawn(
    width: int, monkeypatch: pytest.MonkeyPatch, *, gives_way: str, least: int, styles: Sequence[str] = ()
) -> list[str]:
    monkeypatch.setenv("COLUMNS", str(width))
    console = Console(file=io.StringIO(), width=width)
    columns = {head: [Text(cell) for cell in cells] for head, cells in COLUMNS.items()}
    table = fitting_table(columns, numbers=("calls",), gives_way=gives_way, least=least, wraps=True, styles=styles)
    with console.capture() as captured:
        console.print(table)
    return [line.rstrip() for line in captured.get().splitlines()]


def test_a_table_where_all_columns_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    head, *rows = drawn(80, monkeypatch, gives_way="from", least=WHOLE)
    assert head.split() == ["tool", "needs", "calls", "from"]
    assert [row.split()[-1] for row in rows] == ["/home/me/.config/nca/config.toml", "here"]


def test_lines_where_they_do_not_with_every_cell_and_the_headings_of_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    assert drawn(60, monkeypatch, gives_way="from", least=WHOLE) == [
        "read_file  read, runs",
        "  /home/me/.config/nca/config.toml",
        "list_directory  read, runs · 12 calls",
        "  here",
    ]


def test_an_empty_column_takes_no_room_from_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(COLUMNS, "calls", ["", ""])
    head, *rows = drawn(63, monkeypatch, gives_way="from", least=WHOLE)
    assert (head.split(), len(rows)) == (["tool", "needs", "from"], 2)


@pytest.mark.parametrize("gives_way", [*COLUMNS])
@pytest.mark.parametrize("empty", ["", *COLUMNS])
@pytest.mark.parametrize("width", [24, 40, 60, 72, 80, 100])
def test_no_cell_is_missing_in_any_window(
    monkeypatch: pytest.MonkeyPatch, width: int, gives_way: str, empty: str
) -> None:
    if empty:
        monkeypatch.setitem(COLUMNS, empty, ["", ""])
    shown = "".join("".join(drawn(width, monkeypatch, gives_way=gives_way, least=WHOLE)).split())
    for cells in COLUMNS.values():
        for cell in cells:
            assert "".join(cell.split()) in shown
