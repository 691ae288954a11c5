"""What a person is told about a context that fills, and the error where it does not fit."""

from __future__ import annotations

from nca.agent.window import Window
from nca.context.budget import Measurement
from nca.context.policy import NoticeLevel
from nca.errors import ContextDoesNotFit
from nca.events import ContextWarning


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
