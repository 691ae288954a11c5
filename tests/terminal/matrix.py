"""A chat in one of many environments: terminal or pipe, TERM, locale, colour, size."""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from tests.terminal.tty import ROOT

TERMS = ("xterm-256color", "screen", "dumb", "", "bogus")
"""Empty: not set."""
PIPES: tuple[Pipes, ...] = ("none", "in", "out", "both")
LOCALES = ("C", "C.UTF-8", "ja_JP.eucJP", "ascii")
"""What is not installed counts as C. Python takes C for UTF-8, so `ascii` says it in Python's own words."""
SIZES = ((1, 1), (2, 5), (24, 3), (24, 80), (200, 500))
"""Rows, columns."""
ANSWER = "A bullet •, a quote “so”, and an arrow →."
LINES = ("hello", "/context", "/exit")
_END_SECONDS = 60.0
_POLL_SECONDS = 0.01
_CODE = re.compile(rb"[\x1b\x07\x08\x00\x9b]")
_SCRIPT = json.dumps({"replies": [ANSWER], "banner": ["scripted/model answers · /help"]})

Pipes = Literal["none", "in", "out", "both"]


@dataclass(frozen=True, slots=True)
class Spot:
    """`pipes` says which of input and output are no terminal; standard error goes where the output goes."""

    term: str
    pipes: Pipes
    is_colourless: bool
    locale: str
    size: tuple[int, int]

    @property
    def is_capable(self) -> bool:
        return self.pipes == "none" and self.term not in ("dumb", "")

    def environment(self) -> dict[str, str]:
        env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "LC_ALL": self.locale}
        if self.locale == "ascii":
            env |= {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii"}
        if self.term:
            env["TERM"] = self.term
        if self.is_colourless:
            env["NO_COLOR"] = "1"
        return env


def spots() -> Iterator[Spot]:
    for values in itertools.product(TERMS, PIPES, (False, True), LOCALES, SIZES):
        yield Spot(*values)


def problems(spot: Spot) -> list[str]:
    """What is wrong with a chat there, one line each."""
    code, raw = talk(spot)
    wrong = []
    if code != 0:
        wrong.append(f"it ended with {code}")
    if any(word in raw for word in (b"Traceback", b"Exception", b"WARNING", b"Error")):
        wrong.append("a traceback or a warning")
    if not spot.is_capable:
        wrong += _of_lines(spot, raw)
    elif spot.size[1] >= 80 and b"A bullet" not in raw:
        wrong.append("the answer is not there")
    if spot.is_colourless and re.search(rb"\x1b\[[0-9;]*\b(3[0-7]|9[0-7]|[34]8)\b[0-9;]*m", raw):
        wrong.append("a colour")
    if b"?" in raw.replace(b"\x1b[?", b"") or b"\\x" in raw:
        wrong.append("a sign that became a question mark")
    return [f"{line}\n{raw[-600:]!r}" for line in wrong]


def _of_lines(spot: Spot, raw: bytes) -> list[str]:
    wrong = []
    if found := _CODE.search(raw):
        wrong.append(f"a control code {found[0]!r}")
    carried = [ANSWER.encode(), b'A bullet *, a quote "so", and an arrow >.', ANSWER.encode("euc_jp", "replace")]
    lines = raw.replace(b"\r\n", b"\n").split(b"\n")
    # In a window of a few columns the lines break inside words.
    flat = b"".join(raw.split())
    if not any(b"".join(one.split()) in flat for one in carried):
        wrong.append("the answer is not there")
    if any(not a.strip() and not b.strip() for a, b in itertools.pairwise(lines[:-1])) or not lines[0].strip():
        wrong.append("lines with nothing in them")
    return wrong


def talk(spot: Spot) -> tuple[int, bytes]:
    """The exit code, and every byte that was written."""
    master, slave = os.openpty()
    termios.tcsetwinsize(slave, spot.size)
    before = termios.tcgetattr(slave)
    pipe_in, pipe_out = spot.pipes in ("in", "both"), spot.pipes in ("out", "both")
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.terminal.chat_program", _SCRIPT],
        stdin=subprocess.PIPE if pipe_in else slave,
        stdout=subprocess.PIPE if pipe_out else slave,
        stderr=subprocess.STDOUT,
        env=spot.environment(),
        cwd=ROOT,
        start_new_session=True,
    )
    output = process.stdout.fileno() if process.stdout else master
    chunks: list[bytes] = []
    reader = threading.Thread(target=_read, args=(output, chunks), daemon=True)
    reader.start()
    if process.stdin:
        with suppress(BrokenPipeError):
            process.stdin.write("".join(f"{line}\n" for line in LINES).encode())
            process.stdin.close()
    else:
        if spot.is_capable:
            # What is typed before the prompt stands was typed in the terminal's own modes.
            _wait(lambda: termios.tcgetattr(slave) != before or process.poll() is not None)
        os.write(master, "".join(f"{line}\r" for line in LINES).encode())
    try:
        code = process.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        code = process.wait()
        chunks.append(b"\n[it did not end]")
    os.close(slave)
    reader.join(_END_SECONDS)
    os.close(master)
    if process.stdout:
        process.stdout.close()
    return code, b"".join(chunks)


def _wait(condition: object) -> None:
    assert callable(condition)
    deadline = time.monotonic() + _END_SECONDS
    while not condition() and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)


def _read(descriptor: int, chunks: list[bytes]) -> None:
    with suppress(OSError):
        while data := os.read(descriptor, 65_536):
            chunks.append(data)
