"""The key parser: pastes without an end, forged ends of a paste, keys in pieces."""

from __future__ import annotations

import os
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prompt_toolkit.key_binding import KeyPress
from prompt_toolkit.keys import Keys

from nca.terminal.input.keyboard import ESCAPE_SECONDS, PASTE_SECONDS, SETTLE_SECONDS, PasteTimeoutParser
from nca.terminal.input.terminal_modes import TerminalModes, is_open

START, END, ESCAPE = "\x1b[200~", "\x1b[201~", "\x1b"


def test_where_there_is_no_terminal_nothing_is_changed_or_given_back() -> None:
    reader, writer = os.pipe()
    modes = TerminalModes(reader)
    assert modes.take(is_alone=True) is None
    for _ in range(2):
        modes.be_quiet()
        modes.be_as_found()
        modes.give_back()
    os.close(reader)
    os.close(writer)


def test_a_signal_key_takes_nothing_away_and_a_read_behind_it_does_not_wait() -> None:
    ours, theirs = os.openpty()
    TerminalModes(theirs).be_quiet()
    for keys, left in ((b"y", b"y"), (b"y\x03", b"y"), (b"\x03", b""), (b"y\x03n", b"yn")):
        os.write(ours, keys)
        assert (os.read(theirs, 100), is_open(theirs)) == (left, True)
    os.close(ours)
    assert not is_open(theirs)
    os.close(theirs)
    pipe, writer = os.pipe()
    os.close(writer)
    assert not is_open(pipe)
    os.close(pipe)


def parsed(*pieces: str) -> list[tuple[Keys | str, str]]:
    """The keys of what came in pieces, with a pause at the end."""
    keys: list[KeyPress] = []
    parser = PasteTimeoutParser(keys.append)
    for piece in pieces:
        parser.feed(piece)
    if parser.is_pasting:
        parser.end_paste()
    parser.flush()
    return [(key.key, key.data) for key in keys]


def typed(text: str) -> list[tuple[Keys | str, str]]:
    return [(Keys.ControlM if character == "\r" else character, character) for character in text]


@pytest.mark.parametrize(
    ("pieces", "keys"),
    [
        (("a", f"{START}two\nlines{END}", "b"), [("a", "a"), (Keys.BracketedPaste, "two\nlines"), ("b", "b")]),
        ((START, "one ", "two", END), [(Keys.BracketedPaste, "one two")]),
        ((f"{START}x{END[:3]}", END[3:]), [(Keys.BracketedPaste, "x")]),
        ((f"{START}never ends\x03",), [(Keys.BracketedPaste, "never ends\x03")]),
        (
            (f"{START}evil{END}rm -rf ~\r", f"more{END}"),
            [(Keys.BracketedPaste, "evilrm -rf ~\rmore")],
        ),
        ((f"{START}one{END}\r{START}two{END}x",), [(Keys.BracketedPaste, "one\rtwo"), ("x", "x")]),
        ((f"{START}\x1b[13;2u{END}",), [(Keys.BracketedPaste, "\x1b[13;2u")]),
        (("\x1b[13;2u",), [(Keys.Escape, "\x1b"), (Keys.ControlM, "\r")]),
        (("\x1b[27;2;13~",), [(Keys.Escape, "\x1b"), (Keys.ControlM, "\r")]),
        (("\x1b[A",), [(Keys.Up, "\x1b[A")]),
        (("\x1b",), [(Keys.Escape, "\x1b")]),
    ],
)
def test_what_comes_is_what_was_meant(pieces: tuple[str, ...], keys: list[tuple[Keys | str, str]]) -> None:
    assert parsed(*pieces) == keys


def test_what_is_typed_behind_a_paste_is_typed() -> None:
    assert parsed(f"{START}text{END} and\r") == [(Keys.BracketedPaste, "text"), *typed(" and\r")]


def test_the_late_end_of_a_paste_that_was_given_up() -> None:
    keys: list[KeyPress] = []
    parser = PasteTimeoutParser(keys.append)
    parser.feed(f"{START}first half, ")
    assert parser.patience_seconds == PASTE_SECONDS
    parser.end_paste()
    parser.feed(f"second\rhalf{END}\r")
    assert [(key.key, key.data) for key in keys] == [
        (Keys.BracketedPaste, "first half, "),
        (Keys.BracketedPaste, "second\rhalf"),
        (Keys.ControlM, "\r"),
    ]


def test_an_escape_by_itself_is_told_from_alt() -> None:
    parser = PasteTimeoutParser(lambda key: None)
    parser.feed("\x1b")
    seen = [parser.was_flushed]
    parser.flush()
    seen.append(parser.was_flushed)
    parser.feed("\x1bf")
    seen.append(parser.was_flushed)
    assert seen == [False, True, False]


@given(st.text(), st.lists(st.integers(0, 200), max_size=6))
def test_a_paste_is_one_however_it_is_cut(text: str, cuts: list[int]) -> None:
    whole = f"{START}{text}{END}"
    places = sorted({min(cut, len(whole)) for cut in cuts} | {0, len(whole)})
    pieces = [whole[begin:end] for begin, end in pairwise(places)]
    keys: list[KeyPress] = []
    parser = PasteTimeoutParser(keys.append)
    for piece in pieces:
        parser.feed(piece)
    assert parser.is_pasting
    assert parser.patience_seconds == SETTLE_SECONDS
    parser.flush()
    content = text.replace(START, "").replace(END, "")
    assert [(key.key, key.data) for key in keys] == [(Keys.BracketedPaste, content)]


def test_a_paste_goes_on_with_the_next_reader_wherever_it_is_cut() -> None:
    whole = f"{START}two\r!lines{END}"
    for cut in range(1, len(whole)):
        before: list[KeyPress] = []
        after: list[KeyPress] = []
        parser = PasteTimeoutParser(before.append)
        parser.feed(whole[:cut])
        with parser.delivering(after.append):
            parser.feed(whole[cut:])
            parser.flush()
        assert not before, cut
        assert [(key.key, key.data) for key in after] == [(Keys.BracketedPaste, "two\r!lines")], cut


def test_a_key_that_was_half_pressed_for_the_reader_before_is_no_key_for_the_next_one() -> None:
    parser, keys = PasteTimeoutParser(lambda key: None), list[KeyPress]()
    parser.feed(ESCAPE)
    with parser.delivering(keys.append):
        parser.flush()
        parser.feed("a")
    assert [key.data for key in keys] == ["a"]


def test_the_mark_of_a_paste_is_waited_for_longer_than_the_rest_of_a_key() -> None:
    keys: list[KeyPress] = []
    parser = PasteTimeoutParser(keys.append)
    seconds = []
    for piece in START:
        parser.feed(piece)
        seconds.append(parser.patience_seconds)
        if piece.isdigit():
            parser.flush()
    assert seconds == [*[ESCAPE_SECONDS] * 2, *[PASTE_SECONDS] * 4]
    assert parser.is_pasting
    assert not keys
