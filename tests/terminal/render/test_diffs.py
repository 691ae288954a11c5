"""Diffs as a person reads them."""

from __future__ import annotations

from io import StringIO

from hypothesis import example, given
from hypothesis import strategies as st
from rich.console import Console
from rich.text import Text

from nca.terminal.render.file_changes import LONGEST_LINE_CHARS, DiffLine, diff_lines

TITLE = "--- a/x\n+++ b/x\n@@ -1,4 +1,4 @@\n"


def texts(diff: str, most: int = 100) -> list[Text]:
    """The lines before they are folded."""
    return [line.text if isinstance(line, DiffLine) else line for line in diff_lines(diff, most)]


def bold(line: Text) -> list[str]:
    return [line.plain[span.start : span.end] for span in line.spans if span.style == "bold"]


def styles(diff: str) -> list[str]:
    return [str(line.style) for line in texts(diff)]


def test_the_names_are_on_the_screen_already_and_each_kind_has_its_colour() -> None:
    assert styles(TITLE + " same\n-gone\n+come\n+more") == ["accent", "quiet", "removed", "added", "added"]
    for before, after, said in (("/dev/null", "b/x", "new file"), ("a/x", "/dev/null", "deleted")):
        assert texts(f"--- {before}\n+++ {after}\n@@ -0,0 +1 @@\n+x")[0].plain == f"  {said}"
    assert styles("@@ -1 +1 @@\n--- sql comment\n+++ x") == ["accent", "removed", "added"]


def test_what_differs_within_a_line_is_bold() -> None:
    lines = texts(TITLE + "-value = call(1, two)\n-b = 2\n+value = call(1, three)\n+b = 3")
    assert [bold(line) for line in lines[1:]] == [["wo"], ["2"], ["hree"], ["3"]]


def test_lines_that_share_little_or_do_not_pair_are_not_compared() -> None:
    assert [bold(line) for line in texts(TITLE + "-alpha beta\n+zulu")[1:]] == [[], []]
    assert [bold(line) for line in texts(TITLE + "-a = 1\n-a = 2\n+a = 3")[1:]] == [[], [], []]


def test_a_line_of_any_length_is_bounded_and_nothing_hostile_passes() -> None:
    line = texts(f"+{'x' * 100_000}")[0].plain
    assert len(line) < LONGEST_LINE_CHARS + 50
    assert line.endswith("… (100,001 characters)")
    hostile = texts("+a\x1b[2J\x07b\u202e")
    assert [one.plain for one in hostile] == ["  +a⟨U+001B⟩[2J⟨U+0007⟩b⟨U+202E⟩"]


def test_what_looks_like_something_else_has_a_mark() -> None:
    lines = texts("+\ta\tb\n+windows\r\n+end \n \n+⇥␠␍")
    assert [one.plain for one in lines] == [
        *("  +⇥   a⇥   b", "  +windows␍", "  +end␠", "   ", "  +⟨U+21E5⟩⟨U+2420⟩⟨U+240D⟩")
    ]


@given(
    indent=st.integers(0, 12),
    words=st.lists(st.text("abc", min_size=1, max_size=60), min_size=1),
    columns=st.integers(30, 90),
)
@example(indent=8, words=["a" * 38, "a"], columns=30)
def test_a_line_that_is_wider_than_the_window_goes_on_below_its_beginning(
    indent: int, words: list[str], columns: int
) -> None:
    line = f"+{' ' * indent}{' '.join(words)}"
    console = Console(width=columns, file=StringIO())
    with console.capture() as printed:
        console.print(*diff_lines(line, 1))
    rows = printed.get().rstrip("\n").split("\n")
    assert rows[0].startswith(f"  +{' ' * indent}{words[0][:10]}")
    further = "↪ ".ljust(indent + 3)
    assert all(row.startswith(further) and row[indent + 3] != " " for row in rows[1:])
    assert max(map(len, rows)) <= columns
    assert "".join("".join(rows).replace("↪", "").split()) == f"+{''.join(words)}"


def test_empty_lines_that_stay_do_not_end_a_diff() -> None:
    assert [one.plain for one in texts("@@ -1,3 +1,4 @@\n a\n+b\n \n ")] == ["  @@ -1,3 +1,4 @@", "   a", "  +b"]
    assert [one.plain for one in texts("@@ -1 +1,3 @@\n+b\n+\n-")][1:] == ["  +b", "  +", "  -"]


def test_what_is_left_out_is_said() -> None:
    assert texts("+a\n+b\n+c", 2)[-1].plain == "  … and 1 more line not shown"
