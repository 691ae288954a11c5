"""Draw a conversation's events on a screen: the answer as it streams, tool calls, notices, a status line."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.segment import SegmentLines
from rich.text import Text

from nca import events
from nca.terminal.render import calls, event_lines
from nca.terminal.render.file_changes import diff_lines
from nca.terminal.render.layout import Parted, behind_mark, broken_at_gaps
from nca.terminal.render.output import ANSWER_LINES, Notifier, RecentCalls, codes, lines_above
from nca.terminal.render.sanitize import one_line
from nca.terminal.render.screen import TYPED, Cursor, Screen, TypedAhead, taken_message, typed_tail
from nca.terminal.render.stream_writer import RESIZE_SECONDS
from nca.terminal.render.theme import theme_for

if TYPE_CHECKING:
    from nca.agent.context_notices import Exchange
    from nca.config.schema import TerminalSettings
    from nca.terminal.render.markdown import MarkdownStream

FRAME_SECONDS = 0.08
"""The shortest time between two drawings of the tail."""
STALLED_SECONDS = 2.0
"""After so many seconds without more of an answer, the status says that nca waits."""
OTHER_ROWS = 4
"""Rows of a low window that a running call's output leaves free: for the status, the typed text, and two others."""
DIFF_LINES = 40
"""Lines shown of a change that was made without asking; /show has more."""

_MORE = "Waiting for more of the answer"
_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


