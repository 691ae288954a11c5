"""The section on nca's own goals: goal, measurement, and whether it is met."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from benchmarks.summed import seconds, table

Figures = Mapping[str, Any]
Goal = tuple[str, str, str, bool]
"""What, the goal, what was measured, and whether the goal is met."""
SESSION, BESIDE = "nca, in a session", "NeuroLink, stages 1, 2, 4"
MOST_CHECK_SECONDS = 50e-6
COMPACTIONS = {10_000: (3e-3, 3.1e-3), 100_000: (70e-3, 72e-3)}
"""Seconds by the number of messages: nca's goal, and what NeuroLink took on the machine that the goal was set on."""


def goals(figures: Figures) -> Iterator[str]:
    """Lines of Markdown; none if nothing with a goal was measured."""
    found = [*_of_times(figures["times"]), *_of_growth(figures.get("growth") or {})]
    if not found:
        return
    yield "## Goals"
    yield ""
    rows = [(what, goal, measured, "yes" if is_met else "**no**") for what, goal, measured, is_met in found]
    yield from table(("", "goal", "measured", "met"), rows)
    yield ""
    yield (
        "The goals for compaction times were set on another machine, next to NeuroLink's times there. What counts is"
        " therefore the ratio to NeuroLink's time in the same run."
    )
    yield ""


def _of_times(times: list[dict[str, Any]]) -> Iterator[Goal]:
    rows = {(row["label"], row["messages"]): row for row in times}
    checks = [row["check_seconds"] for row in times if row["label"] == SESSION and "check_seconds" in row]
    if checks:
        is_met = max(checks) <= MOST_CHECK_SECONDS
        yield "check, at any length", seconds(MOST_CHECK_SECONDS), seconds(max(checks)), is_met
    for length, (goal, beside) in COMPACTIONS.items():
        own, other = rows.get((SESSION, length), {}), rows.get((BESIDE, length), {})
        if "seconds" not in own or "seconds" not in other:
            continue
        ratio = own["seconds"] / other["seconds"]
        what = f"stages 1, 2, 4 of {length:,} messages"
        aim = f"{seconds(goal)} against NeuroLink's {seconds(beside)}: {goal / beside:.2f} ×"
        measured = f"{seconds(own['seconds'])} against {seconds(other['seconds'])}: {ratio:.2f} ×"
        yield what, aim, measured, ratio <= goal / beside
        share = f"{own['of_target']:.2f} × (NeuroLink {other['of_target']:.2f} ×)"
        yield f"{what}: size of the result", "at most the target", share, own["of_target"] <= 1


def _of_growth(growth: Mapping[str, Any]) -> Iterator[Goal]:
    if not growth:
        return
    found = growth["verdicts"]
    turn, mean, resume = found["turn_growth"], found["turn_mean_growth"], found["resume_seconds"]
    shortest = f"{growth['lengths'][0]['messages']:,}"
    longest = f"a turn at {turn['messages']:,} messages compared with one at {shortest}"
    for what, one in ((longest, turn), (f"{longest}, compactions included", mean)):
        yield what, f"{one['goal']:g} ×", f"{one['ratio']:.2f} ×", one["ratio"] <= one["goal"]
    if resume["took"] is not None:
        what = f"resume of {resume['at']:,} messages"
        yield what, seconds(resume["goal"]), seconds(resume["took"]), resume["took"] <= resume["goal"]
