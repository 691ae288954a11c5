"""The program behind a status line: what it reads, and what becomes of one that fails."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from nca.agent.status_command import StatusCommand, status_input
from nca.messages import Usage
from tests.terminal.stage import Stage, a_stage


async def ran(stage: Stage, times: int = 1) -> tuple[str, list[str]]:
    """The line after so many runs, and what was said of problems."""
    said: list[str] = []
    command = StatusCommand("1.0", lambda: None, said.append)
    for _ in range(times):
        command.run(stage.conversation)
        assert command._running is not None
        await command._running
    command.close()
    return command.line, said


async def test_it_reads_what_claude_code_gives(tmp_path: Path) -> None:
    lines = "one\\n\\ntwo\\nthree\\nfour"
    program = f"import json, sys; json.dump(json.load(sys.stdin), open('seen.json', 'w')); print('{lines}')"
    command = f"{shlex.quote(sys.executable)} -c {shlex.quote(program)}"
    with a_stage(tmp_path, ["Hello."], store_path=tmp_path / "store.db", terminal__status_command=command) as stage:
        conversation = stage.conversation
        await conversation.send("Hi.")
        conversation.session.usage.record(2, "m", Usage(900, 7, 600, 100, cost=0.25), 0)
        assert await ran(stage) == ("one\ntwo\nthree", [])
        seen: dict[str, Any] = json.loads((tmp_path / "seen.json").read_text())
        stats = conversation.context.stats()
        assert seen["session_id"] == conversation.session.info.id
        assert seen["model"] == {"id": "scripted/model", "display_name": "model"}
        assert seen["cwd"] == seen["workspace"]["current_dir"] == str(conversation.directory)
        window = seen["context_window"]
        assert window["used_percentage"] == round(100 * stats.usage_ratio)
        assert (window["total_input_tokens"], window["context_window_size"]) == (stats.used_tokens, stats.budget_tokens)
        assert window["current_usage"] == {
            "input_tokens": 200,
            "output_tokens": 7,
            "cache_creation_input_tokens": 100,
            "cache_read_input_tokens": 600,
        }
        assert seen["cost"]["total_cost_usd"] == conversation.session.usage.totals().cost
        assert "Hello." in Path(seen["transcript_path"]).read_text()
        assert seen.keys() == status_input(conversation, "1.0", 0.0).keys()


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("exit 3", "it ended with exit code 3."),
        ("echo no such thing >&2; exit 1", "it ended with exit code 1: no such thing."),
        ("/nowhere/at/all", "it ended with exit code 127"),
    ],
)
async def test_a_failing_command_is_said_once(tmp_path: Path, command: str, why: str) -> None:
    with a_stage(tmp_path, terminal__status_command=command) as stage:
        line, said = await ran(stage, times=2)
    assert line == ""
    assert len(said) == 1
    assert f"terminal.status_command did not work: {why}" in said[0]
    assert "\n" not in said[0]


async def test_endless_output_and_a_closed_input_are_no_problem(tmp_path: Path) -> None:
    with a_stage(tmp_path, terminal__status_command="exec <&-; yes line | head -c 3000000") as stage:
        assert await ran(stage) == ("line\nline\nline", [])


async def test_of_many_wishes_the_last_one_counts_and_runs_do_not_overlap(tmp_path: Path) -> None:
    command = "mkdir busy && echo x >> runs && sleep 0.2 && rmdir busy && wc -l < runs"
    with a_stage(tmp_path, terminal__status_command=command) as stage:
        said: list[str] = []
        status = StatusCommand("1.0", lambda: None, said.append)
        for _ in range(50):
            status.run(stage.conversation)
            await asyncio.sleep(0.001)
        assert status._running is not None
        await status._running
        assert (status.line.strip(), said) == (str(len((tmp_path / "runs").read_text().split())), [])
        assert int(status.line) < 50


async def test_what_still_runs_is_ended_with_the_chat(tmp_path: Path) -> None:
    with a_stage(tmp_path, terminal__status_command="echo $$ > pid; exec sleep 60") as stage:
        status = StatusCommand("1.0", lambda: None, lambda text: None)
        status.run(stage.conversation)
        pid = tmp_path / "pid"
        while not pid.exists() or not pid.read_text().strip():
            await asyncio.sleep(0.01)
        status.close()
        assert status._running is not None
        await asyncio.gather(status._running, return_exceptions=True)
        assert status._running.cancelled(), "it did not wait for the command"
        with pytest.raises(ProcessLookupError):
            os.kill(int(pid.read_text()), 0)


async def test_a_command_that_is_taken_away_leaves_no_line(tmp_path: Path) -> None:
    with a_stage(tmp_path, [], terminal__status_command="echo one") as stage:
        command = StatusCommand("1.0", lambda: None, lambda _: None)
        for setting, line in (("echo one", "one"), ("", ""), ("echo two", "two")):
            stage.conversation.set("terminal.status_command", setting)
            command.run(stage.conversation)
            if setting:
                assert command._running is not None
                await command._running
            assert command.line == line
        command.close()
