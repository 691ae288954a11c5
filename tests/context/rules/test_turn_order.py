"""The user begins, and the assistant speaks once, before the user."""

from __future__ import annotations

from hypothesis import given

from nca.context.rules.messages import (
    BEGINNING,
    INTERRUPTED,
    with_assistant_after_tool,
    with_one_assistant,
    with_user_first,
)
from nca.messages import Message
from tests.context.logs import logs
from tests.context.samples import assistant, call, calling, result, some, user

SYSTEM = Message("system", "Rules.")
FIRST = Message("user", BEGINNING, source="nca")
SPOKEN = Message("assistant", INTERRUPTED, source="nca")


def test_a_user_message_is_put_first_where_none_is() -> None:
    assert with_user_first([SYSTEM, assistant()]) == [SYSTEM, FIRST, assistant()]
    assert with_user_first([SYSTEM]) == [SYSTEM, FIRST]
    assert with_user_first([]) == [FIRST]
    fine = [SYSTEM, user(), assistant()]
    assert with_user_first(fine) is fine


def test_neighbouring_answers_become_one_and_calls_stay_at_its_end() -> None:
    log = [user(), assistant("One."), assistant(""), calling(call("a"), text="Two."), result("a")]
    assert with_one_assistant(log) == [user(), calling(call("a"), text="One.\n\nTwo."), result("a")]


def test_an_answer_behind_calls_is_another_message() -> None:
    log = [user(), calling(call("a")), assistant("One.")]
    assert with_one_assistant(log) is log


def test_the_assistant_speaks_between_a_result_and_the_user() -> None:
    log = [user(), calling(call("a")), result("a"), user("Stop.")]
    assert with_assistant_after_tool(log) == [*log[:3], SPOKEN, log[3]]


@some
@given(logs())
def test_each_is_done_at_once(messages: list[Message]) -> None:
    for rule in (with_user_first, with_one_assistant, with_assistant_after_tool):
        repaired = rule(messages)
        assert rule(repaired) == repaired
