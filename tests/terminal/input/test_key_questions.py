"""The law of questions that keys answer."""

from __future__ import annotations

import asyncio
import os
import select
import sys
import tty
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prompt_toolkit.key_binding import KeyPress

from nca.terminal.input.keyboard import (
    ENTER,
    ESCAPE_SECONDS,
    FLOW_SECONDS,
    PAUSE_SECONDS,
    QUIET_SECONDS,
    Keyboard,
    Meaning,
    Offered,
    PasteTimeoutParser,
    meaning,
)
from nca.terminal.input.line_editor import UnsentLines
from nca.terminal.input.pastes import FoldedPastes
from nca.terminal.input.type_ahead import TypeAhead
from nca.terminal.interrupts import Interrupts
from nca.terminal.panels.key_question import ApprovalKeys
from nca.words import text_of

OFFERED = Offered("ynsam")
CONFIRMED = Offered("ynsam", ENTER)
KEYS = st.sampled_from(
    [
        "y",
        "Y",
        "n",
        "s",
        "a",
        "m",
        "x",
        " ",
        ENTER,
        "\n",
        "\x7f",
        "\x15",
        "\x1b[D",
        "\x1b[A",
        "\t",
        "y\r",
        "yes",
        "\x04",
    ]
)
SECONDS = st.sampled_from([0.0, 0.2, QUIET_SECONDS, 0.7, PAUSE_SECONDS, 5.0])


def pressed(text: str) -> list[KeyPress]:
    keys: list[KeyPress] = []
    parser = PasteTimeoutParser(keys.append)
    parser.feed(text)
    parser.flush()
    return keys


@pytest.mark.parametrize(
    ("typed", "expected", "changed"),
    [
        ("y", "answer", {}),
        ("Y", "answer", {}),
        ("y", "line", {"is_line_empty": False}),
        ("y", "line", {"since_line_seconds": PAUSE_SECONDS - 0.01}),
        ("y", "answer", {"since_asked_seconds": 0.0}),
        ("y", "answer", {"since_key_seconds": QUIET_SECONDS}),
        ("y", "line", {"since_key_seconds": PAUSE_SECONDS - 0.01, "since_asked_seconds": QUIET_SECONDS - 0.01}),
        ("x", "line", {}),
        ("yes", "line", {}),
        ("yn", "line", {}),
        ("y\r", "line", {}),
        # A newcomer's, over a slow line: the letter became a message.
        ("e\r", "answer", {"offered": Offered("yen", ENTER), "since_asked_seconds": PAUSE_SECONDS}),
        ("y\r", "line", {"since_asked_seconds": PAUSE_SECONDS, "since_key_seconds": 0.1}),
        ("x\r", "line", {"since_asked_seconds": PAUSE_SECONDS}),
        ("yn\r", "line", {"since_asked_seconds": PAUSE_SECONDS}),
        ("", "line", {}),
        ("\x1b[D", "line", {}),
        ("\x1b[200~y\x1b[201~", "line", {}),
        (ENTER, "nothing", {}),
        (ENTER * 2, "nothing", {}),
        (ENTER, "line", {"is_line_empty": False}),
        (ENTER, "answer", {"offered": CONFIRMED, "since_key_seconds": QUIET_SECONDS}),
        (ENTER, "nothing", {"offered": CONFIRMED, "since_key_seconds": QUIET_SECONDS - 0.01}),
        (ENTER, "answer", {"offered": CONFIRMED, "since_key_seconds": 0.1, "since_asked_seconds": PAUSE_SECONDS}),
        (ENTER, "line", {"offered": CONFIRMED, "is_line_empty": False}),
        ("m", "answer", {"offered": Offered("yn", "m"), "since_key_seconds": QUIET_SECONDS}),
        (
            "m",
            "nothing",
            {"offered": Offered("yn", "m"), "since_key_seconds": 0.1, "since_asked_seconds": PAUSE_SECONDS},
        ),
    ],
)
def test_what_a_read_means(typed: str, expected: Meaning, changed: dict[str, Any]) -> None:
    facts: dict[str, Any] = {
        "offered": OFFERED,
        "is_line_empty": True,
        "since_key_seconds": PAUSE_SECONDS,
        "since_line_seconds": PAUSE_SECONDS,
        "since_asked_seconds": QUIET_SECONDS,
        **changed,
    }
    assert meaning(typed, **facts) == expected


