"""Line mode: pipes and dumb terminals, as a subprocess."""

from __future__ import annotations

import asyncio
import io
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from nca.agent.context_notices import Exchange
from nca.events import (
    CallWritten,
    Event,
    Notice,
    RequestStarted,
    TextDelta,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    TurnStarted,
)
from nca.terminal.render import event_lines
from nca.terminal.render.output import ANSWER_LINES
from nca.terminal.render.plain import SIGN_OF_LIFE_SECONDS, PlainDraw
from tests.terminal.input.test_key_questions import Clock
from tests.terminal.tty import ROOT, Tty, chat
from tests.testing.forks import shared


def run(lines: str, *replies: Any, **script: Any) -> subprocess.CompletedProcess[str]:
    """The chat program in a pipe."""
    script["replies"] = replies
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "TERM": "xterm-256color", "PYTHONUTF8": "1"}
    program = shared().start_module("tests.terminal.chat_program", json.dumps(script), env=env, stdin=lines)
    return program.wait()


def test_answers_on_standard_output_the_rest_beside_it() -> None:
    done = run(
        "list\n\nagain\n/config context.target_ratio\n/nope\n",
        {"tool": "list_directory", "arguments": {"path": "docs"}},
        "Here \x1b[31mit\x1b[0m is.",
        "Again.\nTwo lines.",
        banner=["scripted/model answers."],
    )
    assert done.returncode == 2, "/nope is no command"
    assert done.stdout.startswith("Here it is.\nAgain.\nTwo lines.\ncontext.target_ratio = auto")
    size = (ROOT / "AGENTS.md").stat().st_size
    told = f"Instructions: AGENTS.md ({size:,} bytes).\n"  # this repository's, in which the tests run
    assert done.stderr.removeprefix(told).startswith("scripted/model answers.\nTool: list")
    assert "There is no command /nope; nothing was sent.\n" in done.stderr
    assert "\x1b" not in done.stdout + done.stderr


def test_a_failed_turn_makes_the_exit_code() -> None:
    done = run("one\ntwo\n", {"error": "The key was refused.", "advice": "Check it."}, "Fine.")
    assert done.returncode == 3
    assert done.stdout == "Fine.\n"
    assert "The key was refused.\nCheck it.\n" in done.stderr


def test_advice_names_what_the_chat_has() -> None:
    done = run("one\n", {"error": "It is down.", "advice": "Try again, or choose another model with --model."})
    assert "It is down.\nTry again, or choose another model with /model.\n" in done.stderr


@pytest.mark.parametrize(
    ("said", "in_a_shell"),
    [
        ("use a model with a larger window (/model).", "use a model with a larger window (--model)."),
        ("Auto-compaction is off; /compact makes room.", "(/compact is a command of the chat: nca loop --continue)"),
        ("set it with /config model.context_window 8000.", "set it with nca config set model.context_window 8000."),
        ('let it be cut: --fit cut, fit="cut", context.fit.', "let it be cut: --fit cut."),
        ("The MCP server a failed: it ended. /mcp shows more.", "it ended. nca mcp list --check shows more."),
        ("The MCP server a needs a login: /mcp login a", "needs a login: nca mcp login a"),
        ("Stopped after 2 steps. Say “go on” to continue.", 'steps. To continue: nca run -c "go on"'),
        ("Stopped. Say what to do differently.", 'Say what to do differently: nca run -c "…"'),
        ("Run /compact in the chat and try again.", "Run /compact in the chat and try again."),
        ("There is no folder /model/x, and no file /srv/context.", "no folder /model/x, and no file /srv/context."),
    ],
)
def test_a_shell_is_told_what_only_the_chat_has(said: str, in_a_shell: str) -> None:
    assert event_lines.in_shell(said).endswith(in_a_shell)


def test_a_shell_is_told_of_each_command_that_it_is_the_chats() -> None:
    for name in event_lines.NAMES:
        said = event_lines.in_shell(f"/{name} helps.")
        assert said.endswith(f"(/{name} is a command of the chat: nca loop --continue)")
        said = event_lines.in_shell(f"/{name} helps.", "1a2b")
        assert said.endswith(f"(/{name} is a command of the chat: nca loop --resume 1a2b)")


