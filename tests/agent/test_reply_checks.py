"""Notices about incomplete answers."""

import pytest

from nca.agent.reply_checks import cut_notice, ending, is_cut, orders_change, wants_change
from nca.context.budget import Budget, Measurement
from nca.messages import Message
from nca.models.client import Reply

ROOM = Budget.of(128_000)


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        ("stop", ""),
        ("tool_calls", ""),
        ("refusal", ""),
        ("length", "The answer was cut off at its limit of 1,000 tokens."),
        ("content_filter", "The provider's content filter ended the answer."),
        ("eaten", "The provider ended the answer for a reason of its own: eaten."),
    ],
)
def test_an_end_that_is_not_the_answers_own_is_said(reason: str, said: str) -> None:
    assert ending(Reply(Message("assistant", "A"), None, reason), 1_000) == said


@pytest.mark.parametrize(
    ("reported", "is_estimate", "cut"),
    [
        (4_999, True, True),
        (5_000, True, False),
        (7_999, False, True),
        (8_000, False, False),
        (999, True, False),
        (10, False, False),
        (20_000, False, False),
    ],
)
def test_a_report_far_below_what_was_sent_is_not_of_the_whole(reported: int, is_estimate: bool, cut: bool) -> None:
    assert is_cut(Measurement(10_000, ROOM, is_estimate=is_estimate), 10_000, 10_000, reported) is cut
    assert f"{reported:,} of about 10,000 tokens" in cut_notice("m", 10_000, reported)


def test_a_large_file_that_counts_less_than_expected_was_not_left_out() -> None:
    """An embedded model reported 2,786 where 1,540 were known and a file was counted as 2,180."""
    measured = Measurement(3_720, ROOM, is_estimate=False)
    assert not is_cut(measured, 3_000, 1_540, 2_786)
    assert is_cut(measured, 3_000, 1_540, 2_048)


@pytest.mark.parametrize(
    ("asked", "is_order"),
    [
        ("Set PORT to 9000 in config.py.", True),
        ("a.py fails on x. Change it so that it returns None.", True),
        ("In greet.py, rename greet to welcome.", True),
        ("Look at a.py and fix what is wrong.", True),
        ("Could you please update a.py?", True),
        ("What does update in a.py do?", False),
        ("Explain how to add a test to a.py.", False),
        ("Does a.py set x?", False),
    ],
)
def test_a_question_about_a_change_is_no_order(asked: str, is_order: bool) -> None:
    assert wants_change(asked)
    assert orders_change(asked) is is_order
