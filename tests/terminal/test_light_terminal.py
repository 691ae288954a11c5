"""In a light terminal nothing has a colour that is not of the light palette."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from rich.color import Color

from nca.terminal.render.theme import PALETTES
from tests.terminal.tty import Tty, chat

LIGHT = {"COLORFGBG": "0;15"}
_SGR = re.compile(rb"\x1b\[([0-9;]*)m")


def allowed(theme: str = "light") -> set[str]:
    """The parameters that draw a colour of a palette: by number, as Rich writes it, or in full."""
    found: set[str] = set()
    for colour in PALETTES[theme]:
        parsed = Color.parse(colour)
        red, green, blue = parsed.get_truecolor()
        found |= {f"5;{parsed.number}", f"2;{red};{green};{blue}"}
    return found


def colours(raw: bytes) -> set[str]:
    """The foregrounds that were drawn; one of the terminal's own sixteen is given by its code."""
    found: set[str] = set()
    for match in _SGR.finditer(raw):
        codes = match[1].decode().split(";")
        while codes:
            code = codes.pop(0)
            if code in ("38", "48"):
                length = 4 if codes[0] == "2" else 2
                found.add(";".join(codes[:length]))
                del codes[:length]
            elif code.isdecimal() and (30 <= int(code) <= 37 or 90 <= int(code) <= 97):
                found.add(code)
    return found


@pytest.mark.parametrize(
    "arguments", [("--help",), ("loop", "--help"), ("config", "set", "-h"), ("sessions", "-h"), ("doctor",)]
)
def test_a_command_draws_in_the_light_palette(arguments: tuple[str, ...], tmp_path: Path) -> None:
    environment = {**LIGHT, "NCA_HOME": str(tmp_path)}
    with Tty([sys.executable, "-m", "nca", *arguments], columns=70, environment=environment) as tty:
        tty.ends()
        assert colours(tty.raw)
        assert colours(tty.raw) <= allowed()


def test_the_chat_draws_in_the_light_palette(tmp_path: Path) -> None:
    read = {"tool": "read_file", "arguments": {"path": "no/such.py"}}
    write = {"tool": "write_file", "arguments": {"path": "new", "content": "text\n"}}
    answer = (
        "# Head\n\nUse `this`:\n\n```python\ndef one() -> int:\n    return 1  # one\n```\n\n1. a [link](http://a.b)\n"
    )
    with chat(read, write, answer, columns=60, rows=40, env=LIGHT, directory=str(tmp_path)) as tty:
        tty.sees("›")
        tty.line("Look and touch.")
        tty.sees("Allow it?")
        tty.answer("y")
        tty.sees("link")
        for line, awaited in (
            ("/context", "Esc leaves"),
            ("/config", "Esc leaves"),
            ("/model", "Esc cancels"),
            ("/rewind", "Esc cancels"),
        ):
            tty.command(line)
            tty.sees(awaited)
            tty.settle()
            tty.send("\x1b")
            tty.settle()
        for line, awaited in (
            ("/help", "ideas"),
            ("/tools", "fetch_url"),
            ("/changes", "new"),
            ("/cost", "tokens"),
            ("/nothing", "no command"),
            ("/context all", "Largest"),
        ):
            tty.command(line)
            tty.sees(awaited)
            tty.settle()
        tty.send("/co")
        tty.sees("Compact now")
        tty.settle()
        assert not any("..." in line for line in tty.shown())
        assert colours(tty.raw)
        assert colours(tty.raw) <= allowed()


def test_all_that_is_drawn_after_a_change_of_the_theme_has_the_new_palette() -> None:
    with chat("Answered.", columns=90, rows=40, env=LIGHT) as tty:
        tty.sees("›")
        tty.line("Look.")
        tty.sees("Answered.")
        tty.line("/config terminal.theme dark")
        tty.sees("for this chat")
        tty.settle()
        for line, awaited in (
            ("/help", "ideas"),
            ("/context all", "Largest"),
            ("/config model.name", "Valid"),
            ("/nothing", "no command"),
        ):
            start = len(tty.raw)
            tty.command(line)
            tty.sees(awaited)
            tty.settle()
            assert colours(tty.raw[start:])
            assert not colours(tty.raw[start:]) & allowed()
