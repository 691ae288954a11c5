"""Every failure of the provider through `nca run`: what is shown, stored and sent."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nca.testing.faults import FAULTS
from nca.testing.provider import Provider
from nca.testing.scripted import in_order
from tests.testing.cases import CASES, THEMES
from tests.testing.fault_runs import ANSWER, FaultRuns, Outcome, came_out
from tests.testing.forks import forked

SEPARATE = ("rate-limited", "cut-in-the-middle", "overflow-of-anthropic")
"""Also through processes that a shell would start: that a fork is no other command than theirs."""


@pytest.fixture(scope="module")
def runs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultRuns]:
    with FaultRuns(tmp_path_factory.mktemp("run"), "run") as running:
        running.start(selected(request, "test_every_fault_ends_as_it_should"))
        yield running


def selected(request: pytest.FixtureRequest, test: str) -> list[str]:
    """The scripts that are asked for in this run, so that all of them can be started at once."""
    items: list[Any] = [item for item in request.session.items if getattr(item, "originalname", "") == test]
    return [item.callspec.params["name"] for item in items if item.path == request.path]


def test_the_list_is_long_and_no_script_is_named_twice() -> None:
    assert len(CASES) == sum(len(theme) for theme in THEMES) >= 170
    assert all(case.about and case.requests > 0 for case in CASES.values())


def test_every_fault_that_ships_is_tried() -> None:
    assert FAULTS.keys() <= CASES.keys()


@pytest.mark.parametrize("name", CASES)
def test_every_fault_ends_as_it_should(name: str, runs: FaultRuns) -> None:
    fault, outcome = CASES[name], runs.outcome(name)
    assert came_out(fault, outcome) == []
    assert len(outcome.rows) == len(fault.stored)
    assert outcome.stderr == ""
    finished = outcome.of("turn_finished")
    assert [event["reason"] for event in finished] == [
        fault.reason or {"answer": "answered", "error": "failed"}.get(fault.outcome, fault.outcome)
    ]
    errors = outcome.of("error_raised")
    assert len(errors) == (fault.outcome == "error")
    assert all("\n" not in error["message"] + error["advice"] for error in errors)
    assert all(error["exit_code"] == fault.exit_code and error["advice"] for error in errors)
    shown = fault.shown or (ANSWER if fault.outcome == "answer" else "")
    assert shown in outcome.answer
    assert outcome.answer.count(ANSWER) <= 1
    assert all(event["used_tokens"] <= event["budget_tokens"] for event in outcome.of("request_started"))
    check_compactions(outcome)
    if fault.wait_seconds is not None:
        assert outcome.of("retry_scheduled")[0]["wait_seconds"] == fault.wait_seconds


def check_compactions(outcome: Outcome) -> None:
    """Every `starting` is closed by exactly one other phase."""
    phases = [event["phase"] for event in outcome.of("context_compaction")]
    assert phases[::2] == ["starting"] * (len(phases) // 2)
    assert "starting" not in phases[1::2]
    assert phases.count("completed") == outcome.compactions


@pytest.fixture(scope="module")
def separate(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultRuns]:
    with FaultRuns(tmp_path_factory.mktemp("separate"), "run", is_separate=True) as running:
        running.start(selected(request, "test_a_process_of_its_own_does_the_same"))
        yield running


@pytest.mark.parametrize("name", SEPARATE)
def test_a_process_of_its_own_does_the_same(name: str, separate: FaultRuns) -> None:
    assert came_out(CASES[name], separate.outcome(name)) == []


@pytest.mark.parametrize(
    ("address", "retries"),
    [("http://127.0.0.1:9/v1", 1), ("http://no-such-host.invalid/v1", 2), ("https://127.0.0.1:{}/v1", 0)],
)
def test_what_cannot_be_reached_is_named(address: str, retries: int, tmp_path: Path) -> None:
    """Refused, without a name, and a server that speaks no TLS, which waiting does not change."""
    with Provider(in_order(ANSWER)) as provider:
        address = address.format(provider.port)
        done = forked("run", "Hello", "-m", "openai/x", home=tmp_path, OPENAI_API_KEY="k", OPENAI_API_BASE=address)
        assert provider.requests == []
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.count("Retrying") == retries
    assert address in done.stderr.splitlines()[-2]
    assert "OPENAI_API_BASE" in done.stderr.splitlines()[-1]
