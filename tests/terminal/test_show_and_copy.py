"""/show and /copy: a tool call, the reasoning, and an answer on the clipboard."""

from __future__ import annotations

import base64
import io
import os
import re
import stat
from pathlib import Path

import pytest

from nca.errors import UsageError
from nca.events import ToolFinished
from nca.messages import Message, ToolCall
from nca.models.model import Reply
from nca.terminal.commands.show import (
    MOST_LINES,
    OSC_52_MOST_BYTES,
    ShowCommand,
    answers_backwards,
    code_blocks,
    copy_text,
)
from nca.terminal.render.draw import Draw
from nca.terminal.render.screen import Screen
from tests.terminal.payloads import PAYLOADS, forbidden
from tests.terminal.stage import Stage, a_stage
from tests.terminal.tty import chat


def called(*calls: tuple[str, str], text: str = "", reasoning: str = "") -> Message:
    made = tuple(ToolCall(f"id-{number}", name, arguments) for number, (name, arguments) in enumerate(calls))
    return Message("assistant", text, made, reasoning=reasoning)


async def talk(stage: Stage, text: str = "go") -> None:
    await stage.conversation.send(text)


async def test_the_last_call_its_arguments_and_its_output(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    calls = called(("list_directory", '{"path": "."}'), ("read_file", '{"path": "a.txt"}'))
    with a_stage(tmp_path, [calls, "Done."]) as stage:
        await talk(stage)
        last = await stage.command("/show")
        assert await stage.command("/show last") == last
        assert last.startswith("read_file\n  path: a.txt\nResult (message 4, ")
        assert "one" in last
        assert (await stage.command("/show 2")).startswith("list_directory\n  path: .\n")
        shown = stage.app
        suggestions = {one.text: one.about for one in ShowCommand().complete(shown, "")}
        assert list(suggestions) == ["1", "2"]
        assert suggestions["1"].startswith("read_file a.txt → ")
        with pytest.raises(UsageError, match="This conversation has 2 tool calls"):
            await stage.command("/show 3")


async def test_a_change_is_shown_as_a_diff_and_a_failure_as_one(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    edit = '{"path": "a.txt", "content": "one\\nthree\\n"}'
    read, missing = ("read_file", '{"path": "a.txt"}'), ("read_file", '{"path": "none"}')
    replies = [called(read), called(("write_file", edit)), called(missing), "Done."]
    with a_stage(tmp_path, replies, agent__permission="accept-edits") as stage:
        await talk(stage)
        assert "Failed (message 7" in await stage.command("/show")
        changed = await stage.command("/show 2")
        assert "  -two\n  +three\n" in changed


async def test_broken_arguments_are_shown_as_they_are(tmp_path: Path) -> None:
    with a_stage(tmp_path, [called(("read_file", '{"path": "a')), "Done."]) as stage:
        await talk(stage)
        assert '  {"path": "a\n' in await stage.command("/show")


async def test_a_long_output_is_bounded_and_says_where_the_whole_is(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("\n".join(f"line {number}" for number in range(1_500)))
    call = called(("read_file", '{"path": "a.txt"}'))
    with a_stage(tmp_path, [call, "Done."], window_tokens=200_000) as stage:
        await talk(stage)
        shown = await stage.command("/show")
        assert "lines are left out; /context show 3 prints the whole" in shown
        assert len(shown.splitlines()) < MOST_LINES + 20
        assert len((await stage.command("/context show 3")).splitlines()) > 1_400


async def test_thoughts_of_the_last_turn(tmp_path: Path) -> None:
    replies = [called(("list_directory", "{}"), reasoning="First."), Message("assistant", "Hi.", reasoning="Then.")]
    with a_stage(tmp_path, [*replies, "Without."]) as stage:
        with pytest.raises(UsageError, match="in this conversation"):
            await stage.command("/show")
        await talk(stage)
        assert await stage.command("/show thoughts") == "First.\n\nThen.\n"
        assert [one.text for one in ShowCommand().complete(stage.app, "th")] == ["thoughts"]
        await talk(stage)
        with pytest.raises(UsageError, match="without thoughts"):
            await stage.command("/show reasoning")


@pytest.mark.parametrize("argument", ["x", "0", "-1", "1 2", "9" * 30])
async def test_anything_else_is_said_to_be_unknown(tmp_path: Path, argument: str) -> None:
    with a_stage(tmp_path) as stage, pytest.raises(UsageError, match="/show takes no"):
        await stage.command(f"/show {argument}")


def a_draw() -> tuple[Draw, io.StringIO]:
    written = io.StringIO()
    return Draw(Screen(written)), written


def test_without_a_program_the_terminal_is_asked() -> None:
    draw, written = a_draw()
    for payload in PAYLOADS:
        assert copy_text(f"a{payload}b", draw.send_codes, {}).is_done
    sent = re.findall(r"\x1b\]52;c;([A-Za-z0-9+/=]*)\x1b\\", written.getvalue())
    assert len(sent) == len(PAYLOADS)
    assert base64.b64decode(sent[0]).decode() == f"a{PAYLOADS[0]}b"
    assert forbidden(re.sub(r"\x1b\]52;c;[A-Za-z0-9+/=]*\x1b\\", "", written.getvalue())) == []


def test_what_is_too_large_for_a_terminal_is_not_sent() -> None:
    draw, written = a_draw()
    done = copy_text("x" * (OSC_52_MOST_BYTES + 1), draw.send_codes, {})
    assert not done.is_done
    assert "74,994 bytes at most" in done.how
    assert written.getvalue() == ""


@pytest.mark.parametrize(
    ("environment", "program"),
    [({"DISPLAY": ":0"}, "xclip"), ({"WAYLAND_DISPLAY": "wayland-0"}, "wl-copy"), ({"TMUX": "/tmp/tmux"}, "tmux")],
)
def test_a_program_of_the_machine_is_given_the_text(tmp_path: Path, environment: dict[str, str], program: str) -> None:
    script = tmp_path / program
    script.write_text(f"#!/bin/sh\n/bin/cat > {tmp_path}/copied\n")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    done = copy_text("héllo\n", lambda codes: False, {**environment, "PATH": str(tmp_path)})
    assert done.is_done
    assert (tmp_path / "copied").read_text() == "héllo\n"
    remote = copy_text("x", lambda codes: False, {"DISPLAY": ":0", "SSH_TTY": "/dev/pts/1", "PATH": str(tmp_path)})
    assert not remote.is_done


def test_blocks_of_code() -> None:
    answer = "a\n```py\nx\n\ny\n```\n1. b\n   ```sh\n   ls\n     deep\n   ```\n\n```\nopen"
    assert code_blocks(answer) == ["x\n\ny\n", "ls\n  deep\n", "open\n"]


async def test_an_answer_that_was_asked_to_go_on_is_copied_whole(tmp_path: Path) -> None:
    cut = Reply(Message("assistant", "Two and t"), finish_reason="length")
    with a_stage(tmp_path, ["One.", cut, "wo."]) as stage:
        await talk(stage)
        await talk(stage)
        assert list(answers_backwards(stage.conversation.context.backwards())) == ["Two and two.", "One."]


def test_copying_in_the_chat_is_one_sequence_and_one_line(tmp_path: Path) -> None:
    with chat("Here:\n\n```sh\nls -la\n```\n\nThat's \x1b]0;1337\x07all.", env={"PATH": os.environ["PATH"]}) as tty:
        tty.line("hi")
        tty.sees("That's all.")
        tty.line("/copy")
        tty.sees("Copied the last answer (")
        tty.line("/copy code")
        tty.sees("Copied the last block of code (7 characters) through the terminal")
        sent = [base64.b64decode(one) for one in re.findall(rb"\x1b\]52;c;([^\x1b]*)\x1b\\", tty.raw)]
        assert sent == [b"Here:\n\n```sh\nls -la\n```\n\nThat's all.", b"ls -la\n"]
        tty.line("/copy 7")
        tty.sees("7 is too large: 1 is the last answer, 1 the first.")


def test_the_events_of_a_call_are_remembered_within_bounds() -> None:
    draw, _ = a_draw()
    for number in range(200):
        draw.on_event(ToolFinished(str(number), "edit", is_error=False, summary="", seconds=0, diff="+" * 50_000))
    kept = [number for number in range(200) if draw.recent.of(str(number))]
    assert kept == list(range(120, 200))
