"""Messages that one pass finds regular need no repair."""

from __future__ import annotations

from hypothesis import given

from nca.context.request import repair
from nca.context.rules import BLOCK_REPAIRS, REPAIRS
from nca.context.rules.cut_points import blocks, regular_spans
from nca.messages import Message
from tests.context.logs import logs
from tests.context.samples import agent_turn, assistant, call, calling, result, some, talk, user


def test_turns_steps_and_parallel_batches_are_regular() -> None:
    batch = [calling(call("a"), call("b")), result("a"), result("b")]
    log = [Message("system", "Be brief."), user(), *batch, assistant(), *talk(2), *agent_turn(3)]
    assert regular_spans(log) == blocks(log)


def test_what_needs_mending_is_not_regular() -> None:
    one = calling(call("a"))
    for broken in (
        [one],
        [result("a")],
        [one, user(), result("a")],
        [one, result("a", " ")],
        [one, result("a"), result("a")],
        [calling(call("a"), call("b")), result("b"), result("a")],
        [Message("assistant", "  ")],
        [calling(call("a", "bad name!")), result("a")],
    ):
        assert regular_spans([user(), *broken, assistant()]) is None


@some
@given(logs())
def test_regular_messages_have_the_same_blocks_and_need_no_repair_among_themselves(messages: list[Message]) -> None:
    for length in range(len(messages) + 1):
        log = messages[:length]
        spans = regular_spans(log)
        if spans is None:
            continue
        assert spans == blocks(log)
        for rule in BLOCK_REPAIRS:
            assert rule(log) == log
        by_all = log
        for rule in REPAIRS:
            by_all = rule(by_all)
        assert repair(log, "openai") == by_all
