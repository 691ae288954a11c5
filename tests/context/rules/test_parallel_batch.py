"""A parallel batch stays whole and in the order of its calls."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nca.context.rules.parallel_batch import ParallelBatch
from nca.messages import Message
from tests.context.logs import logs
from tests.context.samples import assistant, call, calling, result, some, user

RULE = ParallelBatch()
BATCH = calling(call("a"), call("b"), call("c"))


@given(st.permutations(["a", "b", "c"]))
def test_results_come_in_the_order_of_the_calls(order: list[str]) -> None:
    repaired = RULE.repair([user(), BATCH, *(result(id) for id in order), assistant()])
    assert repaired == [user(), BATCH, result("a"), result("b"), result("c"), assistant()]


def test_what_stood_between_comes_after() -> None:
    repaired = RULE.repair([user(), BATCH, result("b"), user("wait"), result("a")])
    assert repaired == [user(), BATCH, result("a"), result("b"), user("wait")]


def test_spans_hold_batches_only() -> None:
    whole = [user(), BATCH, result("a"), result("c"), calling(call("d")), result("d")]
    assert list(RULE.spans(whole)) == [(1, 3)]


@some
@given(logs())
def test_it_only_moves_results_and_once(messages: list[Message]) -> None:
    repaired = RULE.repair(messages)
    assert sorted(map(id, repaired)) == sorted(map(id, messages))
    others = [message for message in messages if message.role != "tool"]
    assert [message for message in repaired if message.role != "tool"] == others
    assert RULE.repair(repaired) == repaired
