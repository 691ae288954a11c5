"""Numbers, sizes and times as people read them, at the places where their form changes."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import nca
from nca.humanize import byte_size, counted, duration, local_time, natural, percent, short_of, short_tokens, some_of


@pytest.mark.parametrize(
    ("written", "number"),
    [("0", 0), ("012", 12), ("999999999", 999_999_999), ("9" * 10, None), ("9" * 5_000, None), ("", None)]
    + [(written, None) for written in ("-1", "+1", " 1", "1_0", "1.0", "²", "x")],
)
def test_a_number_from_outside(written: str, number: int | None) -> None:
    assert natural(written) == number


@pytest.mark.parametrize(
    ("count", "text"),
    [(999, "999"), (1_000, "1.0k"), (9_949, "9.9k"), (9_950, "10k"), (999_499, "999k"), (999_500, "1.0M")],
)
def test_tokens_in_short(count: int, text: str) -> None:
    assert short_tokens(count) == text


@pytest.mark.parametrize(
    ("part", "whole", "text"),
    [
        (86_400, 200_000, "86k/200k"),
        (9_960, 10_040, "9.96k/10.04k"),
        (10_100, 10_400, "10.1k/10.4k"),
        (10_400, 10_400, "10k/10k"),
        (10_041, 10_040, "10.041k/10.040k"),
        (998, 999, "998/999"),
        (1_000_000, 999_999, "1.000000M/0.999999M"),
        (1_210_000, 1_230_000, "1.21M/1.23M"),
    ],
)
def test_two_numbers_of_tokens_never_look_the_same(part: int, whole: int, text: str) -> None:
    assert short_of(part, whole) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (999, "999 bytes"),
        (1_000, "1 kB"),
        (999_499, "999 kB"),
        (999_500, "1.0 MB"),
        (9_949_999, "9.9 MB"),
        (9_950_000, "10 MB"),
        (999_499_999, "999 MB"),
        (999_500_000, "1.0 GB"),
    ],
)
def test_a_size(count: int, text: str) -> None:
    assert byte_size(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(9.94, "9.9 s"), (10, "10 s"), (59.4, "59 s"), (60, "1 min 00 s"), (125, "2 min 05 s")]
)
def test_a_time_span(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_a_count_a_share_and_a_time_that_is_none() -> None:
    assert [counted(0, "day"), counted(1, "day"), counted(1_234, "match", "matches")] == [
        "0 days",
        "1 day",
        "1,234 matches",
    ]
    assert [percent(0), percent(0.004), percent(0.006), percent(1)] == ["0%", "<1%", "1%", "100%"]
    assert local_time(1e30) == "unknown time"


@pytest.mark.parametrize(
    ("most", "text"), [(1, "a and 2 more"), (2, "a, b and 1 more"), (3, "a, b, c"), (4, "a, b, c")]
)
def test_the_first_of_some_names(most: int, text: str) -> None:
    assert some_of(["a", "b", "c"], most) == text


CUT_ELSEWHERE = {
    "agent/hook_process.py": "says below how much it was",
    "agent/usage_breakdown.py": "is cut again",
    "cli/sessions.py": "has the sign in `more`",
    "models/error_details.py": "a number of seconds",
    "terminal/commands/show.py": "is cut again",
    "transcripts/archives.py": "a file's name",
    "transcripts/outgoing/claude.py": "a file's name",
}
"""Files in which an f-string has the first characters of a text, and why nobody takes them for all of it."""
LEAST_OF_A_TEXT = 20


def is_beginning_of_text(node: ast.AST) -> bool:
    """Whether it is `text[:N]`, for as many characters as words have."""
    if not (isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice) and node.slice.lower is None):
        return False
    upper, taken = node.slice.upper, ast.unparse(node.value)
    is_long = isinstance(upper, ast.Constant) and isinstance(upper.value, int) and upper.value >= LEAST_OF_A_TEXT
    is_named = upper is not None and ast.unparse(upper).endswith(("_CHARS", "_NAME", "_CHARS - 1"))
    return (is_long or is_named) and "hex" not in taken and "new_id" not in taken


def test_what_is_cut_ends_with_an_ellipsis() -> None:
    """A message with the beginning of a text reads as if that were all of it: `one_line` says that it is not."""
    root = Path(nca.__file__).parent
    found = set()
    for path in root.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            values = node.values if isinstance(node, ast.JoinedStr) else []
            shown = [value for value in values if isinstance(value, ast.FormattedValue)]
            is_cut = any(is_beginning_of_text(part) for value in shown for part in ast.walk(value))
            if is_cut and "…" not in ast.unparse(node):
                found.add(path.relative_to(root).as_posix())
    # What the model reads of an error is cut in the engine's own way.
    assert {one for one in found if not one.startswith("context/")} == CUT_ELSEWHERE.keys()
