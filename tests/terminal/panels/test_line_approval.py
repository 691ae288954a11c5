"""Approval in line mode: a typed line answers, and what was not shown whole is asked twice."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from nca.agent.approvals import Answer
from nca.events import ApprovalAsked
from nca.terminal.input.line_kind import InputLines
from nca.terminal.reader import accepting_edits, approve_by_line
from nca.terminal.render.calls import PART_LINES
from nca.terminal.render.plain import PlainDraw
from tests.terminal.stage import a_stage

LONG = "\n".join(f"echo {number}" for number in range(2 * PART_LINES + 1))


async def answer(
    typed: str, command: str = "make", accept_edits: Callable[[], None] | None = None
) -> tuple[Answer, str]:
    answers = io.StringIO()
    asked = ApprovalAsked("c", "shell", "execute", "", command=command, subject="make")
    output, lines = PlainDraw(answers, io.StringIO(), {}), InputLines(io.StringIO(typed))
    given = await approve_by_line(asked, output, lines, accept_edits)
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


async def test_e_allows_this_edit_and_all_that_follow() -> None:
    changed: list[str] = []
    for typed, command, choice in (("e\n", "make", "once"), ("e\nn\n", LONG, "deny"), ("e\nE\n", LONG, "deny")):
        given, said = await answer(typed, command, lambda: changed.append("mode"))
        assert given.choice == choice
        assert "e all edits from here on" in said
    assert changed == ["mode"]
    assert (await answer("e\n"))[0] == Answer("deny")


async def test_e_is_offered_where_accept_edits_would_not_ask(tmp_path: Path) -> None:
    edit = ApprovalAsked("c", "write_file", "write", "", path="a.txt", subject="a.txt")
    with a_stage(tmp_path) as stage:
        chat, output = stage.app, stage.app.output
        others = (replace(edit, warning="odd letters"), replace(edit, needs="execute"), replace(edit, subject=""))
        assert [accepting_edits(other, chat, output) for other in others] == [None, None, None]
        accept = accepting_edits(edit, chat, output)
        assert accept is not None
        accept()
        assert stage.conversation.approvals.mode == "accept-edits"
        assert "/permissions ask goes back" in stage.take()
        assert accepting_edits(edit, chat, output) is None


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
