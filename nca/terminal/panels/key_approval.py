"""Ask for approval of a tool call, answered with one key."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from prompt_toolkit.key_binding import KeyPress
from prompt_toolkit.keys import Keys
from rich.text import Text

from nca.agent.approvals import Answer
from nca.events import ApprovalAsked
from nca.terminal.input.key_questions import ENTER, KeyQuestion, Offered
from nca.terminal.panels.approval_panel import ApprovalPanel, rule_of
from nca.terminal.panels.key_question import ask_by_key, edited, keys_line
from nca.terminal.render.humanize import counted
from nca.terminal.render.sanitize import one_line

if TYPE_CHECKING:
    from nca.terminal.input.prompt import Prompt
    from nca.terminal.interrupts import Interrupts
    from nca.terminal.render.draw import Draw

_MOST_REASON_CHARS = 400


async def approve_by_key(asked: ApprovalAsked, draw: Draw, prompt: Prompt, interrupts: Interrupts) -> Answer:
    """Ask about a call while the turn waits. Escape, Ctrl-C and the end of the input interrupt the turn."""
    panel = ApprovalPanel(asked)
    question = ApprovalKeys(
        rule=rule_of(asked) if asked.subject else "",
        show_more=lambda: draw.show(panel.more()),
        lines_left=lambda: panel.lines_left,
        stop=interrupts.stop_work,
    )
    return await ask_by_key(question, draw, prompt, show=lambda: draw.show(panel.first()))


class ApprovalKeys(KeyQuestion[Answer]):
    """The keys that answer: y, s, a, n; m shows more. After n the person may type a reason, up to Enter.

    `a` holds for good, so it needs Enter; so does an answer to what was not shown whole.

    rule        what s and a allow; "": they are no answers
    show_more   shows the next part of the call
    lines_left  how many lines of the call were not shown yet
    stop        stops the turn, for Escape and the end of the input
    """

    heading = "Allow it?"
    escape = "no, and stop"

    def __init__(
        self,
        *,
        rule: str = "",
        show_more: Callable[[], None] = lambda: None,
        lines_left: Callable[[], int] = lambda: 0,
        stop: Callable[[], None] = lambda: None,
    ) -> None:
        self._rule = one_line(rule, 160)
        self._show_more = show_more
        self._lines_left = lines_left
        self._stop = stop
        self._chosen: Answer | None = None
        self._first = ""
        """The letter that was pressed last, if another key may go on with it: a choice, or m."""
        self._reason = ""

    def take(self, key: KeyPress | None) -> Answer | None:
        if key is None or key.key == Keys.Escape:
            self._stop()
            return None
        if self.is_typed:
            return self._take_reason(key)
        chosen = self._chosen
        self.take_back()
        if key.key == Keys.ControlM:
            return chosen
        match letter := str(key.key).lower():
            case "y":
                return self._take_choice(letter, Answer("once"))
            case "s" if self._rule:
                return self._take_choice(letter, Answer("session"))
            case "a" if self._rule:
                return self._take_choice(letter, Answer("always"))
            case "m":
                self._first = letter
                if self._lines_left():
                    self._show_more()
            case "n":
                self.is_typed = True
        return None

    def take_back(self) -> str:
        first, self._first, self._chosen = self._first, "", None
        return first

    def offered(self) -> Offered:
        keys = "yn" + ("sa" if self._rule else "") + ("m" if self._lines_left() else "")
        return Offered(keys, ENTER if self._chosen is not None else self._first)

    def _take_choice(self, letter: str, answer: Answer) -> Answer | None:
        if answer.choice != "always" and not self._lines_left():
            return answer
        self._first, self._chosen = letter, answer
        return None

    def line(self) -> Text:
        if self.is_typed:
            return Text(f"No. Reason for the model (Enter sends it): {one_line(self._reason)}▏", style="notice")
        left = self._lines_left()
        about = {"once": "once", "session": f"this session: {self._rule}", "always": f"always here: {self._rule}"}
        keys = [("m", f"shows more ({counted(left, 'line')} left)")] if left else []
        if self._chosen is not None:
            unseen = ", with what was not shown" if left else ""
            keys = [("Enter", about[self._chosen.choice] + unseen), *keys]
        elif self._rule:
            keys += [("y", about["once"]), ("s", about["session"]), ("a", "always here")]
        else:
            keys += [("y", about["once"])]
        return keys_line([*keys, ("n", "no"), ("Esc", self.escape)], Text(self.heading, style="notice"))

    def _take_reason(self, key: KeyPress) -> Answer | None:
        if key.key in (Keys.ControlM, Keys.ControlJ):
            return Answer("deny", " ".join(self._reason.split()))
        self._reason = edited(self._reason, key, _MOST_REASON_CHARS)
        return None
