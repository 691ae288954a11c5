"""All provider failures that are tried, with the expected outcome, by the model's name."""

from __future__ import annotations

from nca.testing.faults import Fault
from tests.testing.cases import answers, bodies, calls, overflows, rates, statuses, streams, summaries, transport
from tests.testing.cases.case import Case

__all__ = ["CASES", "RUNS", "Case"]

THEMES = (
    statuses.CASES,
    rates.CASES,
    transport.CASES,
    bodies.CASES,
    streams.CASES,
    answers.CASES,
    calls.CASES,
    overflows.CASES,
    summaries.CASES,
)

CASES: dict[str, Case] = {name: case for theme in THEMES for name, case in theme.items()}
RUNS: dict[str, Fault] = {name: case.run for name, case in CASES.items()}
"""For a Provider."""
