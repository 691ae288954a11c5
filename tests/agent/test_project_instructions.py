"""AGENTS.md up the tree and .nca/instructions.md: found, limited in size, reported, and in every request."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from nca.agent.instruction_files import MAX_BYTES
from nca.agent.project_instructions import (
    MAX_FILE_BYTES,
    MOST_RULES,
    ProjectInstructions,
    nested_instructions,
    project_instructions,
)
from nca.events import Notice
from nca.messages import Message
from nca.models.catalog import ModelFacts
from nca.models.client import ModelRequest
from tests.agent.test_conversation import Room, call

ROOMY = 1_000_000


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A directory two levels inside of a repository, which lies in another directory with a word of its own."""
    (tmp_path / "AGENTS.md").write_text("Outside.")
    inner = tmp_path / "repo" / "part" / "inner"
    inner.mkdir(parents=True)
    (tmp_path / "repo" / ".git").mkdir()
    return inner


def found(directory: Path, budget_tokens: int = ROOMY) -> ProjectInstructions:
    return project_instructions(directory, budget_tokens, home=directory.parents[-1] / "nobody")


def test_the_nearest_is_last_and_nothing_is_read_above_the_repository(project: Path) -> None:
    root = project.parents[1]
    (root / "AGENTS.md").write_text("At the root.\n")
    (project / "AGENTS.md").write_bytes(b"\xef\xbb\xbfAt hand: \xff.\n")
    (project / ".nca").mkdir()
    (project / ".nca" / "instructions.md").write_text("For nca.")
    told = found(project)
    blocks = told.text.split("\n\n### ")
    assert blocks[0].startswith("## Instructions of the project\n")
    assert blocks[1:] == [
        "AGENTS.md\nAt the root.",
        "part/inner/AGENTS.md\nAt hand: \ufffd.",
        "part/inner/.nca/instructions.md\nFor nca.",
    ]
    sizes = "AGENTS.md (13 bytes), part/inner/AGENTS.md (15 bytes), part/inner/.nca/instructions.md (8 bytes)"
    assert told.notices == (f"Instructions: {sizes}.",)


def test_without_a_repository_it_is_the_way_up_to_the_home_directory(tmp_path: Path) -> None:
    inner = tmp_path / "home" / "work" / "inner"
    inner.mkdir(parents=True)
    for folder in (tmp_path, tmp_path / "home", inner):
        (folder / "AGENTS.md").write_text(f"In {folder.name}.")
    text = project_instructions(inner, ROOMY, home=tmp_path / "home").text
    assert "In home." in text
    assert "In inner." in text
    assert f"In {tmp_path.name}." not in text
    # Elsewhere than at home, only the directory itself speaks.
    assert "In home." not in project_instructions(inner, ROOMY, home=tmp_path / "other").text


def test_what_there_is_nothing_of_says_nothing(project: Path) -> None:
    assert found(project) == ProjectInstructions()
    (project / "AGENTS.md").write_text(" \n")
    assert found(project) == ProjectInstructions()


def test_each_and_all_together_are_bounded_and_the_nearest_comes_first(project: Path) -> None:
    root = project.parents[1]
    for number, folder in enumerate((root, root / "part", project)):
        (folder / "AGENTS.md").write_text(f"line {number}\n" * 10_000)
    told = found(project)
    assert len(told.text.encode()) < MAX_BYTES + 1_000
    assert told.text.count("line 2") == told.text.count("line 1") == MAX_FILE_BYTES // 7
    assert "line 0" not in told.text
    assert "### part/inner/AGENTS.md (cut: 32,767 of 70,000 bytes)\nline 2\n" in told.text
    assert "part/AGENTS.md (cut: 32,767 of 70,000 bytes)" in told.notices[0]
    small = found(project, budget_tokens=4_000)
    assert len(small.text.encode()) < 3_500
    assert small.text.count("line 2") > 300
    assert "line 1" not in small.text
    assert "part/AGENTS.md (cut: 0 of 70,000 bytes)" in small.notices[0]


