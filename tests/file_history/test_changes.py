"""Diffs are what git would apply."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from nca.file_history.changes import MAX_COMPARED_LINES, counts, unified

TEXTS = st.lists(st.sampled_from(["a", "b", "c", "", "d\r"]), max_size=40).map("\n".join)


def applied(folder: Path, before: str, diff: str) -> str:
    (folder / "f").write_bytes(before.encode())
    # Empty files need no hunks, and git wants a header of its own for them: the tests leave those out.
    subprocess.run(["git", "apply", "-p1", "-"], input=(diff + "\n").encode(), cwd=folder, check=True)
    return (folder / "f").read_bytes().decode()


@hypothesis_settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(TEXTS, TEXTS)
def test_a_diff_applied_gives_the_new_text(tmp_path: Path, before: str, after: str) -> None:
    diff = unified(before, after, "f")
    if before == after:
        assert diff == ""
    elif before and after:
        assert applied(tmp_path, before, diff) == after


@pytest.mark.parametrize("size", [MAX_COMPARED_LINES + 1, 60_000])
def test_a_large_change_is_shown_as_a_whole_and_still_applies(tmp_path: Path, size: int) -> None:
    before = "first\nsecond\n" + "x\n" * size + "last\nend"
    after = "first\nsecond\n" + "y\nz\n" * size + "last\nend"
    diff = unified(before, after, "f")
    assert counts(diff) == f"+{2 * size} −{size}"
    assert applied(tmp_path, before, diff) == after


def test_a_small_change_in_a_large_file_is_small() -> None:
    before = "".join(f"{number}\n" for number in range(100_000))
    diff = unified(before, before.replace("\n50000\n", "\nhere\n"), "f")
    assert diff.split("\n") == [
        "--- a/f",
        "+++ b/f",
        "@@ -49998,7 +49998,7 @@",
        *(" 49997", " 49998", " 49999", "-50000", "+here", " 50001", " 50002", " 50003"),
    ]


def test_a_missing_end_of_the_last_line_is_said() -> None:
    assert unified("a\n", "a", "f").endswith("-a\n+a\n\\ No newline at end of file")
    assert counts(unified(None, "a\nb", "f")) == "+2 −0"
