"""A parallel batch stays whole and in the order of its calls."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nca.context.rules.calls import pair_spans, with_results_in_order
from nca.messages import Message
from tests.context.logs import logs
from tests.context.samples import assistant, call, calling, result, some, user

BATCH = calling(call("a"), call("b"), call("c"))


@given(st.permutations(["a", "b", "c"]))
def test_results_come_in_the_order_of_the_calls(order: list[str]) -> None:
    repaired = with_results_in_order([user(), BATCH, *(result(id) for id in order), assistant()])
    assert repaired == [user(), BATCH, result("a"), result("b"), result("c"), assistant()]


def test_what_stood_between_comes_after() -> None:
    repaired = with_results_in_order([user(), BATCH, result("b"), user("wait"), result("a")])
    assert repaired == [user(), BATCH, result("a"), result("b"), user("wait")]


def test_a_batch_stays_whole_with_its_results() -> None:
    whole = [user(), BATCH, result("a"), result("c"), calling(call("d")), result("d")]
    assert list(pair_spans(whole)) == [(1, 3), (4, 5)]


@some
@given(logs())
def test_it_only_moves_results_and_once(messages: list[Message]) -> None:
    repaired = with_results_in_order(messages)
    assert sorted(map(id, repaired)) == sorted(map(id, messages))
    others = [message for message in messages if message.role != "tool"]
    assert [message for message in repaired if message.role != "tool"] == others
    assert with_results_in_order(repaired) == repaired