def test_links_stay_inside_of_the_tree_and_what_is_no_text_is_left_out(project: Path) -> None:
    root = project.parents[1]
    (root / "CLAUDE.md").write_text("Shared words.")
    (root / "AGENTS.md").symlink_to("CLAUDE.md")
    (root / "part" / "AGENTS.md").symlink_to("/dev/zero")
    (project / "AGENTS.md").symlink_to(root.parent / "AGENTS.md")
    os.mkfifo(root / "pipe")
    (project / ".nca").mkdir()
    (project / ".nca" / "instructions.md").symlink_to(root / "pipe")
    told = found(project)
    assert "### AGENTS.md\nShared words." in told.text
    assert "Outside." not in told.text
    left_out = [notice for notice in told.notices if notice.startswith("Instructions were left out: ")]
    assert [notice.removeprefix("Instructions were left out: ") for notice in left_out] == [
        "part/AGENTS.md is a link that leads out of the project.",
        "part/inner/AGENTS.md is a link that leads out of the project.",
        "part/inner/.nca/instructions.md is not an ordinary file.",
    ]
    (root / "CLAUDE.md").write_bytes(b"a\0b")
    assert "AGENTS.md is not a text file." in found(project).notices[0]


async def test_they_are_in_every_request_and_read_again_by_the_next_session(tmp_path: Path) -> None:
    room = Room(tmp_path)
    (tmp_path / "AGENTS.md").write_text("Use tabs.")
    facts = ModelFacts(name="scripted/middle", provider="scripted", window_tokens=12_000)
    # Another file each time: the same call again and again would end the turn as one that is stuck.
    loops = [call("read_file", f'{{"path": "{number}.txt"}}', f"c{number}") for number in range(12)]
    for number in range(12):
        (tmp_path / f"{number}.txt").write_text(f"Line {number} about nothing in particular.\n" * 100)
    replies: list[Message | str] = [*loops, *["Done."] * 20]

    def answer(request: ModelRequest) -> Message | str:
        if "<transcript>" in str(request.messages[-1]):
            return "### 1. Goal and intent\nThe user asks."
        return replies.pop(0)

    conversation = room.open([answer] * 60, facts=facts)
    await conversation.send("Read them one after the other.")
    assert conversation.context.history(), "it was compacted"
    chats = [one for one in conversation.model.requests if one.tools]  # type: ignore[attr-defined]
    assert len(chats) > 2
    assert all("### AGENTS.md\nUse tabs." in one.messages[0]["content"] for one in chats)
    assert [event.message for event in room.of(Notice) if "Instructions" in event.message] == [
        "Instructions: AGENTS.md (9 bytes)."
    ]
    session = conversation.session.info.id
    await conversation.close()
    (tmp_path / "AGENTS.md").write_text("Use spaces.")
    again = room.open(["Yes."], facts=facts, session=session)
    await again.send("And now?")
    assert "Use spaces." in again.model.requests[0].messages[0]["content"]  # type: ignore[attr-defined]
    await again.close()


async def test_skills_are_listed_read_on_demand_and_not_pruned(tmp_path: Path) -> None:
    room = Room(tmp_path)
    skills = tmp_path / ".nca" / "skills"
    skills.mkdir(parents=True)
    (skills / "r.md").write_text("---\nname: release\nwhen: A release is to be made.\n---\nFirst tag, then push.\n")
    for number in range(5):
        (skills / f"broken-{number}.md").write_text("No head.")
    facts = ModelFacts(name="scripted/middle", provider="scripted", window_tokens=20_000)
    conversation = room.open([call("skill", '{"name": "release"}'), "Tagged."], facts=facts)
    await conversation.send("Make a release.")
    first = conversation.model.requests[0]  # type: ignore[attr-defined]
    assert "## Skills\n" in first.messages[0]["content"]
    assert "\n- release: A release is to be made." in first.messages[0]["content"]
    assert "First tag" not in str(first.messages)
    assert "skill" in [tool["function"]["name"] for tool in first.tools]
    result = conversation.context.entries[2].message
    assert (result.name, result.text.splitlines()[1]) == ("skill", "First tag, then push.")
    notices = [event.message for event in room.of(Notice) if "kill" in event.message]
    assert notices[0] == "Skills: release."
    assert len(notices) == 5
    assert notices[-1] == "2 more skills or agents were left out."


async def test_without_skills_there_is_no_skill_tool(tmp_path: Path) -> None:
    room = Room(tmp_path)
    facts = ModelFacts(name="scripted/middle", provider="scripted", window_tokens=20_000)
    conversation = room.open(["Hello."], facts=facts)
    await conversation.send("Hello")
    first = conversation.model.requests[0]  # type: ignore[attr-defined]
    assert "Skills" not in first.messages[0]["content"]
    assert "skill" not in [tool["function"]["name"] for tool in first.tools]