@pytest.mark.parametrize(
    ("lines", "replies", "code"),
    [
        ("!ls\n", [], 2),
        ("one\n/permissions auto\n", [{"error": "Down."}], 2),
        ("!ls\none\n", [{"error": "Down."}], 3),
        ("word " * 20_000 + "\n/context\nshort\n", ["Fine."], 4),
        ("   \n\t\nhello\n", ["Fine."], 0),
        ("list\n", [{"tool": "list_directory", "arguments": {"path": "docs"}}], 1),
    ],
    ids=["usage", "usage is last", "provider is last", "does not fit", "blank lines are no turns", "step limit"],
)
def test_the_exit_code_is_that_of_the_last_failure(lines: str, replies: list[Any], code: int) -> None:
    settings = {1: {"agent.max_steps": 1}, 4: {"context.auto": "off"}}.get(code, {})
    done = run(lines, *replies, settings=settings)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr


def test_leaving_words_backslashes_and_doubled_slashes() -> None:
    done = run("//etc \\\nmore\nexit\nnever sent\n", "Got it.")
    assert (done.returncode, done.stdout) == (0, "Got it.\n")
    assert run("", "x").returncode == 0


@pytest.mark.parametrize(
    "command", ["/help", "/context", "/config", "/model", "/sessions", "/cost", "/context history"]
)
def test_commands_without_escape_codes(command: str) -> None:
    done = run(f"{command}\n")
    assert done.returncode == 0
    assert done.stdout.strip()
    assert "\x1b" not in done.stdout + done.stderr
    assert all(line == line.rstrip() for line in done.stdout.splitlines())


def test_without_a_terminal_prompt_toolkit_is_not_loaded() -> None:
    code = (
        "import sys, json, asyncio; from tests.terminal.chat_program import main;"
        "asyncio.run(main({'replies': ['Hi.']}));"
        "print([name for name in ('prompt_toolkit', 'litellm') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], input="hi\n", capture_output=True, text=True, cwd=ROOT, timeout=60, check=True
    )
    assert done.stdout == "Hi.\n[]\n"


def test_a_dumb_terminal_gets_plain_lines_and_a_plain_prompt() -> None:
    with chat("Hello **there**.", env={"TERM": "dumb"}) as tty:
        tty.sees(">")
        tty.line("hi")
        tty.sees("Hello **there**.")
        tty.line("SLOW question")
        tty.sees("The first piece.")
        tty.process.kill(signal.SIGINT)
        tty.sees("Interrupted")
        tty.sees(">", times=3)
        tty.line("exit")
        assert tty.ends() == 0
        assert b"\x1b" not in tty.raw


@pytest.mark.parametrize(("keys", "code"), [("\x03\x03", 130), ("\x04", 0)])
def test_who_leaves_plain_lines_reads_on_a_line_of_its_own_how_to_go_on(tmp_path: Path, keys: str, code: int) -> None:
    with chat("Hello.", env={"TERM": "dumb"}, home=str(tmp_path)) as tty:
        tty.sees(">")
        tty.line("hi")
        tty.sees("Hello.")
        tty.sees(">", times=2)
        for number, key in enumerate(keys, 1):
            tty.send(key)
            if number < len(keys):
                tty.sees("Ctrl-C again leaves.")
        assert tty.ends(again=keys[-1]) == code
        lines = tty.text().splitlines()
    assert any(line.startswith("To continue this session: nca loop --resume ") for line in lines)
    assert [line for line in lines if line.startswith(">") and "leaves" in line] == []


def test_a_reader_that_goes_away_ends_the_chat() -> None:
    command = [sys.executable, "-m", "tests.terminal.chat_program", json.dumps({"replies": ["One."] * 3})]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT, text=True
    ) as process:
        assert process.stdin
        assert process.stdout
        process.stdout.close()
        process.stdin.write("hi\nhi\nhi\n")
        process.stdin.flush()
        assert process.wait(30) == 141
        assert process.stderr
        assert "Traceback" not in process.stderr.read()


def test_ctrl_c_in_a_pipe_ends_it() -> None:
    command = [sys.executable, "-m", "tests.terminal.chat_program", json.dumps({"replies": []})]
    with Tty(["/bin/sh", "-c", 'printf "SLOW one\\n" | "$@" | cat', "sh", *command]) as tty:
        tty.sees("The first piece.")
        tty.send("\x03")
        tty.sees("left with 130")


def test_two_answers_of_a_turn_are_two_paragraphs_and_one_that_goes_on_is_one() -> None:
    answers, asides = io.StringIO(), io.StringIO()
    draw = PlainDraw(answers, asides, {})
    asked, ended = RequestStarted(1, "m", 1, 2), TurnFinished("answered", "", 1, 0.0)
    first: list[Event] = [
        TurnStarted("s", 1),
        asked,
        TextDelta("I stop"),
        asked,
        TextDelta(" here."),
        Notice("A hook has it go on."),
    ]
    for event in (*first, asked, TextDelta("Line.\n"), asked, TextDelta("Line."), ended):
        draw.on_event(event)
    for event in (TurnStarted("s", 2), asked, TextDelta("Next."), ended):
        draw.on_event(event)
    assert answers.getvalue() == "I stop here.\n\nLine.\nLine.\nNext.\n"


