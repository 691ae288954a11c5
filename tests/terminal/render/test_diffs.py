"""Diffs as a person reads them."""

from __future__ import annotations

from rich.text import Text

from nca.terminal.render.diffs import LONGEST_LINE_CHARS, diff_lines

TITLE = "--- a/x\n+++ b/x\n@@ -1,4 +1,4 @@\n"


def bold(line: Text) -> list[str]:
    return [line.plain[span.start : span.end] for span in line.spans if span.style == "bold"]


def styles(diff: str) -> list[str]:
    return [str(line.style) for line in diff_lines(diff, 100)]


def test_the_names_are_on_the_screen_already_and_each_kind_has_its_colour() -> None:
    assert styles(TITLE + " same\n-gone\n+come\n+more") == ["accent", "quiet", "removed", "added", "added"]
    for before, after, said in (("/dev/null", "b/x", "new file"), ("a/x", "/dev/null", "deleted")):
        assert diff_lines(f"--- {before}\n+++ {after}\n@@ -0,0 +1 @@\n+x", 9)[0].plain == f"  {said}"
    assert styles("@@ -1 +1 @@\n--- sql comment\n+++ x") == ["accent", "removed", "added"]


def test_what_differs_within_a_line_is_bold() -> None:
    lines = diff_lines(TITLE + "-value = call(1, two)\n-b = 2\n+value = call(1, three)\n+b = 3", 100)
    assert [bold(line) for line in lines[1:]] == [["wo"], ["2"], ["hree"], ["3"]]


def test_lines_that_share_little_or_do_not_pair_are_not_compared() -> None:
    assert [bold(line) for line in diff_lines(TITLE + "-alpha beta\n+zulu", 100)[1:]] == [[], []]
    assert [bold(line) for line in diff_lines(TITLE + "-a = 1\n-a = 2\n+a = 3", 100)[1:]] == [[], [], []]


def test_a_line_of_any_length_is_bounded_and_nothing_hostile_passes() -> None:
    line = diff_lines(f"+{'x' * 100_000}", 10)[0].plain
    assert len(line) < LONGEST_LINE_CHARS + 50
    assert line.endswith("… (100,001 characters)")
    hostile = diff_lines("+a\x1b[2J\x07b\u202e", 10)
    assert [one.plain for one in hostile] == ["  +a⟨U+001B⟩[2J⟨U+0007⟩b⟨U+202E⟩"]


def test_what_looks_like_something_else_has_a_mark() -> None:
    lines = diff_lines("+\ta\tb\n+windows\r\n+end \n \n+⇥␠␍", 10)
    assert [one.plain for one in lines] == [
        *("  +⇥   a⇥   b", "  +windows␍", "  +end␠", "   ", "  +⟨U+21E5⟩⟨U+2420⟩⟨U+240D⟩")
    ]


def test_what_is_left_out_is_said() -> None:
    assert diff_lines("+a\n+b\n+c", 2)[-1].plain == "  … and 1 more line not shown"
