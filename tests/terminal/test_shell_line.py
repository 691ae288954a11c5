"""`!command`: runs in the prompt's directory, is shown while it runs, and joins the next message or not."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from nca.errors import UsageError
from nca.terminal.input.line_kind import is_shell_line, line_kind
from nca.terminal.shell_line import LAST_LINES, SHOWN_CHARS, ShellLine
from nca.wire import content_text
from nca.words import words
from tests.terminal.stage import a_stage
from tests.terminal.tty import ROOT, Tty

CTRL_C = "\x03"


def test_which_lines_are_commands() -> None:
    assert [line for line in ("!ls", "!!ls", "! ls", "!", "![x](y)", " !ls", "ls!") if is_shell_line(line)] == [
        *("!ls", "!!ls", "! ls", "!"),
    ]
    assert line_kind(words("!ls")) == "shell"
    assert line_kind(words("![x](y)")) == "message"


async def test_what_it_said_goes_with_the_next_message(tmp_path: Path) -> None:
    with a_stage(tmp_path, ["Good.", "Fine."]) as stage:
        line = ShellLine(stage.app.sessions, stage.app.output)
        await line.run('!echo "one"; exit 3')
        said = stage.take()
        assert said == "one\nexit code 3\nAttached to your next message (! alone detaches it).\n"
        assert not list(stage.conversation.context.entries)
        await line.run("!!echo two")
        assert stage.take() == "two\n"
        await line.run("! printf 'a\\033[31mb\\000\\n'")
        assert "ab\n" in stage.take()
        await stage.conversation.send("what is wrong?")
        sent = content_text(stage.conversation.context.entries[0].message.content)
        assert sent.startswith("what is wrong?\n\n<file path='$ echo \"one\"; exit 3'>\none\n[exit code 3]\n</file>")
        assert "two" not in sent
        assert "\nab\n</file>" in sent
        assert stage.conversation.context.entries[0].message.text == "what is wrong?"
        await stage.conversation.send("and now?")
        assert stage.conversation.context.entries[2].message.content == "and now?"


async def test_an_exclamation_mark_alone_takes_it_away_again(tmp_path: Path) -> None:
    with a_stage(tmp_path, ["Good.", "Fine."]) as stage:
        line = ShellLine(stage.app.sessions, stage.app.output)
        await line.run("!echo one")
        await line.run("!echo two")
        stage.take()
        await line.run("!")
        assert stage.take() == "Detached from your next message: $ echo one, $ echo two\n"
        with pytest.raises(UsageError, match="no command after the !"):
            await line.run("!")
        await line.run("!echo three")
        await stage.conversation.send("Well?")
        sent = content_text(stage.conversation.context.entries[0].message.content)
        assert "three" in sent
        assert "one" not in sent
        stage.take()
        assert "Attached to your next message (! alone detaches it): $ echo three" in await stage.command("/undo")
        await line.run("!")
        await stage.conversation.send("And now?")
        assert stage.conversation.context.entries[-2].message.content == "And now?"


@pytest.mark.parametrize("mark", ["!", "!!"])
async def test_what_a_stopped_command_printed_goes_along_too(tmp_path: Path, mark: str) -> None:
    with a_stage(tmp_path, ["Good."]) as stage:
        line = ShellLine(stage.app.sessions, stage.app.output)
        running = asyncio.create_task(line.run(f"{mark}echo one; sleep 60"))
        said = ""
        while "one" not in said:
            await asyncio.sleep(0.02)
            said += stage.take()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert ("Attached to your next message" in stage.take()) == (mark == "!")
        await stage.conversation.send("Well?")
        sent = content_text(stage.conversation.context.entries[0].message.content)
        assert ("\none\n[interrupted by the user: " in sent) == (mark == "!")


async def test_a_change_of_directory_is_shown_and_ends_with_the_session(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    with a_stage(tmp_path, ["Good.", "Fine."]) as stage:
        line = ShellLine(stage.app.sessions, stage.app.output)
        await line.run("!!cd sub")
        assert "The next ! command runs in sub.\n" in stage.take()
        await line.run("!basename $PWD")
        assert stage.take() == "sub\nAttached to your next message (! alone detaches it).\n"
        await stage.app.sessions.conversation.send("Where?")
        sent = content_text(stage.app.sessions.conversation.context.entries[0].message.content)
        assert '<file path="$ basename $PWD  (in ./sub)">\nsub\n</file>' in sent
        stage.take()
        await stage.app.sessions.start("")
        stage.take()
        await line.run("!basename $PWD")
        assert stage.take() == f"{tmp_path.name}\nAttached to your next message (! alone detaches it).\n"
        await stage.app.sessions.start("")
        assert "Not sent with a message, and not kept: $ basename $PWD" not in stage.take()
        await stage.app.sessions.conversation.close()
        assert "Not sent with a message, and not kept: $ basename $PWD" in stage.take()


async def test_the_command_is_sent_whole_and_with_its_blanks(tmp_path: Path) -> None:
    command = f"""echo "$HOME"  "a  b" {"x" * 300}"""
    with a_stage(tmp_path, ["Good."]) as stage:
        await ShellLine(stage.app.sessions, stage.app.output).run(f"!{command}")
        await stage.conversation.send("here")
        assert f"<file path='$ {command}'>\n" in content_text(stage.conversation.context.entries[0].message.content)


async def test_keys_do_not_come_along(tmp_path: Path) -> None:
    key = "sk-proj-" + "a1B2" * 10
    with a_stage(tmp_path, ["Good."]) as stage:
        await ShellLine(stage.app.sessions, stage.app.output).run(f"!echo {key}")
        await stage.conversation.send("here")
        assert key not in content_text(stage.conversation.context.entries[0].message.content)


async def test_the_directory_is_the_persons_own(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    with a_stage(tmp_path) as stage:
        line = ShellLine(stage.app.sessions, stage.app.output)
        await line.run("!!cd sub")
        assert "The next ! command runs in sub.\n" in stage.take(), "none of the model's does"
        await line.run("!!pwd -P")
        assert f"{tmp_path.resolve()}/sub\n" in stage.take()
        await line.run("!!cd /")
        stage.take()
        await line.run("!!pwd")
        assert stage.take() == "/\n"
        await line.run(f"!!cd {tmp_path}/sub")
        (tmp_path / "sub").rmdir()
        stage.take()
        await line.run("!!basename $PWD")
        assert stage.take() == f"{tmp_path.name}\nIt runs in the project's directory.\n"


async def test_a_program_that_draws_on_the_whole_screen_is_stopped_and_not_shared(tmp_path: Path) -> None:
    """A newcomer's !vim hung, and what it had drawn went along with the next message."""
    with a_stage(tmp_path, ["Good."]) as stage:
        line = ShellLine(stage.app.sessions, stage.app.output)
        with pytest.raises(UsageError, match="draws on the whole screen, so it was stopped"):
            await line.run("!printf 'on the \\033[?10'; sleep 0.1; printf '49hscreen'; sleep 600")
        assert "screen" not in stage.take()
        assert not stage.conversation.user_input.waiting


