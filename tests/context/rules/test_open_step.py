"""A step that still waits for results cannot be touched, and neither can anything after it."""

from __future__ import annotations

from nca.context.rules.steps import open_step, open_step_spans
from tests.context.samples import assistant, call, calling, result, user


def test_the_open_step_is_the_last_assistant_that_waits() -> None:
    waiting = [user(), calling(call("a"), call("b")), result("b"), user("hurry")]
    assert open_step(waiting) == 1
    assert list(open_step_spans(waiting)) == [(1, 3)]


def test_a_closed_step_or_an_older_gap_is_not_open() -> None:
    assert open_step([user(), calling(call("a")), result("a")]) is None
    assert open_step([user(), calling(call("a")), assistant()]) is None
    assert open_step([user()]) is None
    assert list(open_step_spans([user()])) == []


def test_two_calls_with_one_id_wait_for_two_results() -> None:
    assert open_step([calling(call("a"), call("a")), result("a")]) == 0
    assert open_step([calling(call("a"), call("a")), result("a"), result("a")]) is None
