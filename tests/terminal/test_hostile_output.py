"""Foreign text never controls the terminal: every payload through every sink."""

from __future__ import annotations

import io
from collections.abc import Callable

import pytest

from nca.config.schema import TerminalSettings
from nca.events import (
    ApprovalAsked,
    ApprovalGiven,
    ContextCompaction,
    ContextWarning,
    ErrorRaised,
    Event,
    MessageTaken,
    Notice,
    ReasoningDelta,
    RequestStarted,
    RetryScheduled,
    TextDelta,
    ToolFinished,
    ToolStarted,
    TurnFinished,
)
from nca.terminal.panels.key_question import ApprovalKeys
from nca.terminal.render.calls import ApprovalPanel
from nca.terminal.render.draw import Draw
from nca.terminal.render.plain import PlainDraw
from nca.terminal.render.screen import Screen
from tests.terminal.payloads import PAYLOADS, SURROGATES, forbidden
from tests.terminal.stage import Typed

Sink = Callable[[str], list[Event]]


def text(form: str) -> Sink:
    return lambda payload: [TextDelta(form.replace("%", payload))]


def asked(payload: str) -> ApprovalAsked:
    return ApprovalAsked(
        payload, payload, "execute", payload, payload, payload, f"+{payload}", payload, payload, directory=payload
    )


EVENTS: dict[str, Sink] = {
    "answer": text("a%b\n\n"),
    "answer, character by character": lambda payload: [TextDelta(char) for char in f"a{payload}b\n\n"],
    "answer, without an end": text("a%"),
    "code": text("\n\n```python\nx = '%'\n```\n\n"),
    "language of code": text("\n\n```%\nx\n```\n\n"),
    "indented code": text("\n\n    %\n\n"),
    "inline code": text("`%`\n\n"),
    "heading": text("# %\n\n"),
    "list": text("- %\n1. %\n   ```sh\n   %\n   ```\n\n"),
    "table": text("| % | b |\n|---|---|\n| % | `%` |\n\n"),
    "quote": text("> %\n\n"),
    "link": text("[%](http://%.example) <http://%.example> ![%](%)\n\n"),
    "reference": text("[%]: http://%.example\n\n"),
    "html": text("<b title='%'>%</b>\n\n"),
    "long line": text("%" + "x" * 9_000 + "%\n\n"),
    "thoughts": lambda payload: [ReasoningDelta(char) for char in f"a{payload}b\n"],
    "model": lambda payload: [RequestStarted(1, payload, 1, 2)],
    "tool begins": lambda payload: [ToolStarted(payload, payload, payload, payload)],
    "tool without a line": lambda payload: [ToolStarted("1", payload, payload, "")],
    "tool ends": lambda payload: [ToolFinished(payload, payload, is_error=True, summary=payload, seconds=2)],
    "tool nobody heard of": lambda payload: [ToolFinished("1", payload, is_error=False, summary="", seconds=0)],
    "tool of a task": lambda payload: [ToolStarted("task-1/2", payload, payload, payload)],
    "diff": lambda payload: [
        ToolFinished("1", "edit", is_error=False, summary="", seconds=0, diff=f"--- {payload}\n-{payload}\n+{payload}x")
    ],
    "warning": lambda payload: [ContextWarning("warning", 1.0, 1, 1, payload)],
    "compaction begins": lambda payload: [ContextCompaction("starting", "manual", (payload,), message=payload)],
    "compaction fails": lambda payload: [ContextCompaction("failed", "manual", (payload,), message=payload)],
    "compaction ends": lambda payload: [ContextCompaction("completed", "manual", (payload,), message=payload)],
    "message": lambda payload: [MessageTaken(payload)],
    "retry": lambda payload: [RetryScheduled(1, 1.0, payload)],
    "notice": lambda payload: [Notice(payload)],
    "error": lambda payload: [ErrorRaised(payload, payload)],
    "approval": lambda payload: [asked(payload), ApprovalGiven(payload, payload, "unanswered", payload)],
    "end": lambda payload: [TurnFinished("max_steps", payload, 1, 0.1)],
}


def on_screen(typed: Typed | None = None) -> tuple[Draw, io.StringIO]:
    written = io.StringIO()
    screen = Screen(written)
    screen.console.size = (100, 40)
    draw = Draw(screen, typed)
    draw.apply(TerminalSettings(show_reasoning=True))
    return draw, written


def test_there_are_enough_of_them() -> None:
    assert len(PAYLOADS) >= 300


def test_each_payload_would_be_seen() -> None:
    unseen = [payload for payload in PAYLOADS if not forbidden(payload)]
    assert set(unseen) <= {"\r", *SURROGATES}


@pytest.mark.parametrize("sink", EVENTS)
async def test_an_event_on_a_screen(sink: str) -> None:
    draw, written = on_screen()
    async with draw.at_work("Thinking"):
        for payload in PAYLOADS:
            for event in EVENTS[sink](payload):
                draw.on_event(event)
            draw._frame()  # the tail too, which a clock draws
    assert forbidden(written.getvalue()) == []


@pytest.mark.parametrize("sink", EVENTS)
async def test_an_event_as_plain_lines(sink: str) -> None:
    answers, asides = io.StringIO(), io.StringIO()
    draw = PlainDraw(answers, asides, {})
    draw.apply(TerminalSettings(show_reasoning=True))
    async with draw.at_work("Thinking"):
        for payload in PAYLOADS:
            for event in EVENTS[sink](payload):
                draw.on_event(event)
    whole = answers.getvalue() + asides.getvalue()
    assert "\x1b" not in whole
    assert forbidden(whole) == []


SAID: dict[str, Callable[[Draw | PlainDraw, str], None]] = {
    "show": lambda draw, payload: draw.show(f"a{payload}b"),
    "notice": lambda draw, payload: draw.notice(payload),
    "warn": lambda draw, payload: draw.warn(payload),
    "error": lambda draw, payload: draw.error(payload, payload),
    "approval panel": lambda draw, payload: draw.show(ApprovalPanel(asked(payload)).first()),
    "approval question": lambda draw, payload: draw.show(ApprovalKeys(rule=payload).line()),
}


@pytest.mark.parametrize("sink", SAID)
def test_what_is_said_beside(sink: str) -> None:
    draw, written = on_screen()
    plain = io.StringIO()
    for payload in PAYLOADS:
        SAID[sink](draw, payload)
        SAID[sink](PlainDraw(plain, plain, {}), payload)
    assert forbidden(written.getvalue() + plain.getvalue()) == []


async def test_what_is_typed_ahead_and_asked_stands_in_the_tail() -> None:
    typed = Typed("")
    draw, written = on_screen(typed)
    async with draw.at_work("Thinking"):
        for payload in PAYLOADS:
            typed.text = f"a{payload}b"
            draw._frame()
    assert forbidden(written.getvalue()) == []
