"""Reminders come once per crossing, again after a compaction below, and every so many turns."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from nca.config.tables import Injection
from nca.context.policy import reminder_is_reached
from nca.context.record.said import said_in
from nca.context.reminders import Reminders, shown_injections, with_reminders
from nca.context.request import request_messages
from nca.messages import AttachmentPart, Message, TextPart
from tests.context.logs import history_of

FIVE = Injection(every_turns=5, text="Be concise.")
TOKENS = Injection(over_tokens=50_000, text="Getting long.")
USAGE = Injection(over_usage=0.7, text="Nearly full.")
ALL = (FIVE, TOKENS, USAGE)


def due(reminders: Reminders, turn: int = 1, used: int = 0, usage: float = 0.0) -> tuple[str, ...]:
    return reminders.due(ALL, turn=turn, used_tokens=used, usage_ratio=usage)


def test_every_so_many_turns() -> None:
    reminders = Reminders()
    assert [turn for turn in range(1, 17) if due(reminders, turn)] == [5, 10, 15]
    assert due(reminders, 20) == ("Be concise.",)


def test_on_crossing_a_number_once_and_again_after_it_fell() -> None:
    reminders = Reminders()
    assert due(reminders, used=49_999) == ()
    assert due(reminders, used=50_000) == ("Getting long.",)
    assert due(reminders, used=60_000) == ()
    assert due(reminders, used=10_000) == ()
    assert due(reminders, used=55_000) == ("Getting long.",)


def test_a_compaction_within_a_turn_arms_it_again() -> None:
    reminders = Reminders()
    assert due(reminders, usage=0.75) == ("Nearly full.",)
    reminders.observe(ALL, used_tokens=1, usage_ratio=0.3)
    assert due(reminders, usage=0.72) == ("Nearly full.",)
    reminders.observe(ALL, used_tokens=1, usage_ratio=0.71)
    assert due(reminders, usage=0.8) == ()


def test_several_come_in_the_settings_order() -> None:
    assert due(Reminders(), turn=5, used=50_000, usage=0.9) == ("Be concise.", "Getting long.", "Nearly full.")


def test_other_settings_start_anew() -> None:
    reminders = Reminders()
    assert due(reminders, usage=0.75) == ("Nearly full.",)
    other = Injection(over_usage=0.6, text="Nearly full.")
    assert reminders.due((other,), turn=1, used_tokens=0, usage_ratio=0.75) == ("Nearly full.",)
    assert reminders.due((other, USAGE), turn=1, used_tokens=0, usage_ratio=0.75) == ("Nearly full.",)


@given(st.lists(st.tuples(st.sampled_from(["ask", "compact"]), st.integers(0, 100)), max_size=60), st.integers(1, 100))
def test_it_is_told_exactly_once_for_each_crossing(steps: list[tuple[str, int]], limit: int) -> None:
    one = Injection(over_tokens=limit, text="x")
    reminders = Reminders()
    is_armed = True
    for what, used in steps:
        if what == "compact":
            reminders.observe([one], used_tokens=used, usage_ratio=0.0)
            is_armed = is_armed or used < limit
        else:
            said = reminders.due([one], turn=1, used_tokens=used, usage_ratio=0.0)
            is_armed = is_armed or used < limit
            assert said == (("x",) if is_armed and used >= limit else ())
            is_armed = is_armed and used < limit
        assert (one in reminders.crossed) == (not is_armed)
        assert reminder_is_reached(one, used, 0.0) == (used >= limit)


def test_it_comes_along_with_the_persons_message_and_is_not_their_word() -> None:
    typed = Message("user", "Always use tabs.")
    message = with_reminders(typed, ["Be concise.", "A \ud800 text "])
    assert message.text == typed.text
    assert message.role == "user"
    assert not message.is_synthetic
    content = "Always use tabs.\n\n<reminder>\nBe concise.\n</reminder>\n\n<reminder>\nA \ufffd text\n</reminder>"
    assert request_messages(history_of([message])) == [{"role": "user", "content": content}]
    said = said_in(message)
    assert said is not None
    assert (said.typed, said.beside) == ("Always use tabs.", ())
    assert with_reminders(typed, []) is typed


def test_files_stay_before_it() -> None:
    message = Message("user", (TextPart("See"), AttachmentPart("a.txt", "content", 7)))
    sent = request_messages(history_of([with_reminders(message, ["Be brief."])]))[0]["content"]
    assert sent == 'See\n\n<file path="a.txt">\ncontent\n</file>\n\n<reminder>\nBe brief.\n</reminder>'


def test_it_survives_the_store_and_an_older_message_reads_as_before() -> None:
    message = with_reminders(Message("user", "x"), ["Be concise."])
    assert msgspec.json.decode(msgspec.json.encode(message), type=Message) == message
    old: Any = b'{"role":"user","content":[{"type":"text","text":"x","extra":{}}]}'
    assert msgspec.json.decode(old, type=Message) == Message("user", (TextPart("x"),))


def test_a_resumed_session_goes_on_where_it_was() -> None:
    shown = [
        Message("user", "<reminder>\nGetting long.\n</reminder>"),
        with_reminders(Message("user", "x"), [USAGE.text]),
    ]
    reminders = Reminders(shown_injections(ALL, shown))
    assert reminders.crossed == {USAGE}
    assert due(reminders, used=50_000, usage=0.8) == ("Getting long.",)


@given(st.lists(st.sampled_from(ALL), max_size=8), st.integers(1, 10), st.integers(0, 60_000), st.floats(0, 1))
def test_one_that_is_set_twice_is_told_once(given: list[Injection], turn: int, used: int, usage: float) -> None:
    said = Reminders().due(given, turn=turn, used_tokens=used, usage_ratio=usage)
    assert len(set(said)) == len(said)
    assert said == Reminders().due(tuple(dict.fromkeys(given)), turn=turn, used_tokens=used, usage_ratio=usage)
