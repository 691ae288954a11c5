"""System messages, pins, the newest user message and the open step."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nca.context.rules.untouchable import untouchable
from nca.context.todo import NAME as TODO
from nca.context.view import Marker, View
from nca.messages import Message, ToolCall
from tests.context.logs import history_of, logs
from tests.context.samples import assistant, call, calling, result, some, user

LOG = [
    Message("system", "Rules."),
    user("One."),
    assistant(),
    user("Two."),
    Message("user", "A record.", source="nca"),
    calling(call("a"), call("b")),
    result("a"),
]


def test_what_stays() -> None:
    history = history_of(LOG, pins={3})
    assert history.newest_user == 4
    assert untouchable(history) == {1, 3, 4, 6, 7}
    assert untouchable(history_of([*LOG, result("b")])) == {1, 4}
    assert history_of([assistant()]).newest_user is None


def test_the_open_list_stays_until_the_model_has_left_it_behind() -> None:
    listed = calling(ToolCall("t", TODO, '{"doing": "read", "open": ["test"]}'))
    log = [user("One."), listed, Message("tool", "[0 of 2 done]", tool_call_id="t", name=TODO), assistant()]
    assert untouchable(history_of(log)) == {1, 2}
    log += [user("Two."), assistant(), Message("user", "A note.", source="nca"), assistant()]
    assert untouchable(history_of(log)) == {2, 5}
    log += [user("Three."), assistant()]
    assert untouchable(history_of(log)) == {9}


def test_a_hidden_system_message_has_gone_already() -> None:
    history = history_of([Message("system", "Rules."), user("One."), assistant(), user("Two."), assistant()])
    assert untouchable(history) == {1, 4}
    history.view = View((Marker("clear", ((1, 3),), ""),), 4)
    assert untouchable(history) == {4}


@some
@given(logs(), st.sets(st.integers(1, 100)))
def test_pins_of_messages_that_are_there_stay(messages: list[Message], pins: set[int]) -> None:
    kept = untouchable(history_of(messages, pins=pins))
    assert kept <= set(range(1, len(messages) + 1))
    assert {pin for pin in pins if pin <= len(messages)} <= kept
