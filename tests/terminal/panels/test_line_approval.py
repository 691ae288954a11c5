"""Approval in line mode: a typed line answers, and what was not shown whole is asked twice."""

from __future__ import annotations

import io

import pytest

from nca.agent.approvals import Answer
from nca.events import ApprovalAsked
from nca.terminal.input.line_kind import InputLines
from nca.terminal.reader import approve_by_line
from nca.terminal.render.calls import PART_LINES
from nca.terminal.render.plain import PlainDraw

LONG = "\n".join(f"echo {number}" for number in range(2 * PART_LINES + 1))


async def answer(typed: str, command: str = "make") -> tuple[Answer, str]:
    answers = io.StringIO()
    asked = ApprovalAsked("c", "shell", "execute", "", command=command, subject="make")
    given = await approve_by_line(asked, PlainDraw(answers, io.StringIO(), {}), InputLines(io.StringIO(typed)))
    return given, answers.getvalue()


@pytest.mark.parametrize(
    ("typed", "given"),
    [
        ("y\n", Answer("once")),
        ("what?\nYES\n", Answer("once")),
        ("s\n", Answer("session")),
        ("always\n", Answer("always")),
        ("no use b\n", Answer("deny", "use b")),
        ("m\nn\n", Answer("deny")),
        ("", Answer("deny")),
    ],
)
async def test_what_is_short(typed: str, given: Answer) -> None:
    assert (await answer(typed))[0] == given


async def test_the_question_says_what_a_rule_covers() -> None:
    assert "a always here (either allows shell make)" in (await answer("y\n"))[1]


async def test_an_empty_line_answers_nothing_and_the_answers_are_said_again() -> None:
    got, said = await answer("\n  \ny\n")
    assert got == Answer("once")
    assert said.count("Allow it? y once,") == 3
    assert (await answer("\n\n"))[0] == Answer("deny")


@pytest.mark.parametrize(
    ("typed", "given"),
    [
        ("y\n", Answer("deny")),
        ("y\ny\n", Answer("once")),
        ("y\nwhat?\ny\n", Answer("deny")),
        ("y\nm\ny\n", Answer("deny")),
        ("a\ns\nn\n", Answer("deny")),
        ("a\na\n", Answer("always")),
        ("m\nm\ny\n", Answer("once")),
    ],
)
async def test_what_is_long_is_seen_whole_or_asked_twice(typed: str, given: Answer) -> None:
    got, said = await answer(typed, LONG)
    assert got == given
    assert "… and 101 more lines not shown" in said
    assert ("echo 200" in said) == (typed.count("m") == 2)
