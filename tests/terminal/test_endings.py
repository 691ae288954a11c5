"""Ctrl-C, SIGTERM, SIGHUP, SIGQUIT and a closed terminal at any moment: nothing is lost.

`make endings` (NCA_ENDINGS=1) is the whole sweep, some 700 chats in half an hour; else there are a few at places that
once were wrong or are of another kind than the others.
"""

from __future__ import annotations

import os
import statistics
import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest

from tests.terminal.endings.chat import Event, Start
from tests.terminal.endings.run import LIMIT_SECONDS, Place, Run
from tests.testing.forks import shared

IS_WHOLE = bool(os.environ.get("NCA_ENDINGS"))
AT_ONCE = 4
INTERRUPTS: tuple[Event, ...] = ("key", "SIGINT")
ENDINGS: tuple[Event, ...] = ("SIGTERM", "SIGHUP", "SIGQUIT", "closing")
EDITOR = {"EDITOR": "sleep 73 #"}
PANEL, EDIT, EXIT = "/context all\r", "\x18\x05", "/exit\r"
pytestmark = pytest.mark.timeout(0 if IS_WHOLE else 600)


@dataclass(frozen=True, slots=True)
class Case:
    """An event, so many seconds into a turn, or behind `keys`, or ("start") behind the start of a new session."""

    event: Event
    seconds: float
    about: str = "turn"
    is_stubborn: bool = False
    is_real: bool = False

    def run(self, place: Place, name: str) -> Run:
        start = Start(
            "" if self.about == "start" else place.session,
            is_stubborn=self.is_stubborn,
            is_real=self.is_real,
            variables=EDITOR,
        )
        # Who leaves anyway may have left before the event.
        run = Run(place, name, self.event, start, other_codes=(0,) if self.about == EXIT else ())
        if self.about == "turn":
            return run.turn(self.seconds)
        return run.start(self.seconds) if self.about == "start" else run.typed(self.about, self.seconds)

    def __str__(self) -> str:
        return f"{self.event} {self.seconds:.2f} s into {self.about!r}"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return Place.make(tmp_path_factory.mktemp("endings"), shared())


def every(
    seconds: float, count: int, events: Sequence[Event], about: str = "turn", *, is_real: bool = False
) -> list[Case]:
    """Every event at `count` moments; the servers of some end for nobody."""
    moments = [(number * seconds, event) for number in range(count) for event in events]
    return [Case(event, moment, about, index % 4 == 0, is_real) for index, (moment, event) in enumerate(moments)]


def outcome(place: Place, cases: Sequence[Case]) -> list[str]:
    """What was wrong, one line each; what the whole of it was goes to standard output."""
    # A command begins with a slash, which would lead out of the folder.
    name = cases[0].about.strip().lstrip("/").replace(" ", "-")
    with ThreadPoolExecutor(AT_ONCE) as pool:
        runs = list(pool.map(lambda number: cases[number].run(place, f"{name}-{number}"), range(len(cases))))
    for event in dict.fromkeys(case.event for case in cases):
        of_event = [run for run in runs if run.event == event]
        seconds = [run.seconds for run in of_event]
        sys.stdout.write(
            f"{event}: {len(of_event)} runs, {sum(bool(run.problems) for run in of_event)} with problems, "
            f"{dict(Counter(run.outcome for run in of_event))}, median {statistics.median(seconds):.2f} s, "
            f"longest {max(seconds):.2f} s, {sum(time > LIMIT_SECONDS for time in seconds)} above {LIMIT_SECONDS} s\n"
        )
    wrong = [f"{case}: {problem}" for case, run in zip(cases, runs, strict=True) for problem in run.problems]
    sys.stdout.write("".join(f"{problem}\n" for problem in wrong))
    return wrong


def test_in_a_turn(place: Place) -> None:
    few = [
        Case("key", 0.0),
        Case("SIGINT", 0.0),
        Case("key", 0.3),
        Case("SIGINT", 1.0),
        Case("key", 1.5, is_stubborn=True),
        Case("SIGINT", 2.0),
        Case("SIGTERM", 0.0),
        Case("SIGTERM", 1.3),
        Case("SIGHUP", 1.9, is_stubborn=True),
        Case("SIGQUIT", 1.0),
        Case("closing", 1.3),
    ]
    whole = [*every(0.02, 151, INTERRUPTS), *every(0.05, 61, ENDINGS)]
    assert outcome(place, whole if IS_WHOLE else few) == []


def test_at_the_start(place: Place) -> None:
    few = [Case("SIGINT", 0.15, "start"), Case("SIGTERM", 0.2, "start", is_real=True)]
    whole = [
        *every(0.02, 50, (*INTERRUPTS, *ENDINGS), "start"),
        *every(0.03, 50, (*INTERRUPTS, *ENDINGS), "start", is_real=True),
    ]
    assert outcome(place, whole if IS_WHOLE else few) == []


def test_while_a_panel_is_drawn(place: Place) -> None:
    few = [Case("SIGINT", 0.05, PANEL)]
    assert outcome(place, every(0.02, 15, (*INTERRUPTS, *ENDINGS), PANEL) if IS_WHOLE else few) == []


def test_while_an_editor_has_the_terminal(place: Place) -> None:
    few = [Case("SIGTERM", 0.4, EDIT), Case("key", 0.4, EDIT)]
    # A SIGINT for nca alone is not for the editor, and means nothing.
    assert outcome(place, every(0.04, 15, ("key", *ENDINGS), EDIT) if IS_WHOLE else few) == []


def test_while_it_leaves(place: Place) -> None:
    few = [Case("SIGTERM", 0.3, EXIT, is_stubborn=True), Case("key", 0.2, EXIT, is_stubborn=True)]
    assert outcome(place, every(0.04, 30, (*INTERRUPTS, *ENDINGS), EXIT) if IS_WHOLE else few) == []
