"""Ask for approval of a tool call, answered with one key."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prompt_toolkit.key_binding import KeyPress
from prompt_toolkit.keys import Keys
from rich.text import Text

from nca.agent.approvals import Answer
from nca.events import ApprovalAsked
from nca.terminal.panels.approval_panel import panel, rule_of
from nca.terminal.panels.key_question import ask_by_key, keys_line
from nca.terminal.render.sanitize import one_line

if TYPE_CHECKING:
    from nca.terminal.input.prompt import Prompt
    from nca.terminal.interrupts import Interrupts
    from nca.terminal.render.draw import Draw

_MOST_REASON_CHARS = 400


async def approve_by_key(asked: ApprovalAsked, draw: Draw, prompt: Prompt, interrupts: Interrupts) -> Answer:
    """Ask about a call while the turn waits. Escape, Ctrl-C and the end of the input interrupt the turn."""
    keys = ApprovalKeys(has_rule=bool(asked.subject), rule=rule_of(asked))

    def take(key: KeyPress | None) -> Answer | None:
        if key is None or key.key == Keys.Escape:
            interrupts.stop_work()
            return None
        return keys.take(key)

    return await ask_by_key(draw, prompt, show=lambda: draw.show(panel(asked)), line=keys.line, take=take)


class ApprovalKeys:
    """The keys that answer: y, s, a, n. After n the person may type a reason, up to Enter."""

    def __init__(self, *, has_rule: bool, rule: str = "") -> None:
        self._has_rule = has_rule
        self._rule = rule
        self._reason: str | None = None

    def take(self, key: KeyPress) -> Answer | None:
        """Take one key; returns the answer once it is complete. Other keys are ignored."""
        if self._reason is not None:
            return self._take_reason(key)
        match str(key.key).lower():
            case "y":
                return Answer("once")
            case "s" if self._has_rule:
                return Answer("session")
            case "a" if self._has_rule:
                return Answer("always")
            case "n":
                self._reason = ""
        return None

    def line(self) -> Text:
        """The keys that can be pressed now."""
        if self._reason is not None:
            return Text(f"No. Reason for the model (Enter sends it): {one_line(self._reason)}▏", style="notice")
        keys = [("y", "once")]
        if self._has_rule:
            keys += [("s", "for this session"), ("a", f"always here: {one_line(self._rule, 160)}")]
        keys += [("n", "no"), ("Esc", "no, and stop")]
        return keys_line(keys, Text("Allow it?", style="notice"))

    def _take_reason(self, key: KeyPress) -> Answer | None:
        reason = self._reason or ""
        match key.key:
            case Keys.ControlM | Keys.ControlJ:
                return Answer("deny", " ".join(reason.split()))
            case Keys.ControlH:
                self._reason = reason[:-1]
            case Keys.BracketedPaste:
                self._reason = (reason + key.data)[:_MOST_REASON_CHARS]
            case str() as character if not isinstance(character, Keys):
                self._reason = (reason + character)[:_MOST_REASON_CHARS]
        return None
