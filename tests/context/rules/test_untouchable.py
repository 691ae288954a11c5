"""System messages, pins, the newest user message and the open step."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nca.context.rules.untouchable import newest_user, untouchable
from nca.messages import Message
from tests.context.logs import history_of, logs
from tests.context.samples import assistant, call, calling, result, some, user

LOG = [
    Message("system", "Rules."),
    user("One."),
    assistant(),
    user("Two."),
    Message("user", "A record.", is_synthetic=True),
    calling(call("a"), call("b")),
    result("a"),
]


def test_what_stays() -> None:
    entries = history_of(LOG).entries
    assert newest_user(entries) == 4
    assert untouchable(entries, {3}) == {1, 3, 4, 6, 7}
    assert untouchable(history_of([*LOG, result("b")]).entries, set()) == {1, 4}
    assert newest_user(history_of([assistant()]).entries) is None


@some
@given(logs(), st.sets(st.integers(1, 100)))
def test_pins_of_messages_that_are_there_stay(messages: list[Message], pins: set[int]) -> None:
    kept = untouchable(history_of(messages).entries, pins)
    assert kept <= set(range(1, len(messages) + 1))
    assert {pin for pin in pins if pin <= len(messages)} <= kept
