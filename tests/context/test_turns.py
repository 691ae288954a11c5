"""Turns: which are complete, and when there are too many."""

from __future__ import annotations

import pytest

from nca.context.history import complete_turns
from nca.context.policy import has_too_many_turns
from nca.context.view import Marker, View
from nca.messages import Message
from tests.context.logs import history_of
from tests.context.samples import agent_turn, assistant, calling, talk, user
from tests.context.samples import call as a_call


def test_every_turn_but_one_in_progress_is_complete() -> None:
    history = history_of([Message("system", "Rules."), *talk(3)])
    assert complete_turns(history.visible()) == [2, 4, 6]
    assert complete_turns(history_of([*talk(3), user()]).visible()) == [1, 3, 5]
    assert complete_turns(history_of([*talk(1), *agent_turn(2)]).visible()) == [1]
    assert complete_turns(history_of([user(), calling(a_call("a"))]).visible()) == []
    assert complete_turns(history_of([assistant()]).visible()) == []
    assert complete_turns([]) == []


def test_what_nca_wrote_begins_no_turn_and_a_pin_cannot_leave() -> None:
    history = history_of([user(), assistant(), Message("user", "[made]", source="nca"), assistant(), *talk(1)])
    assert complete_turns(history.visible()) == [1, 5]
    assert complete_turns(history.visible(), {1}) == [5]


@pytest.mark.parametrize(("limit", "is_due"), [(0, False), (3, True), (4, False)])
def test_too_many_is_more_than_the_limit(limit: int, is_due: bool) -> None:
    assert has_too_many_turns(history_of([*talk(4), user()]), limit) == is_due


def test_hidden_turns_are_not_counted() -> None:
    history = history_of(talk(4))
    history.view = View((Marker("m", ((1, 4),), ""),), 5)
    assert complete_turns(history.visible()) == [5, 7]
    assert not has_too_many_turns(history, 2)
