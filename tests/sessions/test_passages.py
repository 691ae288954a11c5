"""Passages: text is cut without loss, and the second column holds what FTS5 cannot see."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nca.messages import Message, ToolCall
from nca.sessions.passages import (
    BY,
    CAMEL,
    CAMEL_PART,
    MAX_PASSAGES,
    PASSAGE_CHARS,
    camel_words,
    cuts,
    extra_words,
    pairs,
    passages_of,
    plain_text,
    speaker_of,
    stored_passages,
)


@given(st.text("ab \n", max_size=6_000))
def test_passages_are_short_and_leave_out_nothing_but_a_blank_end(text: str) -> None:
    places = cuts(text)
    assert all(0 < last - first <= PASSAGE_CHARS for first, last in places)
    assert [first for first, _ in places[1:]] == [last for _, last in places[:-1]]
    assert not text[places[-1][1] if places else 0 :].strip()


def test_a_message_has_no_more_passages_than_its_rows() -> None:
    assert len(cuts("x" * (PASSAGE_CHARS * (MAX_PASSAGES + 3)))) == MAX_PASSAGES


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("getUserName", "get User Name"),
        ("parseHTTPBody2", "parse HTTP Body 2"),
        ("東京都", "東京 京都 都"),
        ("on 2024-05-09", "may"),
    ],
)
def test_extra_words(text: str, words: str) -> None:
    assert words in extra_words(text).split("\n")


@given(st.text("abABz_9 é.ÄßZ-", max_size=40))
def test_words_with_humps_are_those_that_the_pattern_finds(text: str) -> None:
    assert camel_words(text) == [" ".join(CAMEL_PART.findall(word)) for word in CAMEL.findall(text)]


@given(st.text("0129-/ x", max_size=24))
def test_the_month_of_each_date_is_a_word(text: str) -> None:
    has_date = re.search(r"\b(?:19|20)\d\d[-/](0[1-9]|1[0-2])[-/](?:[0-2]\d|3[01])", text)
    assert bool(extra_words(text)) == bool(has_date)


@pytest.mark.parametrize(
    ("message", "speaker"),
    [
        (Message("user", "Ann: hello"), "Ann"),
        (Message("assistant", "[8 May 2023] Ann Lee: hello"), "Ann Lee"),
        (Message("user", "**Ann:** hello"), ""),
        (Message("user", "hello there: you"), ""),
        (Message("user", "hello", name="ann"), "ann"),
        (Message("tool", "Error: nothing", name="grep"), ""),
    ],
)
def test_who_speaks(message: Message, speaker: str) -> None:
    assert speaker_of(message) == speaker


def test_the_speaker_is_in_every_passage() -> None:
    rows = passages_of(Message("user", "Ann: " + "word " * 1_000), None)
    assert len(rows) > 2
    assert all(f"{BY}ann" in extra.split("\n") for _, extra in rows)


def test_pairs_begin_with_every_character() -> None:
    assert [pair[0] for pair in pairs("東京都")] == ["東", "京", "都"]


def test_call_arguments_are_values_on_lines() -> None:
    call = ToolCall("1", "write", '{"path": "a.py", "edits": [{"text": "x\\ny"}, null], "deep": true}')
    assert plain_text(Message("assistant", "Now.", (call,))) == "Now.\nwrite path: a.py\nedits: text: x\ny\ndeep: True"
    broken = ToolCall("1", "write", '{"path": ')
    assert plain_text(Message("assistant", None, (broken,))) == 'write {"path": '
    deep = ToolCall("1", "write", "[" * 900 + "]" * 900)
    assert plain_text(Message("assistant", None, (deep,))).startswith("write")


def test_what_cannot_be_read_has_no_passages() -> None:
    assert stored_passages("not a message", None) == []


@pytest.mark.parametrize(
    ("text", "months"),
    [
        ("On 2026-03-04.", ["march"]),
        ("2026/12/31 1999-01-02", ["december", "january"]),
        ("x2026-03-04 12026-03-04", []),
    ],
)
def test_the_month_of_a_date_can_be_searched(text: str, months: list[str]) -> None:
    assert extra_words(text).split("\n") == (months or [""])
