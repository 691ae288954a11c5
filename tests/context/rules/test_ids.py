"""Ids are unique, of a safe shape, and the same for the same log."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from nca.context.request import repair
from nca.context.rules.calls import with_unique_ids
from nca.messages import Message
from tests.context.logs import logs
from tests.context.samples import call, calling, result, some, user


def ids_of(messages: list[Message]) -> tuple[list[str], list[str]]:
    calls = [call.id for message in messages for call in message.tool_calls]
    return calls, [message.tool_call_id for message in messages if message.role == "tool"]


@some
@given(logs())
def test_ids_are_unique_safe_and_answered_in_place(messages: list[Message]) -> None:
    calls, answers = ids_of(repair(messages))
    assert len(calls) == len(set(calls))
    assert calls == answers
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,40}", one) for one in calls)


@some
@given(logs())
def test_mistral_s_ids_have_exactly_nine_characters(messages: list[Message]) -> None:
    calls, answers = ids_of(repair(messages, "mistral"))
    assert len(calls) == len(set(calls))
    assert calls == answers
    assert all(re.fullmatch(r"[A-Za-z0-9]{9}", one) for one in calls)


@given(st.lists(st.sampled_from(["a", "b", "call 1", "é", "x" * 41]), min_size=1, max_size=6))
def test_the_same_log_gives_the_same_ids_and_a_longer_one_begins_with_them(used: list[str]) -> None:
    steps = [message for id in used for message in (calling(call(id)), result(id))]
    repaired = with_unique_ids(steps)
    assert with_unique_ids(steps) == repaired
    assert with_unique_ids([*steps, calling(call("a")), result("a")])[: len(steps)] == repaired
    assert with_unique_ids(repaired) is repaired


def test_what_is_fine_stays() -> None:
    fine = [user(), calling(call("call_1"), call("call-2")), result("call_1"), result("call-2")]
    assert with_unique_ids(fine) is fine


def test_the_first_of_two_keeps_its_id_and_strangers_are_left_alone() -> None:
    log = [result("a"), calling(call("a")), result("a"), calling(call("a")), result("a")]
    repaired = with_unique_ids(log)
    assert repaired[:3] == log[:3]
    assert repaired[3].tool_calls[0].id == repaired[4].tool_call_id != "a"
