"""Transcripts as people have them: arrays, JSON lines, objects, with a byte-order mark or broken."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nca.errors import InvalidMessages
from nca.transcripts import Transcript, read_transcript
from nca.wire import messages_from_list

ROWS = [{"role": "user", "content": "Hé 日本"}, {"role": "assistant", "content": "Yes."}]
LINES = "\n".join(json.dumps(row) for row in ROWS).encode()


@pytest.mark.parametrize(
    "raw",
    [
        json.dumps(ROWS).encode(),
        json.dumps(ROWS, ensure_ascii=False, indent=2).encode(),
        json.dumps({"messages": ROWS}).encode(),
        LINES,
        b"\xef\xbb\xbf" + LINES,
        LINES.replace(b"\n", b"\r\n\r\n") + b"\n\n",
        b"\n\n  " + LINES,
    ],
)
def test_the_usual_forms(raw: bytes) -> None:
    assert read_transcript(raw, "a.json") == Transcript(ROWS)


def test_tools_come_along_where_an_object_has_them() -> None:
    tools = [{"type": "function"}]
    assert read_transcript(json.dumps({"messages": ROWS, "tools": tools}).encode(), "x").tools == tools
    assert read_transcript(json.dumps({"messages": ROWS, "tools": "none"}).encode(), "x").tools == []


def test_one_message_alone() -> None:
    assert read_transcript(json.dumps(ROWS[0]).encode(), "x") == Transcript(ROWS[:1])


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"", "a.json: is empty"),
        (b" \n ", "a.json: is empty"),
        (b"hello", "a.json: is not JSON"),
        (b"5", "a.json: holds no messages"),
        (b'{"turns": []}', "a.json: holds no messages"),
        (b'{"messages": 5}', "a.json: holds no messages"),
        (LINES + b"\n{broken", "a.json, line 3: is not JSON"),
        (b"\xff\xfe\n\xff", "a.json, line 1: is not JSON"),
        (LINES + b'\n{"messages": []}', "a.json, line 3: is a whole conversation"),
        (b"[" * 100_000, "a.json: is nested too deeply"),
    ],
)
def test_an_error_names_the_place_and_what_is_valid(raw: bytes, said: str) -> None:
    with pytest.raises(InvalidMessages) as refused:
        read_transcript(raw, "a.json")
    assert said in refused.value.message
    assert "valid: " in refused.value.message


@pytest.mark.parametrize("form", ["array", "lines"])
def test_a_character_that_was_cut_in_half_is_replaced(form: str) -> None:
    rows = [{"role": "user", "content": "half \ud83e"}, {"role": "user", "content": "whole 🦀"}]
    raw = json.dumps(rows) if form == "array" else "\n".join(map(json.dumps, rows))
    messages = messages_from_list(read_transcript(raw.encode(), "x").messages)
    assert [message.content for message in messages] == ["half \ufffd", "whole 🦀"]


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(raw: bytes) -> None:
    try:
        assert isinstance(read_transcript(raw, "x").messages, list)
    except InvalidMessages as refused:
        assert refused.message.startswith("x")  # noqa: PT017 - either outcome is right
