"""The person's own editor: from the prompt (Ctrl-X Ctrl-E) and by /editor."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from nca.errors import UsageError
from nca.terminal.input.editor import edited
from tests.terminal.tty import Tty, chat

CTRL_C, CTRL_D, CTRL_UNDERSCORE, EDIT = "\x03", "\x04", "\x1f", "\x18\x05"
LINES = "\n".join(f"line {number}" for number in range(60))


@contextmanager
def with_editor(tmp_path: Path, body: str, **environment: str) -> Iterator[Tty]:
    """A chat whose editor is a script: `$2` is the file, behind an argument of its own."""
    editor = tmp_path / "my editor"
    editor.write_text(f"#!/bin/sh\n{body}\n")
    editor.chmod(0o755)
    env = environment or {"EDITOR": f"'{editor}' --wait"}
    with chat("Got it.", "Again.", env=env) as tty:
        tty.sees("›")
        tty.settle()
        yield tty


def rewrite(tmp_path: Path, body: str) -> None:
    (tmp_path / "my editor").write_text(f"#!/bin/sh\n{body}\n")


def test_the_text_goes_to_the_editor_and_comes_back(tmp_path: Path) -> None:
    look = f'stat -c "%a" "$(dirname "$2")" > {tmp_path}/mode; cp "$2" {tmp_path}/seen; echo "and more" >> "$2"'
    with with_editor(tmp_path, look) as tty:
        tty.send(f"see \x1b[200~{LINES}\x1b[201~ ")
        tty.sees("[pasted 60 lines]")
        tty.send(EDIT)
        tty.sees("› see [pasted 60 lines] and more")
        assert (tmp_path / "mode").read_text() == "700\n"
        assert (tmp_path / "seen").read_text() == f"see {LINES} "
        tty.send(CTRL_UNDERSCORE)
        tty.settle()
        assert "and more" not in tty.text()
        tty.send("x\r")
        tty.sees("Got it.")


def test_an_editor_that_does_not_end_well_changes_nothing(tmp_path: Path) -> None:
    with with_editor(tmp_path, "exit 3") as tty:
        tty.send("keep me" + EDIT)
        tty.sees("The editor ended with exit code 3; nothing was changed.")
        rewrite(tmp_path, f"touch {tmp_path}/running; exec sleep 60")
        tty.send(EDIT)
        while not (tmp_path / "running").exists():
            tty.settle()
        tty.send(CTRL_C)
        tty.sees("The editor was ended by SIGINT; nothing was changed.")
        rewrite(tmp_path, 'rm "$2"')
        tty.send(EDIT)
        tty.sees("The editor left no file")
        tty.sees("› keep me")
        tty.send("\r")
        tty.sees("Got it.")


def test_the_command_fills_the_prompt_and_does_not_send(tmp_path: Path) -> None:
    with with_editor(tmp_path, 'printf "\\nsecond line\\n" >> "$2"') as tty:
        tty.line("/editor first words ")
        tty.sees("› first words\n  second line")
        tty.settle()
        assert "Got it." not in tty.text()
        tty.send("\r")
        tty.sees("Got it.")
        rewrite(tmp_path, 'echo > "$2"')
        tty.line("/editor")
        tty.sees("The editor left no text; nothing was sent.")


@pytest.mark.parametrize(
    ("environment", "said", "advice"),
    [
        ({"LANG": "C.UTF-8"}, "No editor is set.", "Set EDITOR, as in EDITOR=nano."),
        ({"VISUAL": "/no/such/editor -x"}, "cannot be started: no such file or directory.", "Set EDITOR to another"),
        ({"EDITOR": "'open quote"}, "cannot be read: No closing quotation.", ""),
    ],
)
def test_what_is_wrong_with_the_setting_is_said(
    environment: dict[str, str], said: str, advice: str, tmp_path: Path
) -> None:
    with with_editor(tmp_path, "", **environment) as tty:
        tty.send("keep me" + EDIT)
        tty.sees(f"{said} {advice}".rstrip())
        assert not advice or tty.text().count(advice) == 1
        tty.sees("› keep me")
        tty.send(CTRL_C)
        tty.settle()
        tty.line("/editor")
        tty.sees(f"{said}\n{advice}")


def test_after_one_that_cannot_be_started_ctrl_c_is_nca_s_again(tmp_path: Path) -> None:
    with with_editor(tmp_path, "", VISUAL="/no/such/editor") as tty:
        tty.line("/editor")
        tty.sees("cannot be started")
        tty.command("SLOW question")
        tty.sees("The first piece.")
        tty.send(CTRL_C)
        tty.sees("Interrupted. The answer so far is kept.")


@pytest.mark.parametrize("command", [EDIT, "/editor\r"])
def test_an_ending_ends_the_editor_too(command: str, tmp_path: Path) -> None:
    with with_editor(tmp_path, f"echo $$ > {tmp_path}/pid; exec sleep 60") as tty:
        tty.send(command)
        while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
            tty.settle()
        os.kill(tty.process.pid, signal.SIGTERM)
        assert tty.ends() == 143
        with pytest.raises(ProcessLookupError):
            os.kill(int((tmp_path / "pid").read_text()), 0)


class _NeverLent(AbstractContextManager[None]):
    def __enter__(self) -> None:
        pytest.fail("was lent")

    def __exit__(self, *error: object) -> None:
        return


async def test_without_a_terminal_there_is_no_editor() -> None:
    with pytest.raises(UsageError, match="needs a terminal"):
        await asyncio.wait_for(edited("text", _NeverLent()), 5)
