"""/tools: permission, size and history of each tool; /cost by model and purpose."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nca.config.tables import PermissionRule
from nca.errors import ConfigError, UsageError
from nca.messages import Message, ToolCall, Usage
from nca.models.client import Reply
from tests.terminal.stage import a_stage
from tests.terminal.test_commands import LONG, SUMMARY, a_long_chat, replies
from tests.terminal.test_help import columns


def call(call_id: str, name: str, **arguments: str) -> Message:
    return Message("assistant", None, (ToolCall(call_id, name, json.dumps(arguments)),))


async def test_a_tool_can_be_switched_off_for_a_chat(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a line\n")
    read = call("1", "read_file", path="a.txt")
    with a_stage(tmp_path, [read, "No.", "Yes."], window_tokens=60_000) as stage:
        said = await stage.command("/tools off read_file")
        assert "no longer in this chat; /tools on read_file gives it back" in said
        assert "off" in next(line for line in (await stage.command("/tools")).splitlines() if "read_file" in line)
        await stage.conversation.send("Read it.")
        requests = stage.conversation.model.requests  # type: ignore[attr-defined]
        assert "read_file" not in [tool["function"]["name"] for tool in requests[0].tools]
        assert "read_file is switched off (tools.off)" in requests[1].messages[-1]["content"]
        await stage.command("/tools on read_file")
        await stage.conversation.send("Now?")
        assert "read_file" in [tool["function"]["name"] for tool in requests[2].tools]
        with pytest.raises(UsageError, match=r"no tool nothing\."):
            await stage.command("/tools off nothing")


async def test_names_with_a_star_and_claude_codes_names_switch_off_and_others_are_named(tmp_path: Path) -> None:
    with a_stage(tmp_path, ["One.", "Two.", "Three."], window_tokens=60_000) as stage:

        def offered() -> set[str]:
            return {tool["function"]["name"] for tool in stage.conversation.model.requests[-1].tools}  # type: ignore[attr-defined]

        await stage.command('/config tools.off ["Bash", "*_file"]')
        await stage.conversation.send("Hello")
        assert not {"shell", "read_file", "edit_file", "write_file"} & offered()
        assert "grep" in offered()
        await stage.command("/tools on read_file")
        await stage.conversation.send("Hello again")
        assert "read_file" in offered()
        assert not {"shell", "edit_file", "write_file"} & offered()
        await stage.command("/tools on Bash")
        await stage.conversation.send("And again")
        assert "shell" in offered()
        with pytest.raises(ConfigError, match=r"this chat: tools.off: there is no tool shel. Did you mean shell\?"):
            await stage.command('/config tools.off ["shel"]')


@pytest.mark.parametrize("key", ["deny", "ask"])
def test_a_rule_that_denies_or_asks_names_a_tool_that_there_is(tmp_path: Path, key: str) -> None:
    """It denied nothing, in silence: a rule for Bash, the name that Claude Code has for it, among others."""
    wrong: dict[str, Any] = {f"permissions__{key}": [{"tool": "shel", "subject": "rm"}]}
    named = pytest.raises(
        ConfigError, match=rf"the test: permissions.{key}: there is no tool shel. Did you mean shell\?"
    )
    with named, a_stage(tmp_path, **wrong):
        pass
    right: dict[str, Any] = {f"permissions__{key}": [{"tool": "Bash", "subject": "rm"}]}
    with a_stage(tmp_path, **right) as stage:
        (rule,) = getattr(stage.conversation.loaded.settings.permissions, key)
        assert rule.tool == "shell"


def test_a_rule_that_allows_a_tool_that_there_is_not_is_said(tmp_path: Path) -> None:
    """It is no error: a program with tools of its own saves what its person allows for good."""
    rules = [{"tool": "shel", "subject": "make"}, {"tool": "Bash", "subject": "ls"}, {"tool": "mcp__a__b"}]
    settings: dict[str, Any] = {"permissions__allow": rules}
    with a_stage(tmp_path, **settings) as stage:
        said = stage.asides.getvalue().splitlines()
    assert [one for one in said if "permissions" in one] == [
        "the test: permissions.allow: there is no tool shel; the rule allows nothing. Did you mean shell?"
    ]


async def test_columns_of_calls_are_there_once_there_are_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.txt").write_text("a line\n" * 100)
    with a_stage(tmp_path, [call("1", "read_file", path="a.txt"), "Done."], window_tokens=60_000) as stage:
        for columns in (60, 80, 120):
            monkeypatch.setenv("COLUMNS", str(columns))
            before = await stage.command("/tools")
            assert not {"calls", "failed", "result"} & set(before.split())
        await stage.conversation.send("Go.")
        heads = (await stage.command("/tools")).splitlines()[0].split()
        assert heads == ["tool", "needs", "tokens", "calls", "failed", "result", "tokens"]
        monkeypatch.setenv("COLUMNS", "50")
        assert "1 call · " in (said := await stage.command("/tools"))
        assert " result tokens" in said, "not so many results"


async def test_tools_tell_what_they_may_do_weigh_and_did(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a line\n" * 100)
    calls = [
        call("1", "read_file", path="a.txt"),
        call("2", "read_file", path="gone"),
        call("3", "shell", command="x"),
    ]
    with a_stage(tmp_path, [*calls, "Done."], window_tokens=60_000) as stage:
        await stage.conversation.send("Go.")
        text = await stage.command("/tools")
        rows = {line.split()[0]: line.split() for line in text.splitlines() if "," in line}
        assert rows["read_file"][1:3] == ["read,", "runs"]
        assert rows["read_file"][4:6] == ["2", "1"]
        assert rows["shell"][1:3] == ["execute,", "asks"]
        assert rows["shell"][4:6] == ["1", "1"]
        assert rows["write_file"][1:] == ["write,", "asks", rows["write_file"][3]]
        weights = [int(row[3].replace(",", "")) for name, row in rows.items() if name != "All"]
        parts = stage.conversation.context.stats().parts
        assert sum(weights) == parts["tool_definitions"]
        assert f"All tools: {sum(weights):,} tokens of each request. Permission mode: ask" in text
        one = await stage.command("/tools shell")
        assert "built in · execute: asks in mode ask" in one
        assert "\n1 call, 1 failed (1 not allowed)" in one
        await stage.command("/permissions plan")
        assert "write, denied" in await stage.command("/tools")
        with pytest.raises(UsageError, match="no tool nothing"):
            await stage.command("/tools nothing")


@pytest.mark.parametrize("width", [40, 60, 80, 100])
async def test_the_name_of_no_own_tool_is_cut(tmp_path: Path, width: int) -> None:
    with columns(width), a_stage(tmp_path, [call("1", "list_directory", path="."), "Done."]) as stage:
        await stage.conversation.send("Go.")
        text = await stage.command("/tools")
        names = [tool["function"]["name"] for tool in stage.conversation.toolbox.definitions()]
        assert [name for name in names if f"\n{name} " not in f"\n{text}"] == []


@pytest.mark.parametrize("width", [30, 40, 80])
async def test_in_a_narrow_window_the_names_and_numbers_stay(tmp_path: Path, width: int) -> None:
    with (
        columns(width),
        a_stage(tmp_path, [*replies(6), SUMMARY], window_tokens=40_000, context__target_ratio=0.1) as stage,
    ):
        await a_long_chat(stage)
        await stage.command("/compact")
        text = await stage.command("/tools")
        for tool in stage.conversation.toolbox.definitions():
            assert f"\n{tool['function']['name']} " in f"\n{text}"
        assert "write, asks" in text
        assert stage.conversation.session.info.id in await stage.command("/sessions list")
        (record,) = stage.conversation.context.history()
        assert f"{record.tokens_before:,} → {record.tokens_after:,}" in await stage.command("/context history")
        pins = (await stage.command("/context pin")).splitlines()
        assert [int(row.split()[0]) for row in pins[1:13]] == [*range(1, 13)]
        (answers,) = [row for row in (await stage.command("/cost")).splitlines() if row.startswith("answers")]
        assert f"{stage.conversation.spending.by_purpose()[0].usage.prompt_tokens:,}" in answers


async def test_in_a_small_window_some_are_not_told(tmp_path: Path) -> None:
    with a_stage(tmp_path, window_tokens=8_000) as stage:
        text = await stage.command("/tools")
        (row,) = [line for line in text.splitlines() if line.startswith("fetch_url")]
        assert row.endswith("not sent")
    with columns(30), a_stage(tmp_path, window_tokens=8_000) as stage:
        text = await stage.command("/tools")
        assert "not sent" in text
        assert "not sent tokens" not in " ".join(text.split())


async def test_cost_by_model_and_purpose(tmp_path: Path) -> None:
    sizes = [3_000 + 1_600 * number for number in range(1, 6)]
    answers = [Reply(Message("assistant", f"Yes. {LONG}"), Usage(n, 900, n // 2, cost=0.02)) for n in sizes]
    with a_stage(tmp_path, [*answers, SUMMARY], window_tokens=40_000, context__target_ratio=0.1) as stage:
        for number in range(5):
            await stage.conversation.send(f"Question {number}. {LONG}")
        assert "answers" not in await stage.command("/cost")
        await stage.command("/compact")
        text = await stage.command("/cost")
        rows = {line.split()[0]: line.split() for line in text.splitlines() if line}
        assert rows["answers"] == ["answers", "5", f"{sum(sizes):,}", "50%", "4,500", "$0.10"]
        assert rows["scripted/model"][1] == "6"
        assert rows["other"][:3] == ["other", "requests", "1"]
        total = stage.conversation.session.usage.totals()
        spent = stage.conversation.spending.by_purpose()
        assert sum(one.usage.prompt_tokens for one in spent) == total.prompt_tokens


async def test_permissions_say_that_a_rule_for_an_mcp_tool_covers_all_arguments(tmp_path: Path) -> None:
    subject = f"db@{'0' * 12}-{'1' * 12}"
    rules = [PermissionRule("mcp__db__query", subject), PermissionRule("shell", "make")]
    with a_stage(tmp_path, permissions__allow=rules) as stage:
        said = " ".join((await stage.command("/permissions")).split())
    assert "with all arguments" in said
    assert said.count("all arguments") == 1
