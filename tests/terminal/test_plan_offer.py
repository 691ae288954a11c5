"""In plan mode, a plan that is written is followed by the question whether to carry it out."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from nca.messages import Message, ToolCall
from nca.terminal.commands.permissions import CARRY_OUT
from nca.words import words
from tests.terminal.stage import ScriptedReader, a_stage
from tests.terminal.tty import chat

PLAN = "I would do this:\n\n1. Read a.py\n2. Change it"
BOXES = "I would do this:\n\n- [ ] Read a.py\n  - [ ] and b.py\n* [x] Change it\n\nThat is all."
POINTS = "It has two parts:\n\n- the parser\n- the lexer"
IN_CODE = "A list of tasks in Markdown:\n\n```markdown\n- [ ] One\n- [ ] Two\n1. x\n2. y\n```"
TODO = Message("assistant", None, (ToolCall("1", "todo", json.dumps({"doing": "read", "open": ["change"]})),))


@pytest.mark.parametrize(("answer", "mode"), [("y", "ask"), ("e", "accept-edits"), ("n", "plan"), ("", "plan")])
@pytest.mark.parametrize("plan", [[PLAN], [BOXES], [TODO, "That is the plan."]])
async def test_the_answer_leaves_the_mode_or_stays(tmp_path: Path, plan: list[Any], answer: str, mode: str) -> None:
    with a_stage(tmp_path, [*plan, "Carried out."], agent__permission="plan", window_tokens=60_000) as stage:
        person = ScriptedReader([answer])
        stage = stage.with_reader(person)
        await stage.app._send(words("How would you do it?"))
        assert person.questions == ["Carry this plan out?"]
        assert stage.conversation.approvals.mode == mode
        said = [entry.message.text for entry in stage.conversation.context.backwards() if entry.message.role == "user"]
        assert (said[0] == CARRY_OUT) == (mode != "plan")


@pytest.mark.parametrize(
    ("mode", "reply"),
    [
        ("ask", PLAN),
        ("plan", "It adds two numbers."),
        ("plan", "1. is one"),
        ("plan", POINTS),
        ("plan", IN_CODE),
        ("plan", "All is done:\n\n- [x] One\n- [x] Two"),
        ("plan", "- [ ] is an open box"),
    ],
)
async def test_nothing_else_is_asked_about(tmp_path: Path, mode: str, reply: str) -> None:
    with a_stage(tmp_path, [reply], agent__permission=mode) as stage:
        person = ScriptedReader(["y"])
        await stage.with_reader(person).app._send(words("What does it do?"))
        assert person.questions == []


async def test_a_list_that_is_done_at_the_end_is_no_plan(tmp_path: Path) -> None:
    done = Message("assistant", None, (ToolCall("2", "todo", json.dumps({"done": ["read", "change"]})),))
    with a_stage(tmp_path, [TODO, done, "It is so."], agent__permission="plan", window_tokens=60_000) as stage:
        person = ScriptedReader(["y"])
        await stage.with_reader(person).app._send(words("What does it do?"))
        assert person.questions == []


async def test_an_answer_that_ends_with_a_question_waits_for_no_yes(tmp_path: Path) -> None:
    with a_stage(tmp_path, [f"{PLAN}\n\n**Which of the two do you want?**\n"], agent__permission="plan") as stage:
        person = ScriptedReader(["y"])
        await stage.with_reader(person).app._send(words("How would you do it?"))
        assert person.questions == []


QUESTION = "A letter and Enter, or type your answer:  y yes, ask before each change"


@pytest.mark.parametrize(
    ("keys", "typed"),
    [
        (["e", "x", "p"], "exp"),
        (["n", "o", ","], "no,"),
        (["y", "\x7f", "w", "h", "y"], "why"),
        (["the first"], "the first"),
    ],
)
def test_what_a_person_types_in_words_is_theirs_to_send(keys: list[str], typed: str) -> None:
    """E of "explain" was taken for "yes, edit without asking"."""
    with chat(PLAN, "Explained.", settings={"agent.permission": "plan"}) as tty:
        tty.line("How would you do it?")
        tty.sees(QUESTION)
        tty.settle()
        for key in keys:
            tty.send(key)
            time.sleep(0.1)
        tty.sees(f"› {typed}")
        tty.sees("plan")
        tty.sees_no(QUESTION)
        tty.send(" it\r")
        assert "Carry the plan out." not in tty.sees("Explained.")
        assert f"› {typed} it" in tty.text()


def test_a_letter_and_enter_carry_it_out() -> None:
    with chat(PLAN, "Carried out.", settings={"agent.permission": "plan"}) as tty:
        tty.line("How would you do it?")
        tty.sees(QUESTION)
        tty.answer("e")
        tty.sees("Enter yes, edit without asking")
        assert "Carry the plan out." not in tty.text()
        tty.answer("\r")
        assert "› Carry the plan out." in tty.sees("Carried out.")
