"""A run of all parts: what was measured stays when a later part breaks off."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.__main__ import NOT_ASKED, _with_others, on_page, one_by_one, renewed_among
from benchmarks.readme import FIGURES


def test_a_run_that_broke_off_goes_on_where_it_was(tmp_path: Path) -> None:
    measured: list[str] = []

    def part(name: str, *, breaks: bool = False) -> Callable[[], list[str]]:
        def measure() -> list[str]:
            if breaks:
                raise OSError("no space left")
            measured.append(name)
            return [name]

        return measure

    file = tmp_path / "new" / "unfinished.json"
    with pytest.raises(OSError, match="no space"):
        one_by_one({"a": part("a"), "b": part("b", breaks=True), "c": part("c")}, file)
    found = one_by_one({name: part(name) for name in "abc"}, file)
    assert found == {"a": ["a"], "b": ["b"], "c": ["c"]}
    assert measured == ["a", "b", "c"]


def test_a_program_that_is_measured_alone_leaves_the_others_as_they_are() -> None:
    def row(peer: str, variant: str, label: str, told: int) -> dict[str, object]:
        return {"peer": peer, "variant": variant, "label": label, "told": told}

    old, new = ({"version": version, "reason": ""} for version in ("1.4.7", "1.5.2"))
    own, trim = row("nca", "extract", "nca", 1), row("langchain", "trim_messages", "langchain trim_messages", 1)
    before = {"effects": [own, trim], "peers": {"nca": old, "langchain": old}}
    again, other = {**trim, "told": 2}, row("nca", "extract", "nca", 9)
    peers = {"nca": {"version": "", "reason": NOT_ASKED}, "langchain": new, "llm": {"version": "", "reason": NOT_ASKED}}
    found = renewed_among(before, {"effects": [other, again], "peers": peers}, ["langchain trim_messages"])
    assert found["effects"] == [own, again]
    assert found["peers"] == {"nca": old, "langchain": {**new, "earlier": "1.4.7"}}
    whole = renewed_among(found, {"effects": [other], "peers": {"langchain": new}}, [])
    assert whole == {"effects": [other], "peers": {"langchain": {**new, "earlier": "1.4.7"}}}


def test_what_another_command_has_measured_leaves_the_dates_of_the_parts() -> None:
    found = _with_others({"probes": {"rows": []}})
    assert found["renewed"] == on_page()["renewed"]
    assert found["headline"] == on_page()["headline"]
    assert _with_others({"renewed": {}})["renewed"] == {}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--label", "nca"], "--label needs --only, which says what to measure again"),
        (
            ["--only", "effects", "--label", "nobody"],
            "--label: no program is named 'nobody'; valid: Codex's local rule",
        ),
        (
            ["--only", "counts", "--label", "nca"],
            "--label: 'counts' has no rows by program; valid with it: compactions",
        ),
        (["--quick", "--only", "times"], "--quick: 'times' is not compared with the page; valid: headline, marked"),
        (["--only", "effects"], "--only: the page has sessions of NCA_TRANSCRIPTS, which this run would take away"),
    ],
)
def test_a_program_that_is_not_there_is_one_clear_line(arguments: list[str], said: str) -> None:
    command = [sys.executable, "-m", "benchmarks", *arguments]
    environment = {name: value for name, value in os.environ.items() if name != "NCA_TRANSCRIPTS"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=FIGURES.parents[1], env=environment)
    assert done.returncode == 2
    assert said in done.stderr.splitlines()[-1]


def test_a_quick_run_compares_nca_alone_and_writes_nothing() -> None:
    command = [sys.executable, "-m", "benchmarks", "--quick", "--only", "replays", "--only", "recalled"]
    root = FIGURES.parents[1]
    before = FIGURES.read_bytes()
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=root)
    # An engine that has just changed may be behind its page; that is said line by line.
    assert [line for line in done.stderr.splitlines() if not line.startswith("worse: ")] == []
    assert done.returncode == bool(done.stderr)
    assert "replays: nca" in done.stdout
    assert "NeuroLink" not in done.stdout
    assert FIGURES.read_bytes() == before
