"""Symbols that an encoding lacks."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import unicodedata
from pathlib import Path

import pexpect
import pytest

import nca
from nca.terminal.input.toolbar import gauge
from nca.terminal.render.code_highlighter import code_theme
from nca.terminal.render.markdown import MarkdownStream
from nca.terminal.render.stream_writer import asks_for_ascii, encodable, is_utf8, replace_unencodable
from nca.terminal.render.theme import plain_console

TERMINAL = Path(nca.__file__).parent / "terminal"


@pytest.mark.parametrize(
    ("text", "encoding", "said"),
    [
        ("› • “so” → 2% · 1k…", "ascii", '> * "so" > 2% - 1k...'),
        ("▓▓░░", "ascii", "==.."),
        ("├─┐ │ ═║", "ascii", "+-+ | -|"),
        ("⠋⠙", "ascii", "**"),
        ("✓ ✗", "ascii", "+ x"),
        ("Grüße • ×", "latin-1", "Grüße * ×"),
        ("日本 ›", "euc_jp", "日本 >"),
        ("日本", "ascii", "??"),
        ("as it is", "ascii", "as it is"),
    ],
)
def test_what_cannot_be_carried_is_ascii(text: str, encoding: str, said: str) -> None:
    assert encodable(text, encoding) == said
    assert len(said) == len(text.replace("…", "..."))


def test_no_sign_that_nca_draws_becomes_a_question_mark() -> None:
    files = (*TERMINAL.rglob("*.py"), *TERMINAL.rglob("*.toml"))
    drawn = {sign for path in files for sign in re.findall(r"[^\x00-\x7f]", path.read_text("utf-8"))}
    unknown = {sign for sign in drawn if encodable(sign, "ascii") == "?"}
    assert {sign for sign in unknown if not unicodedata.category(sign).startswith("L")} <= {"😀", "␡"}


def test_the_gauge_still_tells_full_from_empty() -> None:
    assert len(set(encodable(gauge(0.5), "ascii"))) == 2


def test_a_stream_writes_them_so() -> None:
    written = io.BytesIO()
    stream = io.TextIOWrapper(written, encoding="ascii")
    replace_unencodable(stream, None, io.StringIO())
    stream.write("› “so”")
    stream.flush()
    assert written.getvalue() == b'> "so"'


def test_what_rich_draws_of_an_answer_is_no_question_mark() -> None:
    answer = "# One\n\n> a quote\n\n- item\n\n1. first\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n---\n\n```py\nx\n```\n"
    console, stream = plain_console({}), MarkdownStream(code_theme("auto"))
    with console.capture() as captured:
        console.print(*stream.feed(answer), *stream.finish())
    drawn = captured.get()
    assert "▌" in drawn
    assert "?" not in encodable(drawn, "ascii")


@pytest.mark.parametrize(
    ("environment", "is_so"),
    [
        ({}, False),
        ({"LC_ALL": "C"}, True),
        ({"LANG": "C", "LC_CTYPE": "C.UTF-8"}, True),  # LC_CTYPE is what Python made of it
        ({"LANG": "POSIX", "PYTHONUTF8": "1"}, False),
        ({"LANG": "C.UTF-8"}, False),
    ],
)
def test_who_asks_for_ascii(environment: dict[str, str], is_so: bool) -> None:
    assert asks_for_ascii(environment) is is_so


@pytest.mark.parametrize(("locale", "sign"), [("C", ">"), ("C.UTF-8", "›")])
def test_a_terminal_of_the_locale_c_gets_ascii_and_a_pipe_does_not(locale: str, sign: str) -> None:
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(TERMINAL.parents[1]), "LC_ALL": locale}
    code = r"from nca.cli.app import run; run(['--help']); print('\u203a')"
    tty = pexpect.spawn(sys.executable, ["-c", code], env=env, timeout=60)
    tty.expect(pexpect.EOF)
    assert tty.before.decode().rstrip().endswith(sign)
    piped = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, check=True)
    assert piped.stdout.decode().rstrip().endswith("›")


@pytest.mark.parametrize(("name", "is_so"), [("utf-8", True), ("UTF8", True), ("ascii", False), (None, False)])
def test_what_carries_everything(name: str | None, is_so: bool) -> None:
    assert is_utf8(name) is is_so
