"""Notifications come once, and only if the person may be looking elsewhere."""

from __future__ import annotations

import pytest

from nca.events import ApprovalAsked, ApprovalGiven, Event, TurnFinished, TurnStarted
from nca.terminal.render.output import DONE, WAITS, Notifier, codes

STARTED = TurnStarted("s", 1)
ASKED = ApprovalAsked("1", "shell", "execute", "shell ls")
GIVEN = ApprovalGiven("1", "shell", "once")


def finished(reason: str = "answered") -> TurnFinished:
    return TurnFinished(reason, "", 1, 0.1)  # type: ignore[arg-type]  # a parameter of the tests


class Told:
    """What was told, on a clock of the test's own."""

    def __init__(self, after_seconds: float = 20) -> None:
        self.rung: list[str] = []
        self.now = 1_000.0
        self.notifier = Notifier(self.rung.append, after_seconds, lambda: self.now)

    def after(self, seconds: float, event: Event | None = None) -> list[str]:
        self.now += seconds
        if event is None:
            self.notifier.look()
        else:
            self.notifier.on_event(event)
        return self.rung


def test_a_long_turn_rings_once_and_a_short_one_does_not() -> None:
    told = Told()
    told.after(0, STARTED)
    assert told.after(19, finished()) == []
    told.after(0, STARTED)
    assert told.after(20, finished()) == [DONE]
    assert told.after(100) == [DONE]


def test_an_interrupted_turn_and_zero_seconds_never_ring() -> None:
    told = Told()
    told.after(0, STARTED)
    assert told.after(60, finished("interrupted")) == []
    told = Told(0)
    told.after(0, STARTED)
    assert told.after(60, finished()) == []


def test_a_question_rings_when_it_waits_and_what_follows_counts_from_the_answer() -> None:
    told = Told()
    told.after(0, STARTED)
    assert told.after(5, ASKED) == []
    assert told.after(10) == []
    assert told.after(5) == [WAITS]
    assert told.after(60) == [WAITS]
    told.after(0, GIVEN)
    assert told.after(10, finished()) == [WAITS]


def test_a_question_after_long_work_rings_at_once() -> None:
    told = Told()
    told.after(0, STARTED)
    assert told.after(30, ASKED) == [WAITS]


@pytest.mark.parametrize(
    ("environment", "code"),
    [
        ({}, ""),
        ({"TERM": "xterm-256color"}, ""),
        ({"TERM_PROGRAM": "iTerm.app"}, "\x1b]9;{}\x1b\\"),
        ({"TERM_PROGRAM": "iTerm.app", "TMUX": "/tmp/x"}, ""),
        ({"KITTY_WINDOW_ID": "1"}, "\x1b]99;;{}\x1b\\"),
        ({"TERM": "foot"}, "\x1b]777;notify;nca;{}\x1b\\"),
    ],
)
def test_terminals_that_are_known_get_their_own_code(environment: dict[str, str], code: str) -> None:
    assert codes(DONE, environment) == "\a" + code.format(DONE)
