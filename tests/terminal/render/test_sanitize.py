"""Sanitizing text for a terminal."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nca.terminal.render.sanitize import (
    MAX_LINE_CHARS,
    LineSanitizer,
    StreamSanitizer,
    json_to_terminal,
    one_line,
    to_terminal,
)

FORBIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u206f\ufff9-\ufffb\U000e0000-\U000e007f\ud800-\udfff]"
)

hostile = st.text(
    st.sampled_from(
        [
            *"\x1b\x1b\x9b\x9d\x90\x9c\x07\x18\x00\x7f\r\n\t0123;?[]PX^_\\ !/mhHcab",
            "Û",
            "日",
            "\ud83d",
            "\u202e",
            "\u2066",
            "\ufff9",
            "\U000e0041",
        ]
    )
    | st.characters(),
    max_size=60,
)


@pytest.mark.parametrize(
    ("hostile_text", "safe"),
    [
        ("plain text, Ünïcode 日本 🙂", "plain text, Ünïcode 日本 🙂"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x9b31mred", "red"),
        ("\x1b]52;c;aGFjaw==\x07clip", "clip"),
        ("\x1b]8;;https://evil.example\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x9d0;title\x9cafter", "after"),
        ("\x1bP$q\x1b\\dcs", "dcs"),
        ("\x1b_apc\x1b\\a\x1b^pm\x1b\\b\x1bXsos\x1b\\c", "abc"),
        ("a\x1b]0;never ended\nnext line stays", "a\nnext line stays"),
        ("a\x1b[", "a"),
        ("a\x1b", "a"),
        ("\x1bc\x1b(Breset", "reset"),
        ("one\r\ntwo\rthree", "one\ntwo\nthree"),
        ("bell\x07 nul\x00 del\x7f", "bell nul del"),
        ("abc\u202egnp.exe\u202c\u2066x\u2069", "abcgnp.exex"),
        ("seen\U000e0068\U000e0069 \ufff9a\ufffbb\u206f", "seen ab"),
        ("👩‍🚀 क्ष می‌خواهم e\u0301 \u200e\ufe0f", "👩‍🚀 क्ष می‌خواهم e\u0301 \u200e\ufe0f"),
        ("tab\tand\nnewline", "tab\tand\nnewline"),
        ("lone \ud83d surrogate", "lone \ufffd surrogate"),
        ("Û continuation byte is no CSI", "Û continuation byte is no CSI"),
    ],
)
def test_known_payloads(hostile_text: str, safe: str) -> None:
    assert to_terminal(hostile_text) == safe


@given(hostile)
@settings(max_examples=500)
def test_nothing_forbidden_gets_through_and_twice_is_once(text: str) -> None:
    safe = to_terminal(text)
    assert FORBIDDEN.search(safe) is None
    assert to_terminal(safe) == safe


@given(st.text(st.characters(exclude_categories=["Cc", "Cs", "Cf"]) | st.sampled_from("\n\t")))
def test_harmless_text_is_untouched(text: str) -> None:
    assert to_terminal(text) == text


@given(st.lists(hostile, max_size=8))
@example(["one\r", "two\r", "\nthree\r"])
@settings(max_examples=500)
def test_a_stream_in_pieces_is_the_whole(chunks: list[str]) -> None:
    stream = StreamSanitizer()
    joined = "".join([stream.feed(chunk) for chunk in chunks]) + stream.finish()
    assert joined == to_terminal("".join(chunks))
    assert stream.feed("the next text") == "the next text"


def test_an_open_sequence_of_any_length_holds_little() -> None:
    stream = StreamSanitizer()
    stream.feed("\x1b]0;")
    for _ in range(2_000):
        assert stream.feed("x" * 1_000) == ""
    assert stream.feed("\nafter") == "\nafter"


def test_one_line_folds_and_cuts() -> None:
    assert one_line(" a\n\tb\x1b[2J  c ") == "a b c"
    assert one_line("abcdef", 4) == "abc…"
    assert one_line("abcd", 4) == "abcd"


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=40))
def test_json_means_the_same_and_holds_nothing_forbidden(text: str) -> None:
    data = json.dumps({"text": text}, ensure_ascii=False).encode()
    safe = json_to_terminal(data)
    assert json.loads(safe) == {"text": text}
    assert FORBIDDEN.search(safe.decode()) is None


def test_lines_leave_when_they_end_or_get_too_long() -> None:
    lines = LineSanitizer()
    assert lines.feed("one\ntwo \x1b[3") == ["one"]
    assert lines.feed("1mred\nthr") == ["two red"]
    assert lines.partial == "thr"
    assert lines.finish() == "thr"
    assert lines.feed("x" * (MAX_LINE_CHARS + 1)) == ["x" * (MAX_LINE_CHARS + 1)]
    assert lines.finish() == ""
