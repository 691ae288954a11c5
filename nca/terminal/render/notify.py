"""Tells a person who looks elsewhere that nca is done or waits: a bell, and a notification where the terminal has them.

What is sent is fixed text, never anyone's words. Sources: iTerm2's and ConEmu's OSC 9, rxvt's OSC 777, kitty's OSC 99.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from nca.events import ApprovalAsked, ApprovalGiven, Event, TurnFinished, TurnStarted

BELL = "\a"
DONE = "nca has answered"
WAITS = "nca waits for your word"


def codes(message: str, environment: Mapping[str, str]) -> str:
    """The bell, and behind it the notification that this terminal is known to take."""
    if "TMUX" in environment or "STY" in environment:
        return BELL  # they keep other sequences to themselves, and show the bell in their own way
    program, term = environment.get("TERM_PROGRAM", ""), environment.get("TERM", "")
    if "KITTY_WINDOW_ID" in environment or term == "xterm-kitty":
        return f"{BELL}\x1b]99;;{message}\x1b\\"
    if program in ("iTerm.app", "ghostty", "WezTerm"):
        return f"{BELL}\x1b]9;{message}\x1b\\"
    if term.startswith(("foot", "rxvt-unicode")):
        return f"{BELL}\x1b]777;notify;nca;{message}\x1b\\"
    return BELL


class Notifier:
    """Listens to a conversation. `ring` takes what to tell; `after_seconds` is terminal.notify_seconds, 0 for never."""

    def __init__(
        self, ring: Callable[[str], None], after_seconds: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._after_seconds = after_seconds
        self._ring = ring
        self._clock = clock
        self._since = clock()
        """Since when nobody has had a reason to look."""
        self._is_asking = False

    def notify_after(self, seconds: float) -> None:
        """From now on; 0 for never."""
        self._after_seconds = seconds

    def on_event(self, event: Event) -> None:
        match event:
            case TurnStarted():
                self._since, self._is_asking = self._clock(), False
            case ApprovalAsked():
                self._is_asking = True
                self.look()
            case ApprovalGiven():
                # Who answers is there; long is what takes long from here on.
                self._since, self._is_asking = self._clock(), False
            case TurnFinished() if event.reason != "interrupted":
                self._is_asking = False
                self._tell(DONE)
            case _:
                pass

    def look(self) -> None:
        """From time to time: a question that waits for long, or comes after long work, is told of, once."""
        if self._is_asking and self._tell(WAITS):
            self._is_asking = False

    def _tell(self, message: str) -> bool:
        is_long = self._after_seconds > 0 and self._clock() - self._since >= self._after_seconds
        if is_long:
            self._ring(message)
        return is_long
