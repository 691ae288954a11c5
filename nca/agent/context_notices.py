"""What a person is told about a context that fills, and the error where it does not fit."""

from __future__ import annotations

from nca.agent.window import Window
from nca.context.budget import Measurement
from nca.context.policy import NoticeLevel
from nca.context.view import Stub
from nca.errors import ContextDoesNotFit
from nca.events import ContextWarning
from nca.wire import content_text


def context_warning(window: Window, level: NoticeLevel, what_follows: str = "") -> ContextWarning:
    """The event of a notice. `what_follows`: what is done about it, where compaction happens by itself."""
    measured = window.measure()
    message = f"Context: {measured.usage_ratio:.0%} used"
    if level == "warning":
        numbers = f"{measured.used_tokens:,} / {measured.budget.budget_tokens:,} tokens"
        follows = {
            "on": what_follows,
            "off": "Auto-compaction is off; /compact makes room.",
            "preview": "Auto-compaction only says what it would do (context.auto = preview); /compact makes room.",
        }[window.context.auto]
        message = f"Context usage: {measured.usage_ratio:.0%} of budget ({numbers}). {follows}"
    return ContextWarning(
        level=level,
        usage=measured.usage_ratio,
        used_tokens=measured.used_tokens,
        budget_tokens=measured.budget.budget_tokens,
        message=message,
    )


def cut_newest_notice(window: Window, seq: int) -> str:
    """What a person is told whose newest message is cut in the view in force; "" where message `seq` is not."""
    stub = next((item for item in window.history.view.items if isinstance(item, Stub) and item.seq == seq), None)
    if stub is None:
        return ""
    whole = content_text(window.history.message(seq).content)
    seen = sum(bool(line.strip()) for line in stub.text.splitlines()) - 1
    lines = whole.count("\n") + 1
    shown = f"{seen:,} of its {lines:,} lines" if lines > seen else "a part of it"
    return f"Your message is larger than the window: the model sees {shown}; /context show {seq} has all."


def does_not_fit(measured: Measurement, auto: str) -> ContextDoesNotFit:
    """The error for a request that is larger than the budget. `auto` is the setting context.auto."""
    how = "Make room with /compact or /context clear" if auto == "off" else "Shorten the input"
    return ContextDoesNotFit(
        f"The next request needs {measured.used_tokens:,} tokens; the budget is"
        f" {measured.budget.budget_tokens:,}. Nothing was sent.",
        advice=f"{how}, or use a model with a larger window.",
        used_tokens=measured.used_tokens,
        budget_tokens=measured.budget.budget_tokens,
    )