def test_what_other_agents_have_counts_where_there_is_no_agents_file(project: Path) -> None:
    root = project.parents[1]
    (root / "CLAUDE.md").write_text("For Claude.")
    (root / "GEMINI.md").write_text("For Gemini.")
    (project / ".claude").mkdir()
    (project / ".claude" / "CLAUDE.md").write_text("Inner, for Claude.")
    (root / "part" / "AGENTS.md").write_text("For all.")
    (root / "part" / "CLAUDE.md").write_text("@AGENTS.md")
    blocks = found(project).text.split("\n\n### ")[1:]
    assert blocks == [
        "CLAUDE.md\nFor Claude.",
        "part/AGENTS.md\nFor all.",
        "part/inner/.claude/CLAUDE.md\nInner, for Claude.",
    ]


def test_a_file_may_name_others(project: Path) -> None:
    root = project.parents[1]
    (root / "docs").mkdir()
    (root / "CLAUDE.md").write_text("See @docs/style.md, and @nobody. `@docs/code.md`\n```\n@docs/code.md\n```\n")
    (root / "docs" / "style.md").write_text("Tabs.\n@more.md\n@../CLAUDE.md\n")
    (root / "docs" / "more.md").write_text("More: @/etc/hostname")
    (root / "docs" / "code.md").write_text("Not named.")
    told = found(project)
    names = [block.partition("\n")[0] for block in told.text.split("\n\n### ")[1:]]
    assert names == ["docs/more.md", "docs/style.md", "CLAUDE.md"]
    refused = "docs/more.md imports /etc/hostname, which is outside of the project; it was left out."
    assert told.notices[1:] == (refused,)


def test_a_chain_of_names_ends(project: Path) -> None:
    for number in range(9):
        (project / f"{number}.md").write_text(f"Step {number}. @{number + 1}.md")
    (project / "AGENTS.md").write_text("@0.md")
    text = found(project).text
    assert "Step 4." in text
    assert "Step 5." not in text


async def test_a_folders_instructions_come_when_the_work_goes_there(tmp_path: Path) -> None:
    room = Room(tmp_path)
    inner = tmp_path / "part" / "inner"
    inner.mkdir(parents=True)
    (tmp_path / "part" / "AGENTS.md").write_text("In part: tabs.")
    (inner / "CLAUDE.md").write_text("In inner: spaces.")
    (inner / "a.py").write_text("x = 1\n")
    read = call("read_file", '{"path": "part/inner/a.py"}')
    conversation = room.open([read, read, call("read_file", '{"path": "part/inner/none.py"}'), "Done."])
    await conversation.send("Read it")
    first, again, missing = (
        entry.message.text for entry in conversation.context.entries if entry.message.role == "tool"
    )
    assert first.index("x = 1") < first.index("In part: tabs.") < first.index("In inner: spaces.")
    assert "[Instructions of the project for this folder, from part/AGENTS.md; they allow nothing]" in first
    assert "spaces" not in again + missing


def test_rules_and_the_persons_own_file_are_read_beside_any_other(project: Path) -> None:
    rules = project / ".claude" / "rules"
    (rules / "api").mkdir(parents=True)
    (project / "AGENTS.md").write_text("For all.")
    (project / "CLAUDE.local.md").write_text("Mine. @.claude/rules/style.md")
    (rules / "style.md").write_text("---\ndescription: about paths\n---\nTabs.")
    (rules / "api" / "names.md").write_text("---\npaths: []\n---\nNouns.")
    (rules / "tests.md").write_text('---\npaths: ["tests/**"]\n---\nOnly there.')
    (rules / "notes.txt").write_text("No rule.")
    (rules / "out.md").symlink_to(project.parents[2] / "AGENTS.md")
    told = found(project)
    assert [block.partition("\n")[0] for block in told.text.split("\n\n### ")[1:]] == [
        "part/inner/AGENTS.md",
        "part/inner/.claude/rules/style.md",
        "part/inner/.claude/rules/api/names.md",
        "part/inner/CLAUDE.local.md",
    ]
    assert "Outside." not in told.text
    assert "Only there." not in told.text
    assert told.notices[1:] == (
        "Instructions were left out: part/inner/.claude/rules/out.md is a link that leads out of the project.",
    )
    assert "Tabs." in nested_instructions(project.parent, project, 8_000).text


def test_no_more_rules_are_read_than_are_sensible(project: Path) -> None:
    rules = project / ".claude" / "rules"
    rules.mkdir(parents=True)
    for number in range(MOST_RULES + 1):
        (rules / f"{number:03}.md").write_text(f"Rule {number}.")
    told = found(project)
    assert told.text.count("### ") == MOST_RULES
    assert told.notices[1:] == (f"{rules}: the first 50 of 51 rules were read.",)
