"""Every call has exactly one result, and every result its call."""

from __future__ import annotations

from hypothesis import given

from nca.context.rules.calls import (
    CALL_UNAVAILABLE,
    RESULT_UNAVAILABLE,
    pair_spans,
    with_results_in_order,
    with_whole_pairs,
)
from nca.context.validate import pairs
from nca.messages import Message
from nca.wire import message_to_dict
from tests.context.logs import logs
from tests.context.samples import assistant, call, calling, result, some, user


def test_the_exact_texts_of_the_spec() -> None:
    assert RESULT_UNAVAILABLE == "[Tool result unavailable - conversation was compacted]"
    assert CALL_UNAVAILABLE.format(tool="grep") == "[Tool call for grep - conversation was compacted]"


def test_a_missing_result_is_made_up_behind_those_that_came() -> None:
    repaired = with_whole_pairs([user(), calling(call("a", "grep"), call("b", "shell")), result("a"), assistant()])
    made = Message("tool", RESULT_UNAVAILABLE, tool_call_id="b", name="shell", source="nca")
    assert repaired[2:] == [result("a"), made, assistant()]


def test_a_missing_call_is_made_up_before_its_result() -> None:
    orphan = result("a", "found", name="grep")
    repaired = with_whole_pairs([user(), orphan, assistant()])
    assert repaired[1].content == "[Tool call for grep - conversation was compacted]"
    assert [made.id for made in repaired[1].tool_calls] == ["a"]
    assert repaired[1].is_synthetic
    assert repaired[2:] == [orphan, assistant()]


def test_an_orphan_without_a_name_is_a_tool_s() -> None:
    assert with_whole_pairs([user(), result("a")])[1].content == "[Tool call for tool - conversation was compacted]"


def test_an_orphan_without_an_id_gets_that_of_its_call() -> None:
    repaired = with_whole_pairs([user(), result(""), assistant()])
    assert not list(pairs([message_to_dict(message) for message in repaired]))


def test_a_second_result_for_one_call_is_left_out() -> None:
    whole = [user(), calling(call("a")), result("a", "first"), result("a", "second"), assistant()]
    assert with_whole_pairs(whole) == [*whole[:3], assistant()]


def test_two_calls_with_one_id_take_a_result_each() -> None:
    whole = [user(), calling(call("a"), call("a")), result("a", "first"), result("a", "second")]
    assert with_whole_pairs(whole) is whole


def test_a_result_after_the_assistant_spoke_again_is_an_orphan() -> None:
    repaired = with_whole_pairs([user(), calling(call("a")), assistant(), result("a", "late")])
    assert [message.role for message in repaired] == ["user", "assistant", "tool", "assistant", "assistant", "tool"]
    assert repaired[2].content == RESULT_UNAVAILABLE


@some
@given(logs())
def test_any_log_is_paired_afterwards_and_then_left_alone(messages: list[Message]) -> None:
    before = list(messages)
    repaired = with_results_in_order(with_whole_pairs(with_results_in_order(messages)))
    assert messages == before
    problems = [line for line in pairs([message_to_dict(message) for message in repaired]) if "used twice" not in line]
    ids = [call.id for message in repaired for call in message.tool_calls]
    if len(ids) == len(set(ids)):
        assert problems == []
    assert with_whole_pairs(repaired) is repaired


@some
@given(logs())
def test_nothing_real_but_repeated_results_is_left_out(messages: list[Message]) -> None:
    kept = {id(message) for message in with_whole_pairs(messages)}
    assert all(message.role == "tool" for message in messages if id(message) not in kept)
    assert all(
        message.is_synthetic for message in with_whole_pairs(messages) if id(message) not in set(map(id, messages))
    )


def test_spans_hold_a_step_with_what_stands_between() -> None:
    whole = [user(), calling(call("a")), user("wait"), result("a"), assistant()]
    assert list(pair_spans(whole)) == [(1, 3)]
    assert list(pair_spans([user(), calling(call("a")), user("wait")])) == []
