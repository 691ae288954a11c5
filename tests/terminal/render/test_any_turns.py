"""Whatever a turn was, and wherever it was cut off: the next one is shown as the first one would be.

So nothing of a turn is left in who shows it. What is kept on purpose is not in these events: that nca has made room.
"""

from __future__ import annotations

import asyncio
import io
import re
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from nca.acp.tool_calls import Outlet
from nca.acp.updates import Updates
from nca.config.schema import TerminalSettings
from nca.context.todo import NAME as TODO
from nca.events import (
    ApprovalAsked,
    ApprovalGiven,
    CallWritten,
    ContextCompaction,
    ErrorRaised,
    Event,
    MessageTaken,
    Notice,
    ReasoningDelta,
    RequestRead,
    RequestStarted,
    RetryScheduled,
    TextDelta,
    ToolFinished,
    ToolOutput,
    ToolProgress,
    ToolStarted,
    TurnFinished,
    TurnStarted,
)
from nca.terminal.render.draw import _SPINNER, FRAME_SECONDS, Draw
from nca.terminal.render.plain import PlainDraw
from nca.terminal.render.screen import Screen
from tests.terminal.render.test_draw import DIFF, TASK
from tests.terminal.stage import Typed

BEGIN, REQUEST = TurnStarted("s", 1), RequestStarted(1, "m", 900, 4_000)
STARTED = ToolStarted("call_0", "edit_file", "{}", "edit a.py")
CALLS = ("call_0", TASK)
BETWEEN: tuple[Event, ...] = (
    REQUEST,
    RequestRead(10, 9_000),
    TextDelta("One line.\n\nAnd ano"),
    TextDelta("ther\x1b"),
    ReasoningDelta("Well"),
    CallWritten("grep", "grep word", 80, 0),
    RetryScheduled(1, 0.5, "overloaded"),
    MessageTaken("And that?"),
    Notice("By the way."),
    ErrorRaised("no"),
    *(ContextCompaction(phase, "manual", message="It.") for phase in ("starting", "failed")),
    *(ToolStarted(call, "edit_file", "{}", "edit a.py") for call in CALLS),
    *(ToolProgress(call, "half") for call in CALLS),
    ToolStarted("plan", TODO, '{"doing": "this"}', "todo this"),
    ToolFinished("plan", TODO, False, "0 of 1 done", 0.1, printed="› this"),
    *(ToolOutput(call, "a line") for call in CALLS),
    *(ApprovalAsked(call, "edit_file", "write", "edit a.py") for call in CALLS),
    *(ApprovalGiven(call, "edit_file", decision) for call in CALLS for decision in ("once", "unanswered", "stopped")),
    *(ToolFinished(call, "edit_file", False, "+1 −1", 0.1, diff) for call in CALLS for diff in ("", DIFF)),
)
OPEN = (TextDelta, ReasoningDelta, ToolStarted, ToolOutput, ApprovalAsked)
"""Events after which something is still to come."""
END = TurnFinished("interrupted", "", 1, 0.1)
COMMAND = (Notice("By the way."),)
"""The work of a command, which is no turn."""
Turn = Sequence[Event]
FIRST: tuple[Turn, ...] = (BETWEEN, BETWEEN[::-1], *((event,) for event in BETWEEN if isinstance(event, OPEN)))


async def drawn(turns: Sequence[Turn]) -> str:
    """What the last turn sends to the screen."""
    file, seconds = io.StringIO(), 1_000.0
    draw = Draw(Screen(file), Typed(""), lambda: seconds)
    draw.apply(TerminalSettings(show_reasoning=True))
    begin = 0
    for turn in turns:
        begin, seconds = len(file.getvalue()), seconds + FRAME_SECONDS
        async with draw.at_work("Working"):
            for event in turn:
                seconds += FRAME_SECONDS
                draw.on_event(event)
    return re.sub(f"[{_SPINNER}]", "", file.getvalue()[begin:])


async def written(turns: Sequence[Turn]) -> tuple[str, str]:
    """What plain lines say of the last turn."""
    streams = io.StringIO(), io.StringIO()
    draw = PlainDraw(*streams, {})
    begins = (0, 0)
    for turn in turns:
        begins = len(streams[0].getvalue()), len(streams[1].getvalue())
        async with draw.at_work("Thinking"):
            for event in turn:
                draw.on_event(event)
    return streams[0].getvalue()[begins[0] :], streams[1].getvalue()[begins[1] :]


async def updated(turns: Sequence[Turn]) -> list[dict[str, Any]]:
    """What an editor is told of the last turn, with its calls numbered anew."""
    sent: list[dict[str, Any]] = []
    outlet = Outlet(lambda message: sent.append(message["params"]["update"]))
    outlet.session_id = "s"
    outlet.open()
    updates = Updates(outlet, Path("/here"))
    for turn in turns:
        sent.clear()
        for event in turn:
            updates.on_event(event)
    calls: dict[str, int] = {}
    return [
        one | {"toolCallId": calls.setdefault(one["toolCallId"], len(calls))} if "toolCallId" in one else one
        for one in sent
    ]


@pytest.mark.parametrize("show", [drawn, written, updated])
def test_the_next_turn_is_shown_as_the_first_one_would_be(show: Callable[[Sequence[Turn]], Awaitable[object]]) -> None:
    async def all_pairs() -> None:
        for second in (COMMAND, *((BEGIN, REQUEST, event) for event in BETWEEN)):
            once = await show([(), second])
            for first in FIRST:
                assert await show([(BEGIN, *first, END), second]) == once, (first, second)

    asyncio.run(all_pairs())
