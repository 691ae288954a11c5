"""A run of all parts: what was measured stays when a later part breaks off."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.__main__ import TOO_BUSY, compared, named_by, one_by_one
from benchmarks.figures import FIGURES, NOT_ASKED, as_first_counted, on_page, renewed_among, with_others
from benchmarks.peers.side import NO_END
from benchmarks.stated import Recorded
from tests.testing.forks import standing


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


def test_sessions_that_are_not_here_keep_their_rows() -> None:
    def row(label: str, session: str, told: int) -> dict[str, object]:
        return {"peer": label, "label": label, "session": session, "told": told}

    before = {"headline": [row("nca", "here", 1), row("nca", "elsewhere", 2), row("llm", "here", 3)], "effects": [1]}
    found = {"headline": [row("nca", "here", 4)], "effects": [], "peers": {}}
    kept = row("nca", "elsewhere", 2)
    joined = renewed_among(before, found, [])
    assert (joined["headline"], joined["effects"]) == ([kept, row("nca", "here", 4)], [1])
    assert row("llm", "here", 3) in renewed_among(before, found, ["nca"])["headline"]


def test_what_nca_kept_of_a_session_at_first_contact_stays_as_first_counted() -> None:
    def row(peer: str, session: str, told: int, window: int = 8_000) -> dict[str, object]:
        return {"peer": peer, "variant": "v", "session": session, "window_tokens": window, "told": told}

    settings = {"first_contact": {"sessions": ["new"]}}
    before = {"headline": [row("nca", "new", 1), row("nca", "old", 1), row("llm", "new", 1)], "settings": {}}
    again = [row("nca", "new", 2), row("nca", "new", 2, 12_000), row("nca", "old", 2), row("llm", "new", 2)]
    found = as_first_counted(before, {"settings": settings, "headline": again})["headline"]
    assert found == [row("nca", "new", 1), *again[1:]], "what was not counted before is counted first now"
    assert as_first_counted({}, {"settings": settings, "headline": again})["headline"] == again
    assert as_first_counted(before, {"settings": {}, "headline": again})["headline"] == again


def test_what_another_command_has_measured_leaves_the_dates_of_the_parts() -> None:
    found = with_others({"probes": {"rows": []}})
    assert found["renewed"] == on_page()["renewed"]
    assert found["headline"] == on_page()["headline"]
    assert with_others({"renewed": {}})["renewed"] == {}


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
        (["--only", "times", "--session", "winter"], "--session needs --only, and no part but headline or next_steps"),
        (["--session", "winter"], "--session needs --only, and no part but headline or next_steps"),
        (["--quick", "--only", "times"], "--quick: 'times' is not compared with the page; valid: headline, marked"),
    ],
)
def test_a_program_that_is_not_there_is_one_clear_line(arguments: list[str], said: str) -> None:
    command = standing("benchmarks", *arguments)
    environment = {name: value for name, value in os.environ.items() if name != "NCA_TRANSCRIPTS"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=FIGURES.parents[1], env=environment)
    assert done.returncode == 2
    assert said in done.stderr.splitlines()[-1]


def test_some_sessions_are_measured_by_name() -> None:
    sessions = [Recorded(name, [], []) for name in ("one", "two")]
    assert named_by(sessions, ["two"]) == sessions[1:]
    assert named_by(sessions, []) == sessions
    with pytest.raises(SystemExit, match="--session: there is no session 'three'; valid: one, two"):
        named_by(sessions, ["two", "three"])


def test_a_quick_run_ends_by_what_it_finds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def quick(**change: object) -> int:
        replays = [{**row, **(change if row["peer"] == "nca" else {})} for row in on_page()["replays"]]
        try:
            compared({"replays": replays, "renewed": {}}, tmp_path)
        except SystemExit as end:
            return int(str(end.code))
        return 0

    before = FIGURES.read_bytes()
    assert (quick(), capsys.readouterr().err) == (0, "")
    assert quick(error=f"{NO_END} 200 s, 3 s of them on the processor") == TOO_BUSY
    assert capsys.readouterr().err.startswith("not told, the machine was too busy: replays, extract: no end in 200 s")
    assert quick(error="more than 20 s") == 1
    assert "worse: replays, nca, valid requests: 0.0%, on the page 100.0%" in capsys.readouterr().err
    assert (tmp_path / "quick.md").read_text(encoding="utf-8").startswith("# Benchmarks")
    assert FIGURES.read_bytes() == before
