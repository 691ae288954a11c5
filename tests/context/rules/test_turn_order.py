"""The user begins, the assistant speaks once, and before the user does."""

from __future__ import annotations

from hypothesis import given

from nca.context.rules.turn_order import BEGINNING, INTERRUPTED, AssistantAfterTool, OneAssistant, UserFirst
from nca.messages import Message
from tests.context.logs import logs
from tests.context.samples import assistant, call, calling, result, some, user

SYSTEM = Message("system", "Rules.")
FIRST = Message("user", BEGINNING, is_synthetic=True)
SPOKEN = Message("assistant", INTERRUPTED, is_synthetic=True)


def test_a_user_message_is_put_first_where_none_is() -> None:
    assert UserFirst().repair([SYSTEM, assistant()]) == [SYSTEM, FIRST, assistant()]
    assert UserFirst().repair([SYSTEM]) == [SYSTEM, FIRST]
    assert UserFirst().repair([]) == [FIRST]
    fine = [SYSTEM, user(), assistant()]
    assert UserFirst().repair(fine) is fine


def test_neighbouring_answers_become_one_and_calls_stay_at_its_end() -> None:
    log = [user(), assistant("One."), assistant(""), calling(call("a"), text="Two."), result("a")]
    assert OneAssistant().repair(log) == [user(), calling(call("a"), text="One.\n\nTwo."), result("a")]


def test_an_answer_behind_calls_is_another_message() -> None:
    log = [user(), calling(call("a")), assistant("One.")]
    assert OneAssistant().repair(log) is log


def test_the_assistant_speaks_between_a_result_and_the_user() -> None:
    log = [user(), calling(call("a")), result("a"), user("Stop.")]
    assert AssistantAfterTool().repair(log) == [*log[:3], SPOKEN, log[3]]


@some
@given(logs())
def test_each_is_done_at_once(messages: list[Message]) -> None:
    for rule in (UserFirst(), OneAssistant(), AssistantAfterTool()):
        repaired = rule.repair(messages)
        assert rule.repair(repaired) == repaired
        assert list(rule.spans(messages)) == []
