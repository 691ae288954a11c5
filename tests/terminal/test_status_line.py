"""A status line of the person's own in a real terminal: it is there, follows the chat, and never blocks the prompt."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from tests.terminal.tty import Tty, chats


def last_row(tty: Tty) -> str:
    return [line for line in tty.shown() if line][-1].strip()


def test_a_format_and_a_command_in_the_chat(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", "-b", "topic/x", str(tmp_path)], check=True)
    line = r"read -r input; printf '\033[35mfrom the command\033[0m\nsecond'"
    settings = {"terminal.status": "{branch} · {limits} · {percent} · {command}", "terminal.status_command": line}
    with chats(directory=str(tmp_path), settings=settings) as start:
        tty = start("One.")
        tty.sees("from the command")
        tty.until(lambda: re.fullmatch(r"topic/x · \d+% · from the command", last_row(tty)) is not None)
        assert b"\x1b[0;35m" in tty.raw
        tty.line("/permissions plan")
        tty.sees("only reads")
        tty.line("/config terminal.status {mode}")
        tty.until(lambda: last_row(tty) == "plan")
        tty.line("/config terminal.status {mood}")
        assert "valid names: model, usage, gauge" in tty.sees("terminal.status has no {mood}")


def test_a_command_that_hangs_holds_up_nothing_and_one_that_fails_is_said_once(tmp_path: Path) -> None:
    with chats(directory=str(tmp_path), settings={"terminal.status_command": "sleep 60"}) as start:
        tty = start("One.", "Two.")
        tty.line("Typed at once.")
        tty.sees("One.")
        tty.line("/config terminal.status_command echo not found >&2; exit 7")
        tty.sees("ended with exit code 7: not found")
        tty.line("Again.")
        tty.sees("Two.")
        # Silence says nothing on a busy machine: the prompt is there when its toolbar is.
        tty.until(lambda: "▓" in last_row(tty))
        assert tty.text().count("exit code 7") == 1
