"""Signals while the event loop is busy or a program has to clean up."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.terminal.tty import ROOT, Tty, chat

WAIT_SECONDS = 30.0
BUSY = """
import asyncio, time
from nca.terminal.interrupts import Interrupts
from nca.terminal.signals import at_once

async def main():
    interrupts = Interrupts()
    with interrupts.handled():
        print("busy", flush=True)
        while True:
            time.sleep(0.05)

with at_once():
    asyncio.run(main())
"""
CLEARING = """
import sys, time
from nca.terminal.signals import raised

try:
    with raised():
        try:
            print("busy", flush=True)
            while True:  # a signal right before a long sleep is handled behind it
                time.sleep(0.05)
        finally:
            print("cleared", flush=True)
except KeyboardInterrupt:
    sys.exit(130)
"""


def started(code: str) -> subprocess.Popen[str]:
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert process.stdout
    assert process.stdout.readline() == "busy\n"
    return process


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGQUIT, 131)])
def test_an_ending_is_forced_where_the_loop_is_busy(number: signal.Signals, code: int) -> None:
    with started(BUSY) as process:
        process.send_signal(number)
        assert process.wait(WAIT_SECONDS) == code


def test_one_interrupt_waits_for_the_loop_and_two_do_not() -> None:
    with started(BUSY) as process:
        process.send_signal(signal.SIGINT)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(2.5)
        process.send_signal(signal.SIGINT)
        assert process.wait(WAIT_SECONDS) == 130


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGQUIT, 131), (signal.SIGINT, 130)]
)
def test_what_has_to_be_cleared_away_is(number: signal.Signals, code: int) -> None:
    with started(CLEARING) as process:
        process.send_signal(number)
        assert process.wait(WAIT_SECONDS) == code
        assert process.stdout
        assert process.stdout.read() == "cleared\n"


@pytest.mark.parametrize("code", [BUSY, CLEARING])
def test_what_is_to_be_ignored_is(code: str) -> None:
    ignoring = "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)"
    with started(f"{ignoring}{code}") as process:
        process.send_signal(signal.SIGHUP)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(2.5)
        process.send_signal(signal.SIGTERM)
        assert process.wait(WAIT_SECONDS) == 143


def test_a_terminal_that_takes_nothing_keeps_no_program_alive() -> None:
    """Nobody reads the other end, as behind Ctrl-S: the write that fills it never returns."""
    master, slave = os.openpty()
    code = BUSY.replace("time.sleep(0.05)", "print('x' * 1_000, flush=True)").replace(
        '"busy"', '"busy", file=sys.stderr'
    )
    with subprocess.Popen(
        [sys.executable, "-c", f"import sys{code}"], stdin=slave, stdout=slave, stderr=-1, text=True, cwd=ROOT
    ) as process:
        assert process.stderr
        assert process.stderr.readline() == "busy\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(WAIT_SECONDS) == 143
    os.close(master)
    os.close(slave)


def test_an_interrupt_at_the_prompt_stops_nothing_of_what_is_said_next() -> None:
    with chat("An answer.") as tty:
        tty.sees("›")
        tty.send("typed")
        tty.sees("typed")
        tty.settle()
        tty.process.kill(signal.SIGINT)
        tty.until(lambda: "typed" not in "\n".join(tty.shown()))
        tty.line("Hello")
        tty.sees("An answer.")
        assert "Interrupted" not in tty.text()


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")
def test_under_make_ctrl_c_is_the_chat_s_alone(tmp_path: Path) -> None:
    (tmp_path / "python").symlink_to(sys.executable)
    program = shlex.join([sys.executable, "-m", "tests.terminal.chat_program", json.dumps({"replies": []})])
    (tmp_path / "nca").write_text(f"#!/bin/sh\nexec {program}\n")
    (tmp_path / "nca").chmod(0o755)
    command = ["make", "-C", str(ROOT), "--no-print-directory", "-o", ".venv/.run", "loop", f"BIN={tmp_path}"]
    with Tty(command) as tty:
        tty.sees("›")
        tty.line("SLOW question")
        tty.sees("The first piece.")
        tty.send("\x03")
        tty.sees("Interrupted.")
        tty.settle()
        tty.send("\x04")
        assert tty.ends() == 0
        assert not re.search(r"make(\[\d+\])?: ", tty.text())
