"""Line editing without a prompt."""

from __future__ import annotations

import pytest
from prompt_toolkit.key_binding import KeyPress

from nca.terminal.input.display import fitted, typed_ahead
from nca.terminal.input.keyboard import PasteTimeoutParser
from nca.terminal.input.line_editor import Typed, first_line, separated, typed, unsent
from nca.terminal.input.pastes import FOLD_LINES
from nca.words import text_of, words

UP, FOLDED = "\x1b[A", "line\n" * FOLD_LINES
PASTE = f"\x1b[200~{FOLDED}\x1b[201~"
LEFT, DELETE, HOME, END = "\x1b[D", "\x1b[3~", "\x1b[H", "\x1b[F"


def keys(text: str) -> list[KeyPress]:
    pressed: list[KeyPress] = []
    parser = PasteTimeoutParser(pressed.append)
    parser.feed(text)
    parser.flush()
    return pressed


def parts(text: str) -> list[str]:
    return [typed(part).open for part in separated(keys(text))]


@pytest.mark.parametrize(
    ("pressed", "text"),
    [
        ("plain\r", "plain"),
        ("helo\x7f\x7fllo\r", "hello"),
        ("one two  \x17three\r", "one three"),
        ("gone\x15kept\r", "kept"),
        (f"word{LEFT}{LEFT}X\x01A\x05Z\r", "AwoXrdZ"),
        (f"ab{HOME}{DELETE}x{END}y\r", "xby"),
        ("keep this\x01\x0bonly\r", "only"),
        ("one\ntwo\x15three\r", "one\nthree"),
        ("one\\\rtwo\x1b\rthree\r", "one\ntwo\nthree"),
        ("\x1b[200~a\r\nb\x1b[201~\r", "a\nb"),
        ("\x02\x06\x7fx\r", "x"),
        ("\r", ""),
    ],
)
def test_a_line_is_what_the_prompt_would_make_of_it(pressed: str, text: str) -> None:
    line = first_line(keys(pressed))
    assert line is not None
    assert text_of(line.said) == text
    assert line.keys == len(keys(pressed))


@pytest.mark.parametrize("pressed", ["no enter", "tab\there\r", "\x1b[Aup\r", "search\x12\r", "leave\x04\r"])
def test_a_line_that_only_the_prompt_understands_waits(pressed: str) -> None:
    assert first_line(keys(pressed)) is None


def test_what_is_shown() -> None:
    assert typed(keys("first\rsecond \\\rline\rthe th"))[:3] == (["first", "second \nline"], "the th", 6)
    paste = "\x1b[200~" + "line\n" * FOLD_LINES + "\x1b[201~"
    pressed = [*keys("see "), *keys(paste), *keys(" it")]
    assert typed(pressed)[:2] == ([], f"see [pasted {FOLD_LINES} lines] it")
    assert typed(keys("ta\tb"))[:3] == ([], "tab", 3)


def test_after_an_interrupt_nothing_is_sent() -> None:
    assert parts("first\rsecond\\\rline\x1b\rmore\rlast\r\r") == ["first\nsecond\nline\nmore\nlast", ""]
    assert parts("\r\r") == [""]


@pytest.mark.parametrize(
    ("pressed", "expected"),
    [
        ("one\rtwo\rthr", ["one\ntwo\nthr"]),
        ("one\r/tools\rtwo\r", ["one", "/tools", "two", ""]),
        ("one\rtwo\r!ls\r\rexit\rthr", ["one\ntwo", "!ls", "exit", "thr"]),
        ("//one\r/to", ["//one", "/to"]),
    ],
)
def test_a_queued_command_is_a_line_by_itself(pressed: str, expected: list[str]) -> None:
    assert parts(pressed) == expected


def test_the_end_of_a_long_line_is_what_fits() -> None:
    assert fitted("short", " (queued)", 40) == "short (queued)"
    assert fitted("0123456789" * 5, " (q)", 20) == "…567890123456789 (q)"
    assert fitted("日本" * 20, "", 9) == "…日本日本"
    assert fitted("abc", "", 0) == "…"


def test_what_was_pasted_stays_so() -> None:
    line = first_line(keys(f"see \x1b[200~a @b\x1b[201~{LEFT}{LEFT}\x7f-\x05 now\x17then\r"))
    assert line is not None
    assert line.said == (
        *words("see "),
        *words("a", "pasted"),
        *words("-"),
        *words("@b", "pasted"),
        *words(" then"),
    )
    assert unsent(keys("one\r\x1b[200~two\x1b[201~")) == (*words("one\n"), *words("two", "pasted"))
    assert [text_of(unsent(part)) for part in separated(keys("one\r\x1b[200~/exit\x1b[201~\rtwo"))] == [
        "one\n/exit\ntwo"
    ]


@pytest.mark.parametrize(
    ("open_line", "place", "columns", "expected"),
    [
        ("hello", 5, 80, ("hello (Enter queues it)", 5)),
        ("hello", 2, 80, ("hello (Enter queues it)", 2)),
        ("hello ", 6, 80, ("hello (Enter queues it)", 6)),
        ("日本語", 2, 80, ("日本語 (Enter queues it)", 4)),
        ("two\nlines", 4, 80, ("two ↵ lines (Enter queues it)", 6)),
        ("0123456789" * 3, 30, 23, ("…1234567890123456789", 20)),
        ("0123456789" * 3, 3, 23, ("…1234567890123456789", 0)),
        ("", 0, 80, ("", 0)),
    ],
)
def test_the_cursor_stands_where_the_next_letter_goes(
    open_line: str, place: int, columns: int, expected: tuple[str, int]
) -> None:
    assert typed_ahead(Typed([], open_line, place), "", columns) == ([], *expected)
    assert typed_ahead(Typed(["first"], open_line, place), "", columns) == (["queued: first"], *expected)


def test_ctrl_d_is_said_where_it_will_leave() -> None:
    assert not typed(keys("ab\x04")).leaves
    for pressed in ("\x04", "one\r\x04", "a\x7f\x04", "\x04two\r"):
        assert typed(keys(pressed)).leaves
        assert any("Ctrl-D leaves when" in note for note in typed_ahead(typed(keys(pressed)), "", 80).notes)


@pytest.mark.parametrize(
    ("pressed", "joined"),
    [
        ("one\r\x15two", "one\ntwo"),
        ("one\r\x7f\x17two\x17\x15three", "one\nthree"),
        ("one\x15\x15two\rthree\x15\x15four", "one\x15\x15two\nfour"),
        (f"alpha\rbeta{UP}X", "alpha\nbetaX"),
        (f"KEEP alpha\rDROP beta{UP}\x7f\x7f", "KEEP alpha\nDROP be"),
        (f"KEEP alpha\rDROP beta{UP}\x15", "KEEP alpha"),
        (f"one\rtwo{LEFT * 9}", f"one\ntwo{LEFT * 3}"),
        (f"one\r{PASTE}{LEFT * 2}", f"one\n{FOLDED}{LEFT * 2}"),
    ],
)
def test_no_key_of_a_line_acts_on_the_one_before_it(pressed: str, joined: str) -> None:
    assert ["".join(key.data for key in part) for part in separated(keys(pressed)) if part] == [joined]


def test_a_line_with_vi_s_keys_is_a_part_by_itself() -> None:
    assert ["".join(key.data for key in part) for part in separated(keys("one\rtwo\x1bx"))] == ["one", "two\x1bx"]