@given(st.lists(st.tuples(KEYS, SECONDS), max_size=20), st.sampled_from([OFFERED, Offered("rf"), Offered("")]))
def test_a_key_answers_only_a_person_who_paused_over_an_empty_line(
    keyboard: Keyboard, reads: list[tuple[str, float]], offered: Offered
) -> None:
    line = UnsentLines(keyboard, FoldedPastes())
    asked, since_line = 0.0, PAUSE_SECONDS
    for typed, seconds in reads:
        asked, since_line = asked + seconds, since_line + seconds
        means = meaning(
            typed,
            offered,
            is_line_empty=not line.typed().open,
            since_key_seconds=seconds,
            since_line_seconds=since_line,
            since_asked_seconds=asked,
        )
        if means == "answer":
            assert not line.typed().open
            assert typed.removesuffix(ENTER).lower() in set(offered.keys)
            assert typed[-1] != ENTER or asked >= PAUSE_SECONDS
            assert since_line >= PAUSE_SECONDS
            assert seconds >= PAUSE_SECONDS or asked >= QUIET_SECONDS
        elif means == "nothing":
            assert typed == ENTER
            assert not line.typed().open
        else:
            line.press_all(pressed(typed))
            since_line = 0.0
        # A text that was typed and not sent keeps every key from answering, however long the person waits.
        if line.typed().open:
            for key in "ynsam\r":
                late = meaning(
                    key,
                    CONFIRMED,
                    is_line_empty=False,
                    since_key_seconds=1e6,
                    since_line_seconds=1e6,
                    since_asked_seconds=1e6,
                )
                assert late == "line"


class Clock(asyncio.SelectorEventLoop):
    """A loop whose time passes only where a test says so: a busy machine changes nothing."""

    now = 1_000.0

    def time(self) -> float:
        return self.now


