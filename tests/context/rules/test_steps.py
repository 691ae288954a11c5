"""A step is an assistant's calls and their results."""

from __future__ import annotations

from nca.context.rules.steps import steps
from tests.context.samples import assistant, call, calling, result, user


def test_results_are_placed_by_call_and_repeats_are_told_apart() -> None:
    (step,) = steps([user(), calling(call("a"), call("b")), result("b"), result("x"), result("b"), result("a")])
    assert step.position == 1
    assert step.results == {1: 2, 0: 5}
    assert step.repeated == [4]
    assert step.last == 5
    assert not step.is_open


def test_a_step_ends_where_the_assistant_speaks_again() -> None:
    first, second = steps([calling(call("a")), calling(call("b")), result("a"), result("b"), assistant(), result("b")])
    assert first.is_open
    assert first.last == 0
    assert second.results == {0: 3}


def test_talk_has_no_steps() -> None:
    assert list(steps([user(), assistant(), result("a")])) == []