def test_two_marks_give_the_command_the_terminal(start: Callable[..., Tty], tmp_path: Path) -> None:
    tty = start("Good.", directory=str(tmp_path), env={"EDITOR": "their-editor"})
    tty.line("!!printf 'Na''me? '; read name; mkdir sub; cd sub; printf \"$EDITOR for $name\"; exit 3")
    tty.sees("\nName?")
    tty.send("Ada\r")
    tty.sees("\nName? Ada\ntheir-editor for Ada\n\nexit code 3\nThe next ! command runs in sub.\n")
    tty.line("!!sh -c 'echo beg\"\"un; exec sleep 600'")
    tty.sees("\nbegun")
    tty.send(CTRL_C)
    tty.until(lambda: "ended by SIGINT" in tty.text() or "exit code 130" in tty.text())
    tty.line("!printf '\\033[?1049h'; sleep 600")
    tty.sees("gives it your terminal.")
    tty.line("\x15Hello.")
    tty.sees("Good.")


@pytest.mark.parametrize("text", ["!", "!!", "!  ", "!ls\nrm x", "!a\0b", "!" + "x" * 200_000])
async def test_what_is_not_run(tmp_path: Path, text: str) -> None:
    with a_stage(tmp_path) as stage:
        with pytest.raises(UsageError):
            await ShellLine(stage.app.sessions, stage.app.output).run(text)
        assert stage.take() == ""


async def test_of_an_output_that_goes_along_in_part_this_is_said(tmp_path: Path) -> None:
    with a_stage(tmp_path) as stage:
        await ShellLine(stage.app.sessions, stage.app.output).run("!seq 1 5000")
        assert "Attached to your next message, cut for the model (! alone detaches it)." in stage.take()


async def test_of_much_output_beginning_and_end_are_shown(tmp_path: Path) -> None:
    with a_stage(tmp_path) as stage:
        await ShellLine(stage.app.sessions, stage.app.output).run("!!seq 1 200000")
        said = stage.take()
        assert said.startswith("1\n2\n3\n")
        assert "not all of it is shown" in said
        assert "\n200000\n" in said
        assert len(said) < SHOWN_CHARS * 3
        assert said.count("\n1999") == LAST_LINES - 3 or "\n199990\n" in said
        await ShellLine(stage.app.sessions, stage.app.output).run("!!head -c 5000000 /dev/zero | tr '\\0' x")
        assert len(stage.take()) < SHOWN_CHARS * 4


def test_in_a_terminal(start: Callable[..., Tty], tmp_path: Path) -> None:
    tty = start("I see it.", home=str(tmp_path))
    tty.line("!echo $((6 * 7)) && cd nca && basename $PWD")
    whole = tty.sees("Attached to your next message (! alone detaches it).")
    assert "\n42\nnca\n" in whole
    tty.line("!echo begun; sleep 60")
    tty.sees("\nbegun")
    tty.send(CTRL_C)
    tty.sees("Stopped.")
    tty.line("!false")
    tty.sees("exit code 1")
    tty.line("look at that")
    tty.sees("I see it.")
    tty.line("exit")
    assert tty.ends() == 0


def test_what_comes_down_a_pipe_is_not_run(tmp_path: Path) -> None:
    script = json.dumps({"replies": ["An answer."]})
    ended = subprocess.run(
        [sys.executable, "-m", "tests.terminal.chat_program", script],
        input=f"!touch {tmp_path}/pwned\n!!touch {tmp_path}/pwned\nhello\n",
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert not (tmp_path / "pwned").exists()
    assert (
        ended.stderr.count(
            "!COMMAND starts a program: type it at a terminal, or use a flag of nca loop. Nothing was done."
        )
        == 2
    )
    assert "An answer." in ended.stdout
    assert ended.returncode == UsageError.exit_code
