"""Real error replies (tests/models/errors.jsonl), with their text and status, through `nca run`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from nca.models.failures import classify_provider_error
from nca.testing.faults import WINDOW_TOKENS, Fault
from nca.testing.http_exchange import Exchange
from tests.models import test_failures
from tests.testing.cases import Case
from tests.testing.fault_runs import FaultRuns, came_out
from tests.testing.test_faults_run import selected

ADVICE = {
    "compact": "/compact",
    "repair_history": "structure",
    "shrink_payload": "too large in bytes",
    "fail": "",
}


ALWAYS_SENT = frozenset({"max_tokens", "stream_options", "tools"})


def _refused(row: dict[str, Any]) -> str:
    return classify_provider_error(row["body"], status=row["status"], provider=row["provider"]).parameter


def _is_cured(row: dict[str, Any], exchange: Exchange) -> bool:
    """Whether the request is what the reply asked for: a smaller one, less room for the answer, or a later try."""
    if row["action"] in ("backoff", "lower_max_tokens"):
        return exchange.attempt > 1
    if row["action"] == "leave_out":
        return not exchange.request.get(_refused(row))
    return bool(row["is_overflow"]) and not exchange.refuse(WINDOW_TOKENS)


def _replayed(row: dict[str, Any]) -> Fault:
    def run(exchange: Exchange) -> None:
        if _is_cured(row, exchange):
            return exchange.reply()
        kind = "application/json" if row["body"].startswith("{") else "text/html"
        return exchange.send(row["status"], kind, row["body"].encode(), {"retry-after": "0"})

    return run


def _case(row: dict[str, Any]) -> Case:
    """An overflow ends with one compaction and an answer; its look-alikes with none, by waiting or by a clear line."""
    run, action = _replayed(row), row["action"]
    if action in ("backoff", "lower_max_tokens"):
        # A window that turns out smaller than the talk asks for a compaction, whatever else was said.
        compactions = int(row["provider"] == "vllm")
        return Case(row["kind"], run, "answer", requests=2 + 2 * compactions, compactions=compactions, needs_talk=True)
    if action == "leave_out":
        return Case(row["kind"], run, "answer", requests=1 + (_refused(row) in ALWAYS_SENT))
    if row["is_overflow"]:
        return Case(row["kind"], run, "answer", "Compacted", compactions=1, needs_talk=True)
    return Case(row["kind"], run, says=ADVICE[action], needs_talk=True)


CASES = {f"{number}-{row['provider']}-{row['kind']}": _case(row) for number, row in enumerate(test_failures.ROWS)}


@pytest.fixture(scope="module")
def runs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultRuns]:
    with FaultRuns(tmp_path_factory.mktemp("replayed"), "run", cases=CASES) as running:
        running.start(selected(request, "test_a_real_reply_is_answered_as_it_should_be"))
        yield running


@pytest.mark.parametrize("name", CASES)
def test_a_real_reply_is_answered_as_it_should_be(name: str, runs: FaultRuns) -> None:
    fault, outcome = CASES[name], runs.outcome(name)
    problems = came_out(fault, outcome)
    if fault.compactions:
        # How many questions a summary takes depends on the limit that the words have.
        problems = [problem for problem in problems if not problem.startswith("requests")]
    if fault.says == "Compacted":
        assert len([request for request in outcome.refused if request.get("tools")]) == 1
    assert problems == []
