"""Ask for approval of a tool call in line mode, answered with a typed line."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from nca.agent.approvals import Answer
from nca.events import ApprovalAsked
from nca.terminal.input.terminal_modes import forget_typed
from nca.terminal.panels.approval_panel import ApprovalPanel, rule_of
from nca.terminal.render.humanize import counted
from nca.terminal.render.sanitize import one_line

if TYPE_CHECKING:
    from nca.terminal.input.lines import InputLines
    from nca.terminal.render.output import Output

_ONCE = {"y": Answer("once"), "yes": Answer("once")}
_BY_RULE = {"s": Answer("session"), "session": Answer("session"), "a": Answer("always"), "always": Answer("always")}


async def approve_by_line(asked: ApprovalAsked, output: Output, lines: InputLines) -> Answer:
    """Ask about a call while the turn waits. The end of the input means no; what was not shown whole is asked twice.

    An empty line, and any other that is no answer, answers nothing: the valid answers are said again.
    """
    answers = {**_ONCE, **(_BY_RULE if asked.subject else {})}
    panel = ApprovalPanel(asked)
    output.show(panel.first())
    rules = f" s for this session, a always here (either allows {rule_of(asked)})," if asked.subject else ""
    chosen = ""
    await asyncio.to_thread(forget_typed)
    while True:
        left = panel.lines_left
        more = f" m shows more ({counted(left, 'line')} left)," if left else ""
        if chosen:
            output.show(f"Not all of it was shown. {chosen} again allows it all the same.")
        output.show(f"Allow it?{more} y once,{rules} n no (n REASON tells the model why). Ctrl-C stops the turn.")
        try:
            line = (await lines.next()).strip()
        except EOFError:
            return Answer("deny")
        word, _, reason = line.partition(" ")
        before, chosen = chosen, ""
        if line.lower() in answers:
            if not left or line == before:
                return answers[line.lower()]
            chosen = line
        if left and line.lower() in ("m", "more"):
            output.show(panel.more())
        if word.lower() in ("n", "no"):
            return Answer("deny", one_line(reason, 400))
