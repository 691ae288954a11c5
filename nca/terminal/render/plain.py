"""Plain output for pipes, dumb terminals and screen readers: lines of text without escape codes.

Answers of the model and of commands go to standard output, everything else to standard error. Each line says in words
what it is, nothing moves, and nothing is drawn twice. A program that reads a single turn gets its answer alone: the
text of its last step, once it is known to be that.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Literal, TextIO

from nca import events
from nca.errors import sentence
from nca.humanize import duration
from nca.terminal.render import event_lines
from nca.terminal.render.calls import RunningCalls
from nca.terminal.render.layout import WordWrap, without_dots, wrapped
from nca.terminal.render.output import ANSWER_LINES, BELL, Notifier, RecentCalls, lines_above
from nca.terminal.render.sanitize import StreamSanitizer, one_line, to_terminal
from nca.terminal.render.stream_writer import StreamWriter, is_broken_pipe, write_error_line

if TYPE_CHECKING:
    from rich.console import RenderableType

    from nca.agent.context_notices import Exchange
    from nca.config.schema import TerminalSettings
    from nca.terminal.render.draw import Draw

LEAST_COLUMNS = 20
"""A narrower terminal breaks the lines itself: a panel would have a letter a line there."""
SIGN_OF_LIFE_SECONDS = 15.0
"""How often a person at a terminal, who may not see it, is told that work continues."""


class PlainDraw:
    """Writes a conversation's events as lines. Never raises; after a failed write it is silent.

    is_chat  advice names commands of the chat, else those of the shell
    live     draws what goes on below the lines, on a screen that prints nothing; None: nothing moves
    """

    def __init__(
        self,
        answers: TextIO,
        asides: TextIO,
        environment: Mapping[str, str],
        *,
        is_chat: bool = True,
        live: Draw | None = None,
    ) -> None:
        self._is_chat = is_chat
        self._live = live
        self.session = ""
        """For advice to a shell: the id of the session, if it is kept."""
        self.recent = RecentCalls()
        self._show_reasoning = False
        self._label = ""
        self._is_terminal = answers.isatty()
        self._wrap = WordWrap(_columns()) if self._is_terminal else None
        self._wraps_asides = asides.isatty()
        self._notifier = Notifier(self._ring)
        self._answers = StreamWriter(answers)
        self._asides = StreamWriter(asides)
        self._environment = environment
        self._text = StreamSanitizer()
        self._reasoning = StreamSanitizer()
        self._is_line_open = False
        self._answered: Literal["", "open", "ended", "parted"] = ""
        """The turn's answer: being written, at its end, and with another one due, which is a paragraph of its own."""
        self._holds = not (is_chat or self._is_terminal)
        """The text of a step is kept until it ends: before a call or another step it is no answer."""
        self._held, self._step = list[str](), 0
        self._goes_on = False
        """Another request was sent for the answer with an open line: its reasoning does not part the text."""
        self._is_thought_open = False
        self._running = RunningCalls()
        self._written = ""
        """What the model is writing, if nothing of it can be shown."""
        self._notices = event_lines.Notices()
        self._asked: dict[str, events.ApprovalAsked] = {}
        """The calls that wait for an approval."""
        self._waited = 0.0

    @property
    def failure(self) -> Exception | None:
        return self._answers.failure

    def apply(self, settings: TerminalSettings) -> None:
        self._show_reasoning = settings.show_reasoning
        self._notifier.after_seconds = settings.notify_seconds

    def send_codes(self, codes: str) -> bool:
        return False

    def on_event(self, event: events.Event) -> None:
        self.recent.on_event(event)
        self._notifier.on_event(event)
        self._notices.note(event)
        self._written = event_lines.model_status(event) if isinstance(event, events.CallWritten) else ""
        match event:
            case events.TextDelta():
                self._answer(self._text.feed(event.text))
            case events.TurnStarted():
                self._answered = ""
            case events.RequestStarted():
                if event.step != self._step:
                    self._put_aside()
                self._step = event.step
                self._goes_on = self._is_line_open
                self._answered = "parted" if self._answered == "ended" else self._answered
            case events.ReasoningDelta() if self._show_reasoning and not self._goes_on:
                self._end_answer()
                self._is_thought_open = True
                self._write(self._asides, self._reasoning.feed(event.text))
            case events.ToolStarted():
                self._put_aside()
                if self._live is not None:
                    self._end_answer()
                self._running.begin(event)
            case events.ToolProgress():
                self._running.progress(event)
            case events.ToolFinished():
                self._on_tool_finished(event)
            case events.ApprovalAsked():
                self._put_aside()
                self._asked[event.call_id] = event
            case events.ApprovalGiven():
                asked, self._waited = self._asked.pop(event.call_id, None), 0.0
                if event.decision == "unanswered" and asked is not None:
                    self._aside(event_lines.unanswered_line(asked, is_chat=self._is_chat))
                elif event.decision == "stopped":
                    self._on_tool_finished(event_lines.not_made(event))
            case events.MessageTaken():
                self._aside(f"You: {event.text}")
            case events.ContextCompaction() if not event_lines.is_silent(event):
                self._aside(self._followed(event_lines.compaction_line(event)))
                self.card(event.card if self._is_terminal else ())
            case events.ErrorRaised():
                said = event_lines.error_line(event) if self._is_chat else (sentence(event.message), event.advice)
                self.error(said[0], self._followed(said[1]))
            case events.TurnFinished():
                self._end_answer()
                self._write(self._answers, self._taken())
        is_needed = self._is_chat or self._wraps_asides or not (isinstance(event, events.Notice) and event.is_usual)
        if is_needed and (line := self._notices.line(event)):
            self._aside(self._followed(line[0]))
        if self._live is not None:
            self._live.screen.is_line_open = self._is_thought_open or (self._is_line_open and self._is_terminal)
            if isinstance(event, events.TextDelta):
                self._live.status("Writing the answer")
            elif not isinstance(event, events.ReasoningDelta):
                self._live.on_event(event)

    def _followed(self, text: str) -> str:
        """The text with what can be typed here."""
        return text if self._is_chat else event_lines.in_shell(text, self.session)

    def _on_tool_finished(self, event: events.ToolFinished) -> None:
        self._end_answer()
        label, started = "Tool failed" if event.is_error else "Tool", self._running.end(event.call_id)
        self._aside(f"{label}: {event_lines.tool_finished_line(started, event, in_words=True)}")

    def show(self, answer: RenderableType | str) -> None:
        self._end_answer()
        if isinstance(answer, str):
            text = to_terminal(answer).rstrip("\n")
            self._write(self._answers, (wrapped(text, _columns()) if self._is_terminal else text) + "\n")
            return
        from nca.terminal.render.theme import plain_console

        size = {"COLUMNS": str(_columns())} if self._is_terminal else {}
        console = plain_console({**self._environment, **size})
        with console.capture() as captured:
            console.print(answer)
        lines = [line.rstrip() for line in captured.get().rstrip("\n").split("\n")]
        self._write(self._answers, "\n".join(lines) + "\n")

    def notice(self, text: str) -> None:
        self._aside(text)

    title = warn = notice

    def card(self, lines: Sequence[str]) -> None:
        for line in lines:
            self._aside(line)

    def exchange(self, said: Exchange, most_lines: int = ANSWER_LINES) -> None:
        if not self._is_terminal:
            # The reader of a pipe waits for the answers to its messages.
            return
        if said.asked:
            self._aside(f"You: {said.asked}")
        if not said.answer.strip():
            return
        lines = said.answer.strip().split("\n")
        if (above := len(lines) - most_lines) > 0:
            self._aside(lines_above(above, said))
        self.show("\n".join(lines[-most_lines:]))

    def error(self, message: str, advice: str = "") -> None:
        self._aside(message)
        if advice:
            self._aside(advice)

    def clear(self) -> None:
        """Nothing to do: there is no screen."""

    def status(self, text: str) -> None:
        self._label = text

    @asynccontextmanager
    async def at_work(self, label: str) -> AsyncIterator[None]:
        if self._live is not None:
            async with self._live.at_work(label):
                yield
            return
        self._label = label
        is_watched = self._is_terminal if self._is_chat else self._wraps_asides
        signs = asyncio.create_task(self._signs_of_life()) if is_watched else None
        try:
            yield
        finally:
            if signs is not None:
                signs.cancel()
            self._end_answer()
            self._running, self._asked = RunningCalls(), {}

    async def _signs_of_life(self) -> None:
        self._waited = 0.0
        while True:
            await asyncio.sleep(SIGN_OF_LIFE_SECONDS)
            self._waited += SIGN_OF_LIFE_SECONDS
            if not self._is_line_open and not self._asked:
                what = self._running.line() or self._written or self._label or "busy"
                self._aside(f"Still working after {duration(self._waited)}: {what}. Ctrl-C stops it.")
            self._notifier.look()

    def _ring(self, message: str) -> None:
        if self._is_terminal:
            self._write(self._answers, BELL)

    def _answer(self, text: str) -> None:
        if not text:
            return
        self._end_thought()
        if self._holds:
            self._held.append(text)
            self._answers.look()
            return
        if self._answered == "parted" and not (self._is_terminal and self._wraps_asides):
            text = "\n" + text
        self._answered, self._goes_on = "open", False
        self._is_line_open = not text.endswith("\n")
        if self._wrap is not None:
            self._wrap.columns = _columns()
            text = self._wrap.feed(text)
        self._write(self._answers, text)

    def _taken(self) -> str:
        """What is held, as whole lines."""
        text = "".join(self._held)
        self._held.clear()
        return text + "\n" * (bool(text) and not text.endswith("\n"))

    def _put_aside(self) -> None:
        """What the model said before a call or another step is no answer."""
        if self._holds:
            self._end_answer()
            text = self._taken()
            self._write(self._asides, wrapped(text, _columns()) if self._wraps_asides else text)

    def _aside(self, text: str) -> None:
        self._end_answer()
        line = one_line(text, event_lines.ERROR_CHARS)
        self._write(self._asides, (without_dots(wrapped(line, _columns())) if self._wraps_asides else line) + "\n")

    def _end_answer(self) -> None:
        """End the lines that are open on either stream."""
        self._answer(self._text.finish())
        if self._wrap is not None:
            self._write(self._answers, self._wrap.finish())
        if self._is_line_open:
            self._is_line_open = False
            self._write(self._answers, "\n")
        self._answered = "ended" if self._answered == "open" else self._answered
        self._end_thought()

    def _end_thought(self) -> None:
        if self._is_thought_open:
            self._is_thought_open = False
            self._write(self._asides, self._reasoning.finish() + "\n")

    def _write(self, writer: StreamWriter, text: str) -> None:
        if self._live is not None and text:
            self._live.screen.clear_tail()
        error = writer.write(text)
        if error is not None and writer is self._answers and not is_broken_pipe(error):
            self._aside(write_error_line(error))


def _columns() -> int:
    return max(LEAST_COLUMNS, shutil.get_terminal_size().columns)
