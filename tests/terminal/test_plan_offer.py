"""In plan mode, a plan that is written is followed by the question whether to carry it out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nca.messages import Message, ToolCall
from nca.terminal.plan_offer import CARRY_OUT
from nca.words import words
from tests.terminal.stage import ScriptedReader, a_stage

PLAN = "I would do this:\n\n1. Read a.py\n2. Change it"
TODO = Message("assistant", None, (ToolCall("1", "todo", json.dumps({"doing": "read", "open": ["change"]})),))


@pytest.mark.parametrize(("answer", "mode"), [("y", "ask"), ("e", "accept-edits"), ("n", "plan"), ("", "plan")])
@pytest.mark.parametrize("plan", [[PLAN], [TODO, "That is the plan."]])
async def test_the_answer_leaves_the_mode_or_stays(tmp_path: Path, plan: list[Any], answer: str, mode: str) -> None:
    with a_stage(tmp_path, [*plan, "Carried out."], agent__permission="plan", window_tokens=60_000) as stage:
        person = ScriptedReader([answer])
        stage = stage.with_reader(person)
        await stage.app._send(words("How would you do it?"))
        assert person.questions == ["Carry this plan out?"]
        assert stage.conversation.approvals.mode == mode
        said = [entry.message.text for entry in stage.conversation.context.backwards() if entry.message.role == "user"]
        assert (said[0] == CARRY_OUT) == (mode != "plan")


@pytest.mark.parametrize(("mode", "reply"), [("ask", PLAN), ("plan", "It adds two numbers."), ("plan", "1. is one")])
async def test_nothing_else_is_asked_about(tmp_path: Path, mode: str, reply: str) -> None:
    with a_stage(tmp_path, [reply], agent__permission=mode) as stage:
        person = ScriptedReader(["y"])
        await stage.with_reader(person).app._send(words("What does it do?"))
        assert person.questions == []
