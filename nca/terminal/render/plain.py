"""Line mode: no terminal, one that can do nothing, or a screen reader. Lines in, lines out, not one escape code.

The answer's text and a command's answer go to standard output; everything said beside them to standard error. Each line
says in words what it is, nothing moves, and nothing is drawn twice.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import IO, TYPE_CHECKING, TextIO

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
    RetryScheduled,
    TextDelta,
    ToolFinished,
    ToolStarted,
    TurnFinished,
)
from nca.terminal.render import wording
from nca.terminal.render.glyphs import carried
from nca.terminal.render.notify import BELL, Notifier
from nca.terminal.render.output import is_unread, unwritten_line
from nca.terminal.render.recent_calls import Recent
from nca.terminal.render.running_tools import RunningCalls, is_nested
from nca.terminal.render.sanitize import StreamSanitizer, one_line, to_terminal

if TYPE_CHECKING:
    from rich.console import RenderableType

    from nca.config.schema import TerminalSettings

SIGN_OF_LIFE_SECONDS = 15.0
"""A person at a terminal, who may not see it, hears this often that work goes on."""


class PlainDraw:
    """The listener without a terminal. Never raises; a closed pipe makes it silent."""

    def __init__(
        self, answers: TextIO, asides: TextIO, environment: Mapping[str, str], *, show_reasoning: bool = False
    ) -> None:
        self.recent = Recent()
        self.is_gone = False
        self.failure: OSError | None = None
        self._closed: list[TextIO] = []
        self._show_reasoning = show_reasoning
        self._is_terminal = answers.isatty()
        self._notifier = Notifier(self._ring, 0)
        self._answers = answers
        self._asides = asides
        self._environment = environment
        self._text = StreamSanitizer()
        self._reasoning = StreamSanitizer()
        self._is_line_open = False
        self._is_thought_open = False
        self._running = RunningCalls()
        self._needs: dict[str, str] = {}

    def apply(self, settings: TerminalSettings) -> None:
        self._show_reasoning = settings.show_reasoning
        self._notifier.after_seconds = settings.notify_seconds

    def send_codes(self, codes: str) -> bool:
        return False

    def on_event(self, event: Event) -> None:
        self.recent.on_event(event)
        self._notifier.on_event(event)
        match event:
            case TextDelta():
                self._answer(self._text.feed(event.text))
            case ReasoningDelta() if self._show_reasoning:
                self._end_answer()
                self._is_thought_open = True
                self._write(self._asides, self._reasoning.feed(event.text))
            case ToolStarted():
                self._running.begin(event)
            case ToolFinished():
                self._end_answer()
                started = self._running.end(event.call_id)
                if not is_nested(event.call_id) or event.diff:
                    label = "Tool failed" if event.is_error else "Tool"
                    self._aside(f"{label}: {wording.tool_finished_line(started, event, in_words=True)}")
            case ApprovalAsked():
                self._needs[event.call_id] = event.needs
            case ApprovalGiven(decision="unanswered"):
                self._aside(wording.unanswered_line(event.name, self._needs.pop(event.call_id, "")))
            case MessageTaken():
                self._aside(f"You: {event.text}")
            case ContextWarning() | Notice():
                self._aside(event.message)
            case ContextCompaction() if not wording.is_silent(event):
                self._aside(wording.compaction_line(event))
            case RetryScheduled():
                self._aside(wording.retry_line(event))
            case ErrorRaised():
                self.error(event.message, event.advice)
            case TurnFinished():
                self._on_turn_finished(event)
            case _:
                pass

    def show(self, answer: RenderableType | str) -> None:
        self._end_answer()
        if isinstance(answer, str):
            self._write(self._answers, to_terminal(answer).rstrip("\n") + "\n")
            return
        from nca.terminal.render.theme import plain_console

        console = plain_console(self._environment)
        with console.capture() as captured:
            console.print(answer)
        lines = [line.rstrip() for line in captured.get().rstrip("\n").split("\n")]
        self._write(self._answers, "\n".join(lines) + "\n")

    def notice(self, text: str) -> None:
        self._aside(text)

    def warn(self, text: str) -> None:
        self._aside(text)

    def error(self, message: str, advice: str = "") -> None:
        self._aside(message)
        if advice:
            self._aside(advice)

    def clear(self) -> None:
        """There is no screen to clear."""

    @asynccontextmanager
    async def at_work(self, label: str) -> AsyncIterator[None]:
        signs = asyncio.create_task(self._signs_of_life(label)) if self._is_terminal else None
        try:
            yield
        finally:
            if signs is not None:
                signs.cancel()
            self._end_answer()
            self._running.clear()

    async def _signs_of_life(self, label: str) -> None:
        waited = 0.0
        while True:
            await asyncio.sleep(SIGN_OF_LIFE_SECONDS)
            waited += SIGN_OF_LIFE_SECONDS
            if not self._is_line_open:
                self._aside(
                    f"Still at work after {wording.duration(waited)}: {self._running.line() or label or 'busy'}."
                )
            self._notifier.look()

    def _ring(self, message: str) -> None:
        if self._is_terminal:
            self._write(self._answers, BELL)

    def _on_turn_finished(self, event: TurnFinished) -> None:
        self._end_answer()
        if event.reason == "interrupted":
            self._aside("Interrupted; what came so far is kept.")
        elif event.reason == "max_steps":
            self._aside(f"Stopped after {event.steps} steps (agent.max_steps).")
        elif event.reason == "stuck":
            self._aside(wording.STUCK)

    def _answer(self, text: str) -> None:
        if not text:
            return
        self._end_thought()
        self._write(self._answers, text)
        self._is_line_open = not text.endswith("\n")

    def _aside(self, text: str) -> None:
        self._end_answer()
        self._write(self._asides, one_line(text, wording.ERROR_CHARS) + "\n")

    def _end_answer(self) -> None:
        """Ends the lines that are open on either side."""
        self._answer(self._text.finish())
        if self._is_line_open:
            self._is_line_open = False
            self._write(self._answers, "\n")
        self._end_thought()

    def _end_thought(self) -> None:
        if self._is_thought_open:
            self._is_thought_open = False
            self._write(self._asides, self._reasoning.finish() + "\n")

    def _write(self, file: TextIO, text: str) -> None:
        if not text or file in self._closed:
            return
        try:
            file.write(text)
            file.flush()
        except UnicodeEncodeError:
            encoding = file.encoding or "ascii"
            self._write(file, carried(text, encoding))
        except (OSError, ValueError) as error:
            self._closed.append(file)
            if file is self._answers:
                self.is_gone = True
                self.failure = error if isinstance(error, OSError) else None
                if self.failure is not None and not is_unread(self.failure):
                    self._aside(unwritten_line(self.failure))


class LineReader:
    """Reads lines of standard input without holding up the event loop.

    Reading happens in a daemon thread, so that a pipe that says nothing cannot keep the program from ending.
    """

    def __init__(self, lines: IO[str], *, prompt: IO[str] | None = None) -> None:
        self._lines = lines
        self._prompt = prompt
        self._queue: asyncio.Queue[str | None] = asyncio.Queue()
        self._asked = threading.Semaphore(0)
        self._thread: threading.Thread | None = None
        self._is_waiting = False

    async def read(self, default: str = "") -> str:
        """The next line without its end, lines that end in a backslash joined; EOFError at the end of the input."""
        loop = asyncio.get_running_loop()
        if self._thread is None:
            self._thread = threading.Thread(target=self._pump, args=(loop,), daemon=True, name="nca-lines")
            self._thread.start()
        if self._prompt is None:
            default = ""
        if default:
            self._say(f"[Enter sends again: {one_line(default, 60)}]\n")
        collected: list[str] = []
        while True:
            self._say("... " if collected else "> ")
            if not self._is_waiting:
                self._is_waiting = True
                self._asked.release()
            line = await self._queue.get()
            self._is_waiting = False
            if line is None:
                if collected:
                    return "\n".join(collected)
                raise EOFError
            if line.endswith("\\"):
                collected.append(line[:-1])
                continue
            text = "\n".join([*collected, line])
            return text if text.strip() else default

    def _say(self, text: str) -> None:
        if self._prompt is not None:
            self._prompt.write(text)
            self._prompt.flush()

    def _pump(self, loop: asyncio.AbstractEventLoop) -> None:
        while True:
            self._asked.acquire()
            try:
                line = self._lines.readline()
            except (OSError, ValueError):
                line = ""
            try:
                loop.call_soon_threadsafe(self._queue.put_nowait, line.rstrip("\r\n") if line else None)
            except RuntimeError:
                return  # the loop has ended
