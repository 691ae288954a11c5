"""Notify a person who is looking elsewhere: the bell, and a desktop notification on terminals that support one.

Only fixed text is sent. Sources: OSC 9 of iTerm2 and ConEmu, OSC 777 of rxvt, OSC 99 of kitty.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from nca.events import ApprovalAsked, ApprovalGiven, Event, TurnFinished, TurnStarted

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
        self._after_seconds = after_seconds
        self._ring = ring
        self._clock = clock
        self._since = clock()
        """When the person last had a reason to look."""
        self._is_asking = False

    def notify_after(self, seconds: float) -> None:
        self._after_seconds = seconds

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
        is_long = self._after_seconds > 0 and self._clock() - self._since >= self._after_seconds
        if is_long:
            self._ring(message)
        return is_long
