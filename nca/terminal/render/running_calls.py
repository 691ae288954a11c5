"""What runs now, as one line: tool calls and reasoning."""

from __future__ import annotations

import re
import time

from rich.console import RenderableType
from rich.text import Text

from nca.events import ToolProgress, ToolStarted
from nca.humanize import counted
from nca.terminal.render.event_lines import TOOL_CHARS, reasoning_line, tool_started_line
from nca.terminal.render.sanitize import LineSanitizer, one_line

_NESTED = re.compile(r"task-[0-9a-f]+/")
"""The prefix that nca.agent.subtask gives to the calls of a task."""


def is_nested(call_id: str) -> bool:
    """Whether a task made the call."""
    return _NESTED.match(call_id) is not None


class RunningCalls:
    """The running calls, oldest first. For a task: the number of its calls so far, and the latest."""

    def __init__(self) -> None:
        self._lines: dict[str, str] = {}
        self._progress: dict[str, str] = {}
        self._nested: dict[str, str] = {}
        self._nested_count = 0
        self._last = ""

    def begin(self, event: ToolStarted) -> None:
        line = tool_started_line(event)
        if is_nested(event.call_id):
            self._nested[event.call_id] = line
            self._nested_count += 1
            self._last = line.removeprefix("task: ")
        else:
            self._lines[event.call_id] = line

    def progress(self, event: ToolProgress) -> None:
        self._progress[event.call_id] = one_line(event.text, TOOL_CHARS)

    def end(self, call_id: str) -> str:
        """The line of the call that finished; "" if its start was not seen."""
        self._progress.pop(call_id, None)
        line = self._nested.pop(call_id, "") or self._lines.pop(call_id, "")
        if not self._lines:
            self._nested_count, self._last = 0, ""
        return line

    def clear(self) -> None:
        self._lines.clear()
        self._progress.clear()
        self._nested.clear()
        self._nested_count, self._last = 0, ""

    def line(self) -> str:
        """ "" if nothing is running."""
        lines = [" · ".join(filter(None, (line, self._progress.get(key)))) for key, line in self._lines.items()]
        if not lines:
            return self._last
        shown = lines[0] if len(lines) == 1 else f"{len(lines)} calls: {', '.join(lines)}"
        if not self._nested_count:
            return shown
        return f"{counted(self._nested_count, 'call')}, now {self._last} · {shown}"


TAIL_CHARS = 2_000


class ReasoningLines:
    """Shows the reasoning: complete lines are returned, the unfinished one is the tail."""

    def __init__(self) -> None:
        self._lines = LineSanitizer()

    def feed(self, chunk: str) -> list[RenderableType]:
        return [Text(line, style="quiet") for line in self._lines.feed(chunk)]

    def finish(self) -> list[RenderableType]:
        rest = self._lines.finish()
        return [Text(rest, style="quiet")] if rest.strip() else []

    @property
    def tail(self) -> RenderableType | None:
        partial = self._lines.partial
        return Text(partial[-TAIL_CHARS:], style="quiet") if partial.strip() else None


class ReasoningCounter:
    """Only counts the reasoning, and says in one line how much there was. `/show thoughts` shows the text."""

    tail: RenderableType | None = None

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._chars = 0

    def feed(self, chunk: str) -> list[RenderableType]:
        self._chars += len(chunk)
        return []

    def line(self) -> Text:
        line = reasoning_line(time.monotonic() - self._started, self._chars)
        return Text(f"• {line} · /show thoughts", style="quiet")