def test_a_program_gets_the_text_of_the_last_step_of_a_run_alone() -> None:
    answers, asides = io.StringIO(), io.StringIO()
    draw = PlainDraw(answers, asides, {}, is_chat=False)
    call = ToolStarted("c", "read_file", "{}", "read a.txt")
    steps: list[Event] = [
        *(RequestStarted(1, "m", 1, 2), TextDelta("I look.\nAt a.txt."), call),
        *(ToolFinished("c", "read_file", False, "done", 0.1), RequestStarted(2, "m", 1, 2), TextDelta("I am done.")),
        *(RequestStarted(3, "m", 1, 2), TextDelta("Forty-"), RequestStarted(3, "m", 1, 2), TextDelta("two")),
    ]
    for event in steps:
        draw.on_event(event)
    assert answers.getvalue() == ""
    assert asides.getvalue() == "I look.\nAt a.txt.\nTool: read a.txt, done\nI am done.\n"
    draw.on_event(TurnFinished("interrupted", "", 3, 0.0))
    assert answers.getvalue() == "Forty-two\n"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_what_was_said_last_is_read_out_at_a_terminal_and_not_in_a_pipe() -> None:
    said = Exchange("what\nis it?", "".join(f"line {number}\n" for number in range(ANSWER_LINES + 2)), 4)
    shown, piped = Terminal(), io.StringIO()
    for file in (shown, piped):
        draw = PlainDraw(file, file, {})
        draw.exchange(said)
        draw.exchange(Exchange("", "", 0))
    lines = shown.getvalue().splitlines()
    assert lines[:3] == ["You: what is it?", "… 2 lines above (/context show 4 has all of it)", "line 2"]
    assert (lines[-1], len(lines), piped.getvalue()) == (f"line {ANSWER_LINES + 1}", ANSWER_LINES + 2, "")


def test_each_call_of_a_task_is_a_line() -> None:
    answers, said = io.StringIO(), io.StringIO()
    draw = PlainDraw(answers, said, {})
    draw.on_event(ToolStarted("task-0a1b2c3d/1", "shell", "{}", "task: $ rm x"))
    draw.on_event(ToolFinished("task-0a1b2c3d/1", "shell", False, "done", 0.1))
    assert said.getvalue() == "Tool: task: $ rm x, done\n"


class AtATerminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_sign_of_life_says_what_is_done_now() -> None:
    clock, said = Clock(), AtATerminal()
    draw = PlainDraw(said, said, {})
    events: list[Event] = [
        *(CallWritten("shell", "$ make", 40, 0), CallWritten("shell", "$ make all", 9_000, 12)),
        *(ToolStarted("c", "shell", "{}", "$ make all"), ToolFinished("c", "shell", False, "done", 0.1)),
        CallWritten("shell", "$ ls", 40, 0),
        *(RequestStarted(2, "m", 10, 100), TurnFinished("answered", "", 2, 0.1)),
    ]

    async def work() -> None:
        async with draw.at_work("Thinking"):
            for event in events:
                await asyncio.sleep(0)
                draw.on_event(event)
                clock.now += SIGN_OF_LIFE_SECONDS
                for _ in range(4):
                    await asyncio.sleep(0)

    with asyncio.Runner(loop_factory=lambda: clock) as runner:
        runner.run(work())
    signs = re.findall(r"Still working after (\d+)[^:]*: (.*?)\. Ctrl-C stops it\.", " ".join(said.getvalue().split()))
    assert [what for _, what in signs] == [
        *("Writing a call, 40 characters: $ make", "Writing a call, 12 lines: $ make all", "$ make all", "Thinking"),
        *("Writing a call, 40 characters: $ ls", "Thinking", "Thinking"),
    ]


@pytest.mark.parametrize(
    ("started", "summary", "line"),
    [
        (
            "$ git push",
            "not allowed by your rule shell git push",
            "$ git push, not allowed by your rule shell git push",
        ),
        ("read nowhere.py", "no such file: nowhere.py", "read nowhere.py, no such file"),
    ],
)
def test_a_rule_is_named_whole_and_a_path_once(started: str, summary: str, line: str) -> None:
    event = ToolFinished("1", "tool", is_error=True, summary=summary, seconds=0.1)
    assert event_lines.tool_finished_line(started, event, in_words=True) == line
