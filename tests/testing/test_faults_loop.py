"""Every failure of the provider in the chat; afterwards the session continues with another model."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.testing.cases import CASES
from tests.testing.fault_runs import ANSWER, FaultRuns, came_out, question
from tests.testing.test_faults_run import selected


@pytest.fixture(scope="module")
def runs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultRuns]:
    with FaultRuns(tmp_path_factory.mktemp("loop"), "loop") as running:
        running.start(selected(request, "test_every_fault_leaves_a_chat_that_goes_on"))
        yield running


@pytest.mark.parametrize("name", CASES)
def test_every_fault_leaves_a_chat_that_goes_on(name: str, runs: FaultRuns) -> None:
    fault, outcome = CASES[name], runs.outcome(name)
    assert came_out(fault, outcome) == []
    assert outcome.rows == (*fault.stored, "user", "assistant")
    assert "\x1b" not in outcome.stdout + outcome.stderr
    shown = fault.shown or (ANSWER if fault.outcome == "answer" else "")
    assert shown in outcome.stdout
    assert outcome.stdout.count(ANSWER) == 1 + (shown == ANSWER) + (name == "stalls-before-the-end")
    (last,) = (request for request in outcome.requests if request["model"] == "plain")
    assert question(name) in str(last["messages"])
