"""Agents of a Claude Code set-up: assistants of the task tool with a text, tools and a model of their own."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from nca.agent.subtask import PROMPT
from nca.config.claude_settings import KEY_VARIABLE, MODELS
from nca.config.layers import load
from nca.events import Notice, ToolStarted
from nca.tools.skill_places import Place
from nca.tools.skills import find_agents
from tests.agent.test_subtask import Rooms, call, names

REVIEWER = """---
name: reviewer
description: Reviews a change. Use it after each edit.
tools: Read, Grep, mcp__docs
model: haiku
---
You review. Name each risk.
"""


def task(agent: str) -> Any:
    return call("task", json.dumps({"question": "Is it right?", "agent": agent}))


@pytest.fixture
def room(tmp_path: Path) -> Rooms:
    (tmp_path / ".claude" / "agents").mkdir(parents=True)
    (tmp_path / ".claude" / "agents" / "reviewer.md").write_text(REVIEWER)
    return Rooms(tmp_path)


async def test_an_agent_answers_with_its_text_and_its_tools(room: Rooms) -> None:
    conversation = room.start([task("reviewer"), "It is right."], ["It is right."])
    await conversation.send("Is it right?")
    first, inner = room.requests(inner=False)[0], room.requests(inner=True)[0]
    assert "## Agents\n" in first.messages[0]["content"]
    assert "- reviewer: Reviews a change. Use it after each edit." in first.messages[0]["content"]
    assert "Agents: reviewer." in [event.message for event in room.of(Notice)]
    system = str(inner.messages[0]["content"])
    head = "[agent reviewer, .claude/agents/reviewer.md; the project's, so it gives no permissions]"
    assert system.endswith(f"{PROMPT}\n\n{head}\nYou review. Name each risk.")
    assert names(inner) == ["read_file", "grep"]
    assert [event.summary for event in room.of(ToolStarted)] == ["task reviewer: Is it right?"]


async def test_an_unknown_agent_is_an_error_that_names_those_that_there_are(room: Rooms) -> None:
    conversation = room.start([task("nobody"), "Then not."], [])
    await conversation.send("Is it right?")
    result = conversation.context.entries[2].message
    assert result.text == "Error: there is no agent 'nobody'; the agents are: reviewer"


async def test_without_agents_none_is_offered(tmp_path: Path) -> None:
    room = Rooms(tmp_path)
    conversation = room.start(["Hello."], [])
    await conversation.send("Hello")
    request = room.requests(inner=False)[0]
    offered = next(tool for tool in request.tools if tool["function"]["name"] == "task")
    assert list(offered["function"]["parameters"]["properties"]) == ["question"]
    assert "Agents" not in str(request.messages[0]["content"])


async def test_a_model_that_does_not_open_is_said_and_the_conversations_answers(
    room: Rooms, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MISTRAL_API_KEY", raising=False)
    settings = {"agent.models": ["reviewer=mistral/mistral-medium-latest"]}
    conversation = room.start([task("reviewer"), "It is right."], ["It is right."], settings=settings)
    await conversation.send("Is it right?")
    said = [event.message for event in room.of(Notice) if "reviewer works with" in event.message]
    assert said[0].startswith("The agent reviewer works with scripted/middle: No API key for mistral/")
    assert conversation.context.entries[2].message.text == "It is right."


async def test_a_hook_may_have_an_agent_go_on(room: Rooms) -> None:
    script = room.path / "hook.py"
    script.write_text(
        "import json, sys\n"
        "sent = json.load(sys.stdin)\n"
        "open('seen.txt', 'a').write(f\"{sent['agent_type']} {sent['stop_hook_active']}\\n\")\n"
        "if not sent['stop_hook_active']: sys.stderr.write('Look again.'); sys.exit(2)\n"
    )
    hook = {"event": "SubagentStop", "matcher": "reviewer", "command": f"{sys.executable} {script}"}
    conversation = room.start([task("reviewer"), "Done."], ["It is right.", "It is wrong."], settings={"hooks": [hook]})
    await conversation.send("Is it right?")
    assert conversation.context.entries[2].message.text == "It is wrong."
    assert "Look again." in str(room.requests(inner=True)[1].messages[-1]["content"])
    assert (room.path / "seen.txt").read_text() == "reviewer False\nreviewer True\n"


@pytest.mark.parametrize(
    ("fields", "has", "lacks"),
    [
        ("", ("shell", "mcp__docs__search"), ()),
        ("tools: '*'", ("shell",), ()),
        ("tools: Bash(git log:*, git diff:*), Edit", ("shell", "job", "edit_file"), ("write_file", "read_file")),
        ("tools:\n  - Read\n  - mcp__docs__search", ("read_file", "mcp__docs__search"), ("mcp__docs__other",)),
        ("tools: mcp__docs__*", ("mcp__docs__search",), ("read_file",)),
        ("disallowedTools: Write, Edit", ("shell",), ("write_file", "edit_file")),
        ("tools: read_file", ("read_file",), ("grep",)),
    ],
)
def test_the_tools_of_an_agent(tmp_path: Path, fields: str, has: tuple[str, ...], lacks: tuple[str, ...]) -> None:
    (tmp_path / "a.md").write_text(f"---\ndescription: For questions.\n{fields}\n---\nText.")
    (tmp_path / "b.md").write_text("No front matter.")
    agents, problems = find_agents([Place(tmp_path)])
    assert [agent.about.name for agent in agents] == ["a"]
    assert all(agents[0].has(tool) for tool in has)
    assert not any(agents[0].has(tool) for tool in lacks)
    assert len(problems) == 1
    assert "b.md does not begin with front matter" in problems[0]


def test_a_projects_agents_have_their_models_once_it_is_trusted(room: Rooms) -> None:
    (room.path / ".claude" / "agents" / "same.md").write_text("---\nname: same\nmodel: inherit\n---\nX.")
    (room.path / ".claude" / "agents" / "odd.md").write_text("---\nname: odd\nmodel: gpt-5\n---\nmodel: opus")
    env = {"HOME": str(room.path / "home"), "NCA_HOME": str(room.path / "nca"), KEY_VARIABLE: "sk-x"}
    untrusted = load(project=room.path, env=env, trusts=lambda _: False)
    assert untrusted.settings.agent.models == ()
    assert any("agent.models" in note for note in untrusted.notes)
    trusted = load(project=room.path, env=env, trusts=lambda _: True)
    assert trusted.settings.agent.models == (f"reviewer={MODELS['haiku']}",)
