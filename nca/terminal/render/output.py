"""The interface of an output: `Draw` implements it for a screen, `PlainDraw` for plain lines. Both keep what the log
does not have of a call (diff, duration, summary), for `/show`.

An output notifies a person who is looking elsewhere: by the bell, and on the screen of terminals that support it. Only
fixed text is sent. Sources: OSC 9 of iTerm2 and ConEmu, OSC 777 of rxvt, OSC 99 of kitty.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from itertools import islice
from typing import TYPE_CHECKING, Protocol

import msgspec

from nca.events import ApprovalAsked, ApprovalGiven, Event, ToolFinished, TurnFinished, TurnStarted
from nca.humanize import counted

if TYPE_CHECKING:
    from rich.console import RenderableType

    from nca.agent.context_notices import Exchange
    from nca.config.schema import TerminalSettings


MOST_CALLS = 200
MOST_CHARS = 4_000_000
"""The most text of all diffs together; the oldest are dropped first."""


ANSWER_LINES = 30
"""Lines shown of the last answer of a session that is resumed: its last ones."""


def lines_above(count: int, said: Exchange) -> str:
    """The note about the lines of an answer that are not shown."""
    return f"… {counted(count, 'line')} above (/context show {said.seq} has all of it)"


class RecentCalls:
    """Collects the calls that finish."""

    def __init__(self) -> None:
        self._finished: deque[ToolFinished] = deque()
        self._chars = 0

    def on_event(self, event: Event) -> None:
        if not isinstance(event, ToolFinished):
            return
        self._finished.append(msgspec.structs.replace(event, printed=""))
        self._chars += len(event.diff)
        while len(self._finished) > MOST_CALLS or (self._chars > MOST_CHARS and len(self._finished) > 1):
            self._chars -= len(self._finished.popleft().diff)

    def of(self, call_id: str, *, later: int = 0) -> ToolFinished | None:
        """How a call finished; None if it is from an earlier chat or too old.

        Some providers reuse ids: `later` is the number of newer calls with the same id.
        """
        same = (event for event in reversed(self._finished) if event.call_id == call_id)
        return next(islice(same, later, None), None)


class Output(Protocol):
    """Strings are untrusted text and are made safe. Renderables must be safe already."""

    recent: RecentCalls

    def apply(self, settings: TerminalSettings) -> None:
        """Use these settings from now on."""

    def send_codes(self, codes: str) -> bool:
        """Send escape codes that draw nothing and hold no untrusted text. False if there is no terminal."""

    @property
    def failure(self) -> Exception | None:
        """The error of the write that failed, after which nothing more is shown; None while the output works."""

    def on_event(self, event: Event) -> None:
        """Show an event of the conversation."""

    def show(self, answer: RenderableType | str) -> None:
        """Show the answer to a command."""

    def title(self, text: str) -> None:
        """Show the line that begins the chat, in bold."""

    def notice(self, text: str) -> None:
        """Show information, in grey."""

    def warn(self, text: str) -> None:
        """Show something to act on, in yellow."""

    def card(self, lines: Sequence[str]) -> None:
        """Show a few short lines that belong to the last output, in grey, each on one row."""

    def exchange(self, said: Exchange, most_lines: int = ANSWER_LINES) -> None:
        """Show the last exchange of a resumed session, or another one: of a long answer the end."""

    def error(self, message: str, advice: str = "") -> None:
        """Show an error in red, and what to do about it."""

    def clear(self) -> None:
        """Clear the screen, if there is one."""

    def status(self, text: str) -> None:
        """Name the current work, in place of the label; within `at_work`."""

    def at_work(self, label: str) -> AbstractAsyncContextManager[None]:
        """Show that work is going on while the context is entered; `label` names it."""


BELL = "\a"
DONE = "nca has answered"
WAITS = "nca needs your approval"


def codes(message: str, environment: Mapping[str, str]) -> str:
    """The bell, and the notification that this terminal is known to support."""
    if "TMUX" in environment or "STY" in environment:
        return BELL  # multiplexers swallow other sequences and show the bell in their own way
    program, term = environment.get("TERM_PROGRAM", ""), environment.get("TERM", "")
    if "KITTY_WINDOW_ID" in environment or term == "xterm-kitty":
        return f"{BELL}\x1b]99;;{message}\x1b\\"
    if program in ("iTerm.app", "ghostty", "WezTerm"):
        return f"{BELL}\x1b]9;{message}\x1b\\"
    if term.startswith(("foot", "rxvt-unicode")):
        return f"{BELL}\x1b]777;notify;nca;{message}\x1b\\"
    return BELL


class Notifier:
    """Calls `ring` with a message after long work. `after_seconds` is terminal.notify_seconds; 0 is never."""

    def __init__(
        self, ring: Callable[[str], None], after_seconds: float = 0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.after_seconds = after_seconds
        self._ring = ring
        self._clock = clock
        self._since = clock()
        """When the person last had a reason to look."""
        self._is_asking = False

    def on_event(self, event: Event) -> None:
        match event:
            case TurnStarted():
                self._since, self._is_asking = self._clock(), False
            case ApprovalAsked():
                self._is_asking = True
                self.look()
            case ApprovalGiven():
                # The person just answered, so the time counts from here.
                self._since, self._is_asking = self._clock(), False
            case TurnFinished() if event.reason != "interrupted":
                self._is_asking = False
                self._notify(DONE)
            case _:
                pass

    def look(self) -> None:
        """To be called regularly: notifies once about a question that has waited long or follows long work."""
        if self._is_asking and self._notify(WAITS):
            self._is_asking = False

    def _notify(self, message: str) -> bool:
        is_long = self.after_seconds > 0 and self._clock() - self._since >= self.after_seconds
        if is_long:
            self._ring(message)
        return is_long
