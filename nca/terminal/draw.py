"""Events become what a person sees: the listener for a terminal."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from nca.events import (
    ApprovalAsked,
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
    TurnStarted,
)
from nca.terminal import wording
from nca.terminal.diffs import diff_lines
from nca.terminal.sanitize import StreamSanitizer, one_line
from nca.terminal.screen import Screen

if TYPE_CHECKING:
    from nca.terminal.markdown_stream import MarkdownStream

FRAME_SECONDS = 0.08
"""At most this often the tail is drawn again."""

MAX_LINE_CHARS = 8_000
"""A longer line of reasoning leaves in pieces."""

DIFF_LINES = 40
"""Of a change that was made without asking; the whole is in the file."""

_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


class Draw:
    """Listens to a conversation and draws on a `Screen`. Never raises, never waits."""

    def __init__(self, screen: Screen, *, theme: str = "auto", show_reasoning: bool = False) -> None:
        self.screen = screen
        self.show_reasoning = show_reasoning
        self.typed_ahead: Callable[[], str] = str
        """What the person typed while nca works; shown below everything."""
        self.question: Text | None = None
        """While the person is asked something: what they may answer, in place of the status."""
        self._theme = theme
        self._answer: MarkdownStream | None = None
        self._thoughts: _Thoughts | None = None
        self._section = ""
        self._status = ""
        self._status_since = 0.0
        self._running: dict[str, str] = {}
        self._asked: set[str] = set()
        """Calls that the person was asked about: they have seen the change."""
        self._last_frame = 0.0
        self._is_at_work = False

    @property
    def is_gone(self) -> bool:
        return self.screen.is_gone

    def on_event(self, event: Event) -> None:
        match event:
            case TextDelta():
                self._on_text(event.text)
            case ReasoningDelta():
                self._on_reasoning(event.text)
            case TurnStarted() | RequestStarted():
                self._set_status("Thinking")
            case ToolStarted():
                self._end_stream()
                self._running[event.call_id] = wording.tool_started_line(event)
                self._set_status(", ".join(self._running.values()))
            case ToolFinished():
                self._on_tool_finished(event)
            case ContextWarning():
                self._line(event.message, "notice" if event.level == "warning" else "quiet")
            case ContextCompaction() if not wording.is_silent(event):
                self._on_compaction(event)
            case ApprovalAsked():
                self._asked.add(event.call_id)
            case MessageTaken():
                self._line(f"› {event.text}", "none")
            case RetryScheduled():
                self._line(wording.retry_line(event), "quiet")
            case Notice():
                self.notice(event.message)
            case ErrorRaised():
                self.error(event.message, event.advice)
            case TurnFinished():
                self._on_turn_finished(event)
            case _:
                pass

    def show(self, answer: RenderableType | str) -> None:
        self._end_stream()
        self._begin("shown")
        self.screen.print(answer)

    def notice(self, text: str) -> None:
        self._line(text, "quiet")

    def warn(self, text: str) -> None:
        self._line(text, "notice")

    def error(self, message: str, advice: str = "") -> None:
        self._line(message, "failure")
        if advice:
            self._line(advice, "quiet")

    def clear(self) -> None:
        self.screen.clear()

    def begin_prompt(self, above: Callable[[Callable[[], None]], None]) -> None:
        """A prompt is about to stand on the screen; `above` runs a write so that it lands above it."""
        if self._section:
            self.screen.print(Text(""))
        self._section = ""
        self.screen.above_prompt = above

    def end_prompt(self) -> None:
        self.screen.above_prompt = None

    @asynccontextmanager
    async def at_work(self, label: str) -> AsyncIterator[None]:
        self._is_at_work = True
        self._section = "prompt"
        self._set_status(label)
        clock = asyncio.create_task(self._animate())
        try:
            yield
        finally:
            clock.cancel()
            with suppress(asyncio.CancelledError):
                await clock
            self._is_at_work = False
            self._status = ""
            self._running.clear()
            self._end_stream()
            self.screen.clear_tail()

    async def _animate(self) -> None:
        while True:
            await asyncio.sleep(FRAME_SECONDS)
            self._frame()

    def _on_text(self, text: str) -> None:
        if self._thoughts is not None:
            self._end_stream()
        if self._answer is None:
            if not text.strip():
                return
            self._begin("answer")
            self._answer = self._new_answer()
            self._status = ""
        finished = self._answer.feed(text)
        self._frame(finished, only_when_due=True)

    def _new_answer(self) -> MarkdownStream:
        # Imported here: parser and lexers are not needed before the first answer.
        from nca.terminal.code_theme import code_theme
        from nca.terminal.markdown_stream import MarkdownStream

        return MarkdownStream(code_theme(self._theme))

    def _on_reasoning(self, text: str) -> None:
        if not self.show_reasoning:
            return
        if self._answer is not None:
            self._end_stream()
        if self._thoughts is None:
            self._begin("reasoning")
            self._thoughts = _Thoughts()
        self._frame(self._thoughts.feed(text), only_when_due=True)

    def _on_tool_finished(self, event: ToolFinished) -> None:
        started = self._running.pop(event.call_id, "")
        mark, style = ("✗", "failure") if event.is_error else ("•", "quiet")
        self._line(f"{mark} {wording.tool_finished_line(started, event)}", style, section="tools")
        if event.diff and event.call_id not in self._asked:
            self.screen.print(*diff_lines(event.diff, DIFF_LINES))
        self._set_status(", ".join(self._running.values()) or "Thinking")

    def _on_compaction(self, event: ContextCompaction) -> None:
        if event.phase == "starting":
            self._end_stream()
            self._set_status(wording.compaction_line(event))
            return
        style = {"failed": "notice", "insufficient": "notice"}.get(event.phase, "quiet")
        self._line(wording.compaction_line(event), style)
        self._set_status("Thinking")

    def _on_turn_finished(self, event: TurnFinished) -> None:
        self._end_stream()
        self._status = ""
        match event.reason:
            case "interrupted":
                self._line("Interrupted; what came so far is kept. Ctrl-C again leaves.", "notice")
            case "max_steps":
                self._line(f"Stopped after {event.steps} steps (agent.max_steps). Say “go on” to continue.", "notice")
            case "stuck":
                self._line(wording.STUCK, "notice")
            case _:
                pass

    def _line(self, text: str, style: str, *, section: str = "lines") -> None:
        """One line for good, apart from the answer's text."""
        self._end_stream()
        self._begin(section)
        self.screen.print(Text(one_line(text, wording.ERROR_CHARS), style=style))

    def _begin(self, section: str) -> None:
        """An empty line between what is of different kinds."""
        if self._section != section and self._section:
            self.screen.print(Text(""))
        self._section = section

    def _end_stream(self) -> None:
        stream, self._answer = self._answer, None
        thoughts, self._thoughts = self._thoughts, None
        finished = stream.finish() if stream else thoughts.finish() if thoughts else []
        if finished:
            self._frame(finished)

    def _set_status(self, status: str) -> None:
        if status != self._status:
            self._status, self._status_since = status, time.monotonic()
        if self._is_at_work:
            self._frame(only_when_due=True)

    def _frame(self, finished: list[RenderableType] | None = None, *, only_when_due: bool = False) -> None:
        """Draw: what is finished for good, the tail when a frame is due."""
        now = time.monotonic()
        is_due = now - self._last_frame >= FRAME_SECONDS
        if only_when_due and not is_due and not finished:
            return
        self._last_frame = now
        self.screen.draw(finished or [], self._tail(now) if self._is_at_work else None)

    def _tail(self, now: float) -> RenderableType | None:
        parts: list[RenderableType] = []
        stream = self._answer or self._thoughts
        if stream is not None and stream.tail is not None:
            parts.append(stream.tail)
        elif self.question is not None:
            parts.append(self.question)
        elif self._status:
            parts.append(self._status_line(now))
        if typed := self.typed_ahead():
            parts.append(Text("› " + one_line(typed), style="quiet", no_wrap=True, overflow="ellipsis"))
        return Group(*parts) if parts else None

    def _status_line(self, now: float) -> Text:
        elapsed = now - self._status_since
        mark = _SPINNER[int(now / FRAME_SECONDS) % len(_SPINNER)]
        waited = f" {elapsed:.0f} s · Ctrl-C stops" if elapsed >= 2 else ""
        return Text(f"{mark} {self._status}…{waited}", style="quiet", no_wrap=True, overflow="ellipsis")


class _Thoughts:
    """Reasoning as it comes: whole lines leave, the last one is the tail."""

    def __init__(self) -> None:
        self._sanitizer = StreamSanitizer()
        self._partial = ""

    def feed(self, chunk: str) -> list[RenderableType]:
        *lines, self._partial = (self._partial + self._sanitizer.feed(chunk)).split("\n")
        if len(self._partial) > MAX_LINE_CHARS:
            lines, self._partial = [*lines, self._partial], ""
        return [Text(line, style="quiet") for line in lines]

    def finish(self) -> list[RenderableType]:
        rest = self._partial + self._sanitizer.finish()
        self._partial = ""
        return [Text(rest, style="quiet")] if rest.strip() else []

    @property
    def tail(self) -> RenderableType | None:
        return Text(self._partial[-2_000:], style="quiet") if self._partial.strip() else None
