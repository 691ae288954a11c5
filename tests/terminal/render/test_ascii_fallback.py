"""Symbols that an encoding lacks."""

from __future__ import annotations

import io
import re
import unicodedata
from pathlib import Path

import pytest

import nca
from nca.terminal.input.toolbar import gauge
from nca.terminal.render.stream_writer import encodable, is_utf8, replace_unencodable

TERMINAL = Path(nca.__file__).parent / "terminal"


@pytest.mark.parametrize(
    ("text", "encoding", "said"),
    [
        ("› • “so” → 2% · 1k…", "ascii", '> * "so" > 2% - 1k.'),
        ("▓▓░░", "ascii", "==.."),
        ("├─┐ │ ═║", "ascii", "+-+ | -|"),
        ("⠋⠙", "ascii", "**"),
        ("Grüße • ×", "latin-1", "Grüße * ×"),
        ("日本 ›", "euc_jp", "日本 >"),
        ("日本", "ascii", "??"),
        ("as it is", "ascii", "as it is"),
    ],
)
def test_what_cannot_be_carried_is_ascii(text: str, encoding: str, said: str) -> None:
    assert encodable(text, encoding) == said
    assert len(said) == len(text)


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


@pytest.mark.parametrize(("name", "is_so"), [("utf-8", True), ("UTF8", True), ("ascii", False), (None, False)])
def test_what_carries_everything(name: str | None, is_so: bool) -> None:
    assert is_utf8(name) is is_so