@pytest.mark.parametrize(
    ("waited", "first", "paused", "then", "line"),
    [
        (PAUSE_SECONDS, "a", 0.0, "lso", "also"),
        (PAUSE_SECONDS, "a", PAUSE_SECONDS - 0.01, "lso", "also"),
        (PAUSE_SECONDS, "a", PAUSE_SECONDS, "lso", "lso"),
        (PAUSE_SECONDS, "a", QUIET_SECONDS, "\x1b[D", "a"),
        (PAUSE_SECONDS, "\x1b[D", PAUSE_SECONDS - 0.01, "y", "y"),
        (PAUSE_SECONDS, "\x1b[200~pasted\x1b[201~", PAUSE_SECONDS - 0.01, "y", "pastedy"),
        (PAUSE_SECONDS, "\x1b", ESCAPE_SECONDS / 5, "[D", ""),
        (0.0, "s", FLOW_SECONDS - 0.01, "y", "sy"),
        (QUIET_SECONDS - 0.01, "s", FLOW_SECONDS - 0.01, "ay yes", "say yes"),
        (QUIET_SECONDS - 0.01, "s\x7f", PAUSE_SECONDS - 0.01, "y", "y"),
    ],
)
def test_keys_that_answer_nothing_belong_to_the_line(
    waited: float, first: str, paused: float, then: str, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`waited` since the question appeared, `paused` since the first key."""
    clock = Clock()
    master, slave = os.openpty()
    tty.setraw(slave)
    question, answers = ApprovalKeys(rule="shell make"), list[Any]()

    async def run() -> str:
        ahead = TypeAhead(Keyboard(), Interrupts(), lambda: False)
        with ahead.collecting(), ahead.asking(question, lambda key: answers.append(question.take(key))):
            for seconds, keys in (waited, first), (paused, then):
                clock.now += seconds
                os.write(master, keys.encode())
                select.select([slave], [], [])  # the kernel hands them on in its own time
                while select.select([slave], [], [], 0)[0]:
                    await asyncio.sleep(0)
        (said,) = ahead.take_unsent() or [()]
        return text_of(said)

    with os.fdopen(slave) as terminal, asyncio.Runner(loop_factory=lambda: clock) as runner:
        monkeypatch.setattr(sys, "stdin", terminal)
        assert runner.run(run()) == line
    os.close(master)
    assert not any(answers)


@pytest.mark.parametrize("since_asked", [0.0, 0.1, QUIET_SECONDS + 0.01, 0.8])
def test_a_person_whose_last_key_was_long_ago_answers_at_once(
    since_asked: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key within a second of the question went to the line, which then kept every other key from answering.

    The key that answers one question does not count as typing for the next one either.
    """
    clock = Clock()
    master, slave = os.openpty()
    tty.setraw(slave)
    question, answers = ApprovalKeys(), list[Any]()

    async def run() -> None:
        ahead = TypeAhead(Keyboard(), Interrupts(), lambda: False)
        with ahead.collecting():
            for since_question in (since_asked, max(since_asked, QUIET_SECONDS + 0.01)):
                with ahead.asking(question, lambda key: answers.append(question.take(key))):
                    clock.now += since_question
                    os.write(master, b"y")
                    select.select([slave], [], [])
                    while select.select([slave], [], [], 0)[0]:
                        await asyncio.sleep(0)
                    clock.now += FLOW_SECONDS
                    await asyncio.sleep(0)
                    await asyncio.sleep(0)
                    assert not ahead.is_line_open

    with os.fdopen(slave) as terminal, asyncio.Runner(loop_factory=lambda: clock) as runner:
        monkeypatch.setattr(sys, "stdin", terminal)
        runner.run(run())
    os.close(master)
    assert [answer.choice for answer in answers] == ["once", "once"]


@pytest.mark.parametrize(("paused", "choices"), [(QUIET_SECONDS + 0.01, ["once"]), (QUIET_SECONDS / 2, [])])
def test_a_line_that_was_deleted_for_the_question_is_no_typing(
    paused: float, choices: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-U, which the question names, and then y within a second opened the line again."""
    clock = Clock()
    master, slave = os.openpty()
    tty.setraw(slave)
    question, answers = ApprovalKeys(), list[Any]()

    async def run() -> None:
        ahead = TypeAhead(Keyboard(), Interrupts(), lambda: False)
        with ahead.collecting(), ahead.asking(question, lambda key: answers.append(question.take(key))):
            for seconds, keys in (PAUSE_SECONDS, "x"), (QUIET_SECONDS, "\x15"), (paused, "y"):
                clock.now += seconds
                os.write(master, keys.encode())
                select.select([slave], [], [])
                while select.select([slave], [], [], 0)[0]:
                    await asyncio.sleep(0)
        ahead.take_unsent()

    with os.fdopen(slave) as terminal, asyncio.Runner(loop_factory=lambda: clock) as runner:
        monkeypatch.setattr(sys, "stdin", terminal)
        runner.run(run())
    os.close(master)
    assert [answer.choice for answer in answers if answer] == choices


@pytest.mark.parametrize(
    ("paused", "then", "reason"),
    [(FLOW_SECONDS - 0.01, "o, use b", "no, use b"), (FLOW_SECONDS, "use b", "use b"), (0.0, "b\x7f", "")],
)
def test_an_n_that_other_letters_follow_at_once_is_the_first_of_the_reason(
    paused: float, then: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reason of a person who typed "no, use b" was "o, use b"."""
    clock = Clock()
    master, slave = os.openpty()
    tty.setraw(slave)
    question, answers = ApprovalKeys(), list[Any]()

    async def run() -> None:
        ahead = TypeAhead(Keyboard(), Interrupts(), lambda: False)
        with ahead.collecting(), ahead.asking(question, lambda key: answers.append(question.take(key))):
            for seconds, keys in (PAUSE_SECONDS, "n"), (paused, then), (PAUSE_SECONDS, ENTER):
                clock.now += seconds
                os.write(master, keys.encode())
                select.select([slave], [], [])
                while select.select([slave], [], [], 0)[0]:
                    await asyncio.sleep(0)

    with os.fdopen(slave) as terminal, asyncio.Runner(loop_factory=lambda: clock) as runner:
        monkeypatch.setattr(sys, "stdin", terminal)
        runner.run(run())
    os.close(master)
    assert [answer.word for answer in answers if answer] == [reason]


@pytest.mark.parametrize("before", ["", "\t", "\x1b[Z", "\x1b[A\t"])
def test_a_line_that_shows_nothing_keeps_no_question_from_being_answered(
    before: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tab and Shift-Tab, pressed while an answer came, made the next approval wait for a line that nobody saw.

    While the question stands, Shift-Tab changes the mode and is no wrong key.
    """
    clock = Clock()
    master, slave = os.openpty()
    tty.setraw(slave)
    question, answers = ApprovalKeys(rule="shell make"), list[Any]()

    async def take(keys: str) -> None:
        os.write(master, keys.encode())
        if keys:
            select.select([slave], [], [])
        while select.select([slave], [], [], 0)[0]:
            await asyncio.sleep(0)

    async def run() -> None:
        ahead, changed = TypeAhead(Keyboard(), Interrupts(), lambda: False), list[str]()
        ahead.next_mode = lambda: changed.append("mode")
        with ahead.collecting():
            await take(before)
            with ahead.asking(question, lambda key: answers.append(question.take(key))):
                assert not ahead.is_line_open
                clock.now += PAUSE_SECONDS
                await take(ENTER)
                assert ahead.is_refused
                clock.now += PAUSE_SECONDS
                changed.clear()
                await take("\x1b[Z")
                assert (changed, ahead.is_refused, ahead.is_line_open) == (["mode"], False, False)
                clock.now += PAUSE_SECONDS
                await take("y")

    with os.fdopen(slave) as terminal, asyncio.Runner(loop_factory=lambda: clock) as runner:
        monkeypatch.setattr(sys, "stdin", terminal)
        runner.run(run())
    os.close(master)
    assert [answer.choice for answer in answers] == ["once"]


@pytest.mark.parametrize(
    ("typed", "is_empty"),
    [
        ("", True),
        ("tell me wh", False),
        ("sent\r", True),
        ("sent\ry", False),
        ("word\x15", True),
        ("a\x7f", True),
        (" ", False),
        ("\x1b[D", True),
        ("\x1b[A", True),
        ("sent\r\x1b[A", False),
        ("\x1b[A\x15", True),
        ("end\\\r", False),
        ("\x1b\r", False),
        ("\x1b[200~y\x1b[201~", False),
    ],
)
def test_an_open_line(keyboard: Keyboard, typed: str, is_empty: bool) -> None:
    lines = UnsentLines(keyboard, FoldedPastes())
    lines.press_all(pressed(typed))
    assert (not lines.typed().open) == is_empty
