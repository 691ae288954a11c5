"""System messages first, byte-identical, in their order."""

from __future__ import annotations

from hypothesis import given

from nca.context.rules.messages import with_system_first
from nca.messages import Message
from tests.context.logs import logs
from tests.context.samples import assistant, some, user


def test_a_late_one_goes_right_behind_the_leading_ones() -> None:
    one, two = Message("system", "One."), Message("system", "Two.")
    assert with_system_first([one, user(), two, assistant()]) == [one, two, user(), assistant()]


@some
@given(logs())
def test_only_system_messages_move(messages: list[Message]) -> None:
    repaired = with_system_first(messages)
    system = [message for message in messages if message.role == "system"]
    assert repaired[: len(system)] == system
    assert repaired[len(system) :] == [message for message in messages if message.role != "system"]
