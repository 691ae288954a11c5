"""What a list draws, at every size."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from nca.terminal.panels.list_panel import BAR, Line, Listing, ListPanel, fitted_listing

TEXTS = st.text(st.sampled_from("ab 漢😀"), max_size=12)


@given(st.integers(0, 60), st.integers(-5, 70), st.integers(0, 5), st.integers(1, 60), st.integers(0, 40), TEXTS)
def test_it_fits_every_window_and_shows_the_chosen_row(
    total: int, chosen: int, about: int, columns: int, height: int, text: str
) -> None:
    chosen = max(0, min(total - 1, chosen)) if total else -1

    def row(number: int) -> Line:
        return [("class:accent", f"{number:02}"), ("", text), ("class:quiet", text)]

    drawn = fitted_listing(Listing(total, row, chosen, [[("", text)]] * about, ["a long line", "k"]), columns, height)
    lines = "".join(part[1] for part in drawn).split("\n") if drawn else []
    assert len(lines) <= height
    assert all(cell_len(line) == columns for line in lines)
    marked = [line for line in lines if line.startswith("›")]
    assert len(marked) == (total > 0 and height > 0)
    if marked and columns > 4:
        assert marked[0][2:4] == f"{chosen:02}"
    if height > 4:
        assert lines[-1].strip() in ("a long line", "k", "a long line"[:columns].strip())


@given(st.integers(0, 60), st.integers(0, 59), st.integers(3, 40))
def test_rows_that_are_not_on_the_screen_are_marked_at_the_edge_where_they_are(
    total: int, chosen: int, height: int
) -> None:
    chosen = min(chosen, total - 1)
    drawn = fitted_listing(Listing(total, lambda number: [("", f"{number:02}")], chosen), 10, height)
    marks = {int(line[2:4]): line[0] for line in "".join(part[1] for part in drawn).split("\n") if line.strip()}
    if marks:
        assert (marks[min(marks)] == "↑") == (min(marks) > 0)
        assert (marks[max(marks)] == "↓") == (max(marks) < total - 1)
    assert [mark for mark in marks.values() if mark in "↑↓"] == [
        *("↑" for first in marks if first == min(marks) and first > 0),
        *("↓" for last in marks if last == max(marks) and last < total - 1),
    ]


def test_the_chosen_row_keeps_the_colour_of_its_bar() -> None:
    listing = Listing(1, lambda _: [("class:accent", "8 "), (f"{BAR}conversation", "██"), ("", " a message")], 0)
    assert [(style, text.strip()) for style, text, *_ in fitted_listing(listing, 20, 3)] == [
        *(("class:chosen", "›"), ("class:chosen", "8"), (f"{BAR}conversation", "██"), ("class:chosen", "a message"))
    ]


class _Names(ListPanel[str, str]):
    """A list of names."""

    def row(self, row: str, columns: int) -> Line:
        return [("", row)]

    def about(self, columns: int) -> list[Line]:
        return []

    def key_texts(self) -> list[str]:
        return []

    def enter(self) -> None:
        self.end(self.chosen)


def test_the_chosen_row_stays_chosen_whatever_was_searched_for_in_between() -> None:
    panel = _Names()
    panel.fill(["one", "two", "three"])
    panel.move(1)
    for found in (["two", "three"], [], [], ["one", "two", "three"]):
        panel.fill(found)
        assert panel.chosen == ("two" if found else None)


def test_the_first_row_is_chosen_until_the_person_moves() -> None:
    panel = _Names()
    for found in (["one", "two"], [], ["three", "one"], ["two", "three", "one"]):
        panel.fill(found)
        assert panel.chosen == (found[0] if found else None)
    panel.move(1)
    panel.choose_first()
    panel.fill(["three", "one"])
    panel.fill(["one", "two", "three"])
    assert panel.chosen == "one"