class Draw:
    """Listens to a conversation and draws on a `Screen`. Never raises, never waits."""

    def __init__(
        self, screen: Screen, typed_ahead: TypedAhead | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.screen = screen
        self._clock = clock
        self.recent = RecentCalls()
        self._typed_ahead = typed_ahead
        self._question: Callable[[], Text] | None = None
        self._show_reasoning = False
        self._theme = "auto"
        self._notifier = Notifier(lambda message: screen.send_codes(codes(message, os.environ)))
        self._answer: MarkdownStream | None = None
        self._unfed: list[str] = []
        """The answer's text since the last frame."""
        self._goes_on = False
        """Another request was sent for the answer that is being drawn: its reasoning does not part the text."""
        self._reasoning_stream: calls.ReasoningLines | calls.ReasoningCounter | None = None
        self._section = self._status = ""
        self._status_since = self._last_frame = 0.0
        self._size, self._resized_at = screen.console.size, -RESIZE_SECONDS
        self._retry: events.RetryScheduled | None = None
        """The time that the status counts down to."""
        self._running = calls.RunningCalls()
        self._notices = event_lines.Notices()
        self._asked: set[str] = set()
        """Calls that run and that the person was asked about. They have seen the change."""
        self._is_at_work = self._is_turn = False
        self._later: list[Callable[[], None]] = []

    def apply(self, settings: TerminalSettings) -> None:
        if settings.theme != self._theme:
            self.screen.console.push_theme(theme_for(settings.theme))
        self._theme, self._show_reasoning = settings.theme, settings.show_reasoning
        self._notifier.after_seconds = settings.notify_seconds

    @property
    def failure(self) -> Exception | None:
        return self.screen.failure

    def on_event(self, event: events.Event) -> None:
        self.recent.on_event(event)
        self._notifier.on_event(event)
        self._notices.note(event)
        match event:
            case events.TextDelta():
                self._on_text(event.text)
            case events.ReasoningDelta():
                self._on_reasoning(event.text)
            case events.TurnStarted() | events.RequestStarted():
                self._is_turn = self._is_turn or isinstance(event, events.TurnStarted)
                self._goes_on = self._answer is not None
                self._set_status("Thinking")
            case events.RequestRead() | events.CallWritten():
                self._set_status(event_lines.model_status(event), goes_on=True)
            case events.RetryScheduled():
                self._set_status(event_lines.retry_status(event, 0.0))
                self._retry = event
            case events.ToolStarted():
                self._end_stream()
                self._running.begin(event)
                self._set_status(self._running.line(), goes_on=calls.is_nested(event.call_id))
            case events.ToolProgress():
                self._running.progress(event)
                self._set_status(self._running.line() or self._status, goes_on=True)
            case events.ToolOutput():
                self._running.print(event)
                self._frame(only_when_due=True)
            case events.ToolFinished():
                self._on_tool_finished(event)
            case events.ContextCompaction() if not event_lines.is_silent(event):
                self._on_compaction(event)
            case events.ApprovalAsked():
                # It has started for the person only when they allow it. Until they pause, no question is asked.
                self._asked.add(event.call_id)
                self._set_status("Waiting to ask you")
            case events.ApprovalGiven(decision="stopped"):
                self._on_tool_finished(event_lines.not_made(event))
            case events.ApprovalGiven():  # what the person took to answer is not the work's time
                self._set_status(self._running.line() or "Thinking")
            case events.MessageTaken():
                self._end_stream()
                self._begin("asked")
                self.screen.print(*taken_message(event.text, self._typed_ahead, self.screen.console))
            case events.ErrorRaised():
                self.error(*event_lines.error_line(event))
            case events.TurnFinished():
                self._end_stream()
                self._status = ""
        if not isinstance(event, events.RetryScheduled) and (line := self._notices.line(event)):
            leaves = isinstance(event, events.TurnFinished) and event.reason == "interrupted" and not event.is_empty
            # If no answer came, the text is in the prompt again, and Ctrl-C clears it first.
            self._line(f"{line[0]} Ctrl-C twice leaves." if leaves else line[0], line[1])

    def send_codes(self, codes: str) -> bool:
        self.screen.send_codes(codes)
        return self.screen.failure is None

    def show(self, answer: RenderableType | str) -> None:
        self._end_stream()
        self._begin("shown")
        self.screen.print(answer)

    def title(self, text: str) -> None:
        self._line(text, "bold")

    def notice(self, text: str) -> None:
        self._line(text, "quiet")

    def warn(self, text: str) -> None:
        self._line(text, "notice")

    def card(self, lines: Sequence[str]) -> None:
        for line in lines:  # each takes one row: there are only so many
            shown = Text(f"  {one_line(line, event_lines.ERROR_CHARS)}", style="quiet")
            shown.truncate(self.screen.console.width, overflow="ellipsis")
            self.screen.print(shown)

    def exchange(self, said: Exchange, most_lines: int = ANSWER_LINES) -> None:
        if said.asked:
            self._line(f"{TYPED}{said.asked}", "none", section="asked")
        if not said.answer.strip():
            return
        self._begin("answer")
        stream, console = self._new_answer(), self.screen.console
        lines = console.render_lines(Group(*stream.feed(said.answer), *stream.finish()), pad=False)
        if (above := len(lines) - most_lines) > 0:
            self.screen.print(Text(lines_above(above, said), style="quiet"))
        self.screen.print(SegmentLines(lines[-most_lines:], new_lines=True))
        self._section = "exchange"

    def between(self, show: Callable[[], None]) -> bool:
        """Call `show`, which may draw, between two blocks of an answer. False: one has to end first."""
        self._later.append(show)
        if self._answer is None and not isinstance(self._reasoning_stream, calls.ReasoningLines):
            self._show_later()
        return not self._later

    def _show_later(self) -> None:
        """Show what waits, once: each show comes here again. What is being drawn goes on below it."""
        drawn = self._answer, self._reasoning_stream, self._goes_on
        self._answer = self._reasoning_stream = None
        later, self._later = self._later, []
        for show in later:
            self._section = self._section and "between"
            show()
        if later and self.screen.has_prompt:
            self._begin("")
        self._answer, self._reasoning_stream, self._goes_on = drawn
        if self._answer:
            self._section = "answer"  # its next block parts itself from what is above

    def error(self, message: str, advice: str = "") -> None:
        self._line(message, "failure")
        if advice:
            self._line(advice, "quiet")

    def clear(self) -> None:
        self._section = ""
        self.screen.clear()

    def begin_prompt(self, above: Callable[[Callable[[], None]], None]) -> None:
        """A prompt is about to be shown. `above` runs a write so that it appears above the prompt."""
        self._begin("")
        self.screen.begin_prompt(above)

    def end_prompt(self) -> None:
        self.screen.end_prompt()

    def show_question(self, line: Callable[[], Text] | None) -> None:
        """Show the possible answers, as each frame finds them, in place of the status; None ends the question."""
        self._question = line

    def status(self, text: str) -> None:
        self._set_status(text, goes_on=True)

    @asynccontextmanager
    async def at_work(self, label: str) -> AsyncIterator[None]:
        self._is_at_work, self._is_turn = True, False
        self._section = "prompt"
        self._set_status(label)
        clock = asyncio.create_task(self._animate())
        try:
            yield
        finally:
            clock.cancel()
            with suppress(asyncio.CancelledError):
                await clock
            self._is_at_work, self._status = False, ""
            self._running, self._asked = calls.RunningCalls(), set()
            self._end_stream()
            self.screen.clear_tail()

    async def _animate(self) -> None:
        while True:
            await asyncio.sleep(FRAME_SECONDS)
            self._frame()
            self._notifier.look()

    def _on_text(self, text: str) -> None:
        if self._reasoning_stream is not None:
            self._end_stream()
        if self._answer is None:
            if not text.strip():
                return
            self._begin("answer")
            self._answer = self._new_answer()
        self._status, self._status_since = _MORE, self._clock()
        self._retry, self._goes_on = None, False
        self._unfed.append(text)
        self._frame(only_when_due=True)

    def _new_answer(self) -> MarkdownStream:
        # Imported here because the parser and the lexers are not needed before the first answer.
        from nca.terminal.render.code_highlighter import code_theme
        from nca.terminal.render.markdown import MarkdownStream

        return MarkdownStream(code_theme(self._theme))

    def _on_reasoning(self, text: str) -> None:
        if self._goes_on:
            return
        if self._answer is not None:
            self._end_stream()
        if self._reasoning_stream is None:
            if not text.strip():
                return
            self._reasoning_stream = calls.ReasoningLines() if self._show_reasoning else calls.ReasoningCounter()
            if self._show_reasoning:
                self._begin("reasoning")
        self._frame(self._reasoning_stream.feed(text), only_when_due=True)

    def _on_tool_finished(self, event: events.ToolFinished) -> None:
        started = self._running.end(event.call_id)
        is_change = bool(event.diff) and event.call_id not in self._asked
        self._asked.discard(event.call_id)
        mark, style = ("✗", "failure") if event.is_error else ("•", "quiet")
        self._line(f"{mark} {event_lines.tool_finished_line(started, event)}", style, section="tools")
        if is_change:
            self.screen.print(*diff_lines(event.diff, DIFF_LINES, "(/show has more)"))
        if event.printed and not calls.is_nested(event.call_id):
            # In a group, because Rich joins texts that are printed alone, and then breaks their lines.
            self.screen.print(Group(*calls.printed_lines(event)))
        self._set_status(self._running.line() or "Thinking", goes_on=calls.is_nested(event.call_id))

    def _on_compaction(self, event: events.ContextCompaction) -> None:
        if event.phase == "starting":
            self._end_stream()
            self._set_status(event_lines.compaction_line(event))
            return
        is_bad = event.phase in ("failed", "insufficient")
        self._line(event_lines.compaction_line(event), "notice" if is_bad else "quiet")
        self.card(event.card)
        self._set_status("Thinking")

    def _line(self, text: str, style: str, *, section: str = "lines") -> None:
        """Print one line, apart from the answer's text."""
        self._end_stream()
        self._begin(section)
        line = Text(one_line(text, event_lines.ERROR_CHARS), style=style)
        self.screen.print(*(behind_mark(line, self.screen.console) if section == "tools" else [Parted(line)]))

    def _begin(self, section: str) -> None:
        """Print an empty line between sections of different kinds."""
        if self._section != section and self._section:
            self.screen.print(Text(""))
        self._section = section

    def _end_stream(self) -> None:
        fed = self._fed()
        stream, self._answer = self._answer, None
        reasoning, self._reasoning_stream = self._reasoning_stream, None
        self._goes_on = False
        finished = (
            stream.finish() if stream else reasoning.finish() if isinstance(reasoning, calls.ReasoningLines) else []
        )
        if isinstance(reasoning, calls.ReasoningCounter):
            self._begin("tools")
            finished = [*finished, *behind_mark(reasoning.line(), self.screen.console)]
        if fed or finished:
            self._frame([*fed, *finished])
        self._show_later()

    def _set_status(self, status: str, *, goes_on: bool = False) -> None:
        """Change the status. `goes_on`: the same work continues, so its time keeps counting."""
        self._retry = None
        if status != self._status:
            self._status_since = self._status_since if goes_on else self._clock()
            self._status = status
        if self._is_at_work:
            self._frame(only_when_due=True)

    def _frame(self, finished: list[RenderableType] | None = None, *, only_when_due: bool = False) -> None:
        """Print finished parts, and draw the tail if a frame is due."""
        now = self._clock()
        if (size := self.screen.console.size) != self._size:
            self._size, self._resized_at = size, now
        is_too_soon = only_when_due and now - self._last_frame < FRAME_SECONDS
        if not finished and (is_too_soon or now - self._resized_at < RESIZE_SECONDS):
            return
        self._last_frame = now
        printed = [*self._fed(), *(finished or [])]  # fed first: it changes the tail
        tail, cursor = self._tail(now) if self._is_at_work else (None, None)
        self.screen.draw(printed, tail, cursor)
        if printed and self._later and self._answer is not None and self._answer.is_between:
            self._show_later()

    def _fed(self) -> list[RenderableType]:
        """Feed the text since the last frame in one piece; returns the finished parts."""
        if self._answer is None or not self._unfed:
            return []
        text = "".join(self._unfed)
        self._unfed.clear()
        return self._answer.feed(text)

    def _tail(self, now: float) -> tuple[RenderableType | None, Cursor | None]:
        """The redrawn part, and the place of the cursor in it."""
        parts: list[RenderableType] = []
        cursor: Cursor | None = None
        stream = self._answer or self._reasoning_stream
        if stream is not None and stream.tail is not None:
            parts.append(stream.tail)
        if self._question is not None:
            parts.append(broken_at_gaps(self._question(), self.screen.console.width))
        elif self._status and (self._status != _MORE or now - self._status_since >= STALLED_SECONDS):
            parts += [self._status_line(now), *self._running.printed(self.screen.console.height - OTHER_ROWS)]
        if self._typed_ahead is not None:
            typed, cursor = typed_tail(self._typed_ahead, is_turn=self._is_turn)
            parts += typed
        return (Group(*parts) if parts else None), cursor

    def _status_line(self, now: float) -> Text:
        elapsed = now - self._status_since
        if self._retry is not None:
            self._status = event_lines.retry_status(self._retry, elapsed)
        status = f"{_SPINNER[int(now / FRAME_SECONDS) % len(_SPINNER)]} {self._status}…"
        return calls.status_row(status, elapsed, "Esc" if self._typed_ahead else "Ctrl-C", self.screen.console.width)
