"""Typing while nca works: what is shown, sent, kept and edited."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.terminal.tty import Tty, chat

CTRL_A, CTRL_C, CTRL_D, CTRL_E, LEFT = "\x01", "\x03", "\x04", "\x05", "\x1b[D"
LINES = "\n".join(f"line {number}" for number in range(60))


@contextmanager
def at_work(*replies: Any, **options: Any) -> Iterator[Tty]:
    """A chat in the midst of an answer that does not go on."""
    with chat("never", *replies, **options) as tty:
        tty.line("SLOW please")
        tty.sees("The first piece.")
        yield tty


def test_what_is_typed_is_shown_as_the_prompt_will_have_it() -> None:
    with at_work(columns=80) as tty:
        tty.send(f"helo\x7f\x7fllo wod{LEFT}rl{CTRL_A}> {CTRL_E}!")
        tty.sees("› > hello world! (Enter queues it)")
        tty.send(f"\r\x1b[200~{LINES}\x1b[201~ what\\\r")
        tty.sees("› > hello world! ⏎ [pasted 60 lines] what ↵ (queued)")
        tty.send("is " + "this " * 30)
        tty.sees("this this (queued)")
        tty.send(CTRL_C)
        tty.sees("› > hello world!\n  [pasted 60 lines] what\n  is this this")
        assert "never" not in tty.text()


def test_queued_lines_are_sent_one_after_the_other_and_ctrl_d_leaves_behind_them() -> None:
    with at_work("Second answer.", "Third answer.") as tty:
        tty.send(CTRL_C)
        tty.sees("Interrupted")
        tty.settle()
        tty.send("PAUSE first\r")
        tty.send(f"second\\\rline\rthird \x1b[200~{LINES}\x1b[201~\r{CTRL_D}")
        tty.sees("› second\n  line")
        tty.sees("› third [pasted 60 lines]")
        assert tty.ends() == 0


def test_a_paste_that_never_ends_keeps_no_key_while_it_works() -> None:
    with at_work() as tty:
        tty.send("\x1b[200~half a paste")
        tty.sees("› half a paste (Enter queues it)")
        tty.send(" typed\r")
        tty.sees("› half a paste typed ⏎ (queued)")


def test_a_narrow_window_shows_the_end_of_what_is_typed() -> None:
    with at_work(columns=24, rows=6) as tty:
        tty.send("a long line that is typed to its end")
        tty.sees("› …is typed to its end")
        tty.send(CTRL_C)
        tty.sees("Interrupted")


def test_ctrl_d_before_the_program_has_started_leaves() -> None:
    with chat() as tty:
        tty.send(CTRL_D)
        assert tty.ends() == 0
        assert "left with 0" in tty.text()
