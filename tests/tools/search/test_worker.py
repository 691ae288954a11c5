"""Glob patterns against paths, and the part of a line that is shown."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nca.tools.search_worker import SHOWN_CHARS, around, matcher


@pytest.mark.parametrize(
    ("pattern", "fits", "fits_not"),
    [
        ("*.py", ["a.py", "x/y/a.py"], ["a.pyc", "a.py/x"]),
        ("./*.py", ["a.py"], ["a.txt"]),
        ("src/*.py", ["src/a.py"], ["src/x/a.py", "a.py", "x/src/a.py"]),
        ("src/**/*.py", ["src/a.py", "src/x/y/a.py"], ["a.py", "lib/src/a.py"]),
        ("**/test_*", ["test_a", "x/test_a"], ["x/a_test_"]),
        ("src/**", ["src/a", "src/x/y"], ["a", "srcs/a"]),
        ("src/", ["src/a", "src/x/y"], ["src.py"]),
        ("*.{ts,tsx}", ["a.ts", "x/a.tsx"], ["a.t"]),
        ("{a,b}/{c,d}.py", ["a/c.py", "b/d.py"], ["a/e.py"]),
        ("a?c", ["abc"], ["ac", "a/c"]),
        ("[ab].py", ["a.py"], ["c.py"]),
        ("[!a].py", ["b.py"], ["a.py"]),
        ("**", ["a", "a/b"], []),
        ("a+(b).$", ["a+(b).$"], ["aab."]),
    ],
)
def test_what_fits(pattern: str, fits: list[str], fits_not: list[str]) -> None:
    matches = matcher(pattern)
    assert [name for name in fits if not matches(name)] == []
    assert [name for name in fits_not if matches(name)] == []


@pytest.mark.parametrize("pattern", ["", " ", "!", "!*.py", "/etc/*", "x" * 2_000, "{a,b}" * 12])
def test_what_is_no_pattern(pattern: str) -> None:
    with pytest.raises(ValueError):
        matcher(pattern)


def test_no_pattern_takes_long() -> None:
    """A regular expression for these would take years."""
    assert not matcher("*a" * 60 + "b")("a" * 250)
    assert not matcher("**/" * 60 + "b")("a/" * 500 + "c")


@given(st.integers(1, 3 * SHOWN_CHARS).flatmap(lambda length: st.tuples(st.just(length), st.integers(0, length - 1))))
def test_a_line_is_shown_around_the_match_and_says_where_it_goes_on(case: tuple[int, int]) -> None:
    length, at = case
    line = "".join(map(chr, range(0x4E00, 0x4E00 + length)))
    shown = around(line, at)
    part = shown.strip("…")
    assert line[at] in part
    assert part in line
    assert len(part) == min(length, SHOWN_CHARS)
    before, after = line.split(part)
    assert shown == bool(before) * "…" + part + bool(after) * "…"
