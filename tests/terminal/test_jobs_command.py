"""/jobs: what the model runs in the background, for the person; and what the model hears of its end."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from nca.agent.conversation import Conversation
from nca.errors import UsageError
from nca.messages import Message, ToolCall
from nca.terminal.commands.tools import JobsCommand
from nca.words import Words, words
from tests.sessions.samples import said
from tests.terminal.stage import ScriptedReader, a_stage
from tests.tools.shell.test_runner import running


def started(call_id: str, command: str) -> Message:
    return Message(
        "assistant", None, (ToolCall(call_id, "shell", json.dumps({"command": command, "background": True})),)
    )


async def test_they_are_listed_shown_and_stopped(tmp_path: Path) -> None:
    replies = [started("1", "printf 'a\\033[2Jb\\n'; sleep 9881"), "Started.", "I see."]
    with a_stage(tmp_path, replies, window_tokens=60_000, agent__permission="auto") as stage:
        assert "No command is running in the background" in await stage.command("/jobs")
        await stage.conversation.send("Serve it.")
        while "ab" not in await stage.command("/jobs 1"):
            await asyncio.sleep(0.02)
        said = await stage.command("/jobs 1")
        assert "\x1b" not in said
        assert "job 1 is running" in said
        table = await stage.command("/jobs")
        assert "running" in table
        assert "sleep 9881" in table
        assert [one.text for one in JobsCommand().complete(stage.app, "stop ")] == ["1"]
        assert "Job 1 has ended (stopped): $ printf" in await stage.command("/jobs stop 1")
        assert not running("sleep 9881")
        with pytest.raises(UsageError, match=r"Job 1 has already ended \(stopped\)"):
            await stage.command("/jobs stop 1")
        for wrong in ("2", "stop 2", "x"):
            with pytest.raises(UsageError, match="There is no job"):
                await stage.command(f"/jobs {wrong}")
        with pytest.raises(UsageError, match="takes a number"):
            await stage.command("/jobs stop")
        await stage.conversation.send("And?")
        request = stage.conversation.model.requests[-1]  # type: ignore[attr-defined]
        assert "[job 1 has ended" in request.messages[-1]["content"]
        assert "sleep 9881" in request.messages[-1]["content"]
        assert stage.conversation.jobs.take_ended() == []


@pytest.mark.parametrize(
    ("line", "again", "done"),
    [("/new", "/new again leaves", "New session"), ("/resume other", "/resume other leaves", "Resuming “other”")],
)
async def test_what_would_end_is_said_before_a_person_leaves(line: str, again: str, done: str, tmp_path: Path) -> None:
    replies = [started("1", "sleep 9883"), "Started.", started("2", "sleep 9886"), "Started."]
    with a_stage(tmp_path, replies, agent__permission="auto") as stage:
        await stage.conversation.send("Serve it.")
        before = stage.conversation
        with before.store.create(directory="/", model="m", name="other") as other:
            other.log.append(said("hi"))
        told = await stage.command(line)
        assert f"Still running in the background: job 1, $ sleep 9883. It ends with this session: {again}." in told
        assert stage.conversation is before
        # The same was said already, so the next key that leaves does.
        assert not stage.app.sessions.holds_back("Ctrl-D again")
        await stage.conversation.send("Serve that too.")
        assert stage.app.sessions.holds_back("Ctrl-D again"), "nothing was said of the other one"
        await before.jobs.find(1).stop()
        assert done in await stage.command(line)
        assert not running("sleep 9886")


async def test_a_job_of_a_turn_that_was_taken_back_is_named_and_the_model_hears_nothing_of_it(tmp_path: Path) -> None:
    replies = [started("1", "sleep 9885"), "Started.", "Fine.", "Yes."]
    with a_stage(tmp_path, replies, agent__permission="auto") as stage:
        await stage.conversation.send("Serve it.")
        assert "Still runs: job 1, $ sleep 9885. /jobs stop 1 ends it." in await stage.command("/undo")
        await stage.command("/jobs stop 1")
        await stage.conversation.send("Something else.")
        requests = stage.conversation.model.requests  # type: ignore[attr-defined]
        assert "9885" not in str(requests[-1].messages)
        await stage.command("/undo")
        await stage.command("/redo")
        await stage.conversation.send("And now?")
        assert "[job 1 has ended" not in str(requests[-1].messages)


async def test_it_is_said_again_where_the_person_did_something_else_in_between(tmp_path: Path) -> None:
    with a_stage(tmp_path, [started("1", "sleep 9884"), "Started."], agent__permission="auto") as stage:
        await stage.conversation.send("Serve it.")
        person = Lines("/new", "/context", "/new", "/context")
        stage = stage.with_reader(person)
        assert await stage.app.run() == 0
        # Both times, and at the end of the input.
        assert stage.take().count("Still running in the background") == 3
        assert not person.lines


class Lines(ScriptedReader):
    """A person who sends lines, then Ctrl-D twice."""

    def __init__(self, *lines: str) -> None:
        super().__init__()
        self.lines = list(lines)

    async def read(self, conversation: Conversation, default: Words = ()) -> Words:
        if not self.lines:
            raise EOFError
        return words(self.lines.pop(0))


async def test_they_end_when_the_session_is_closed(tmp_path: Path) -> None:
    with a_stage(tmp_path, [started("1", "sleep 9882"), "Started."], agent__permission="auto") as stage:
        await stage.conversation.send("Serve it.")
        assert running("sleep 9882")
        await stage.conversation.close()
        assert not running("sleep 9882")
