"""Legal cuts are the intersection of what the rules allow."""

from __future__ import annotations

from hypothesis import given

from nca.context.rules import CUTS
from nca.context.rules.cut_points import blocks
from nca.messages import Message
from tests.context.logs import logs
from tests.context.samples import assistant, call, calling, result, some, user


def test_blocks_of_a_turn() -> None:
    batch = [calling(call("a"), call("b")), result("a"), result("b")]
    log = [user(), *batch, calling(call("c")), result("c"), assistant()]
    assert blocks(log) == [(0, 0), (1, 3), (4, 5), (6, 6)]


def test_an_open_step_takes_all_that_follows() -> None:
    assert blocks([user(), calling(call("a")), user("hurry"), user("!")]) == [(0, 0), (1, 3)]
    assert blocks([]) == []


@some
@given(logs())
def test_blocks_partition_the_log_and_cut_no_span(messages: list[Message]) -> None:
    found = blocks(messages)
    assert [place for first, last in found for place in range(first, last + 1)] == list(range(len(messages)))
    home = {place: block for block in found for place in range(block[0], block[1] + 1)}
    for spans_of in CUTS:
        assert all(home[first] == home[last] for first, last in spans_of(messages))
