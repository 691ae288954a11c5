"""A quick run fails on what is worse than the page, and on nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.fallen import fallen, untold
from benchmarks.peers.side import NO_END
from tests.benchmarks.samples import compaction, figures, stated


def test_the_same_figures_have_not_fallen() -> None:
    assert fallen(figures(), figures()) == []


@pytest.mark.parametrize(
    ("part", "change", "line"),
    [
        ("replays", {"cost_ratio": 0.056}, "replays, nca (one), cost: 5.6%, on the page 5.0%: worse by more than 2%"),
        ("compactions", {"is_met": False}, "compactions, nca (one), targets met: 0.0%, on the page 100.0%"),
        ("compactions", {"refused_by": ["openai"]}, "compactions, nca (one), valid requests: 0.0%"),
        ("compactions", {"user_turns": [3, 5]}, "compactions, nca (one), user's turns kept: 60.0%, on the page 80.0%"),
    ],
)
def test_each_figure_that_fell_is_one_line(part: str, change: dict[str, Any], line: str) -> None:
    now = figures()
    now[part][0] |= change
    assert [one.startswith(line) for one in fallen(figures(), now)] == [True]
    better = fallen(now, figures())
    assert better == []


def test_a_failure_keeps_nothing_of_what_it_had_to_keep() -> None:
    before, now = figures(), figures()
    for session in "abcdefg":
        for run in (before, now):
            run["headline"].append(stated("nca", "nca", session=session))
    now["headline"][-1]["error"] = "more than 40 s"
    lines = fallen(before, now)
    assert len(lines) == 6
    assert all(line.endswith("worse by more than 2%; 1 of 8 cases failed: more than 40 s") for line in lines)
    assert untold(now) == []


def test_a_case_that_the_machine_was_too_busy_for_is_told_from_a_loss() -> None:
    now = figures()
    now["replays"][0]["error"] = f"{NO_END} 200 s, 3 s of them on the processor"
    assert fallen(figures(), now) == []
    assert untold(now) == ["replays, one: no end in 200 s, 3 s of them on the processor"]


def test_neither_times_nor_other_programs_nor_other_sessions_count() -> None:
    now = figures()
    now["times"][0] |= {"cold_seconds": 100}
    now["compactions"][1] |= {"is_met": False}
    now["compactions"].append(compaction("nca", "nca", material="another", is_met=False))
    now["recalled"] = {"facts": 10, "in_view": 6, "with_search": 10}
    assert fallen(figures(), now) == []
    now["recalled"]["with_search"] = 9
    assert [line.partition(":")[0] for line in fallen(figures(), now)] == ["recalled, with_search"]


def test_a_page_without_these_figures_is_no_page_to_compare_with() -> None:
    with pytest.raises(SystemExit, match="make bench"):
        fallen({}, figures())
