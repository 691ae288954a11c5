"""The ladder of spec section 1: when compaction is due, and the notices, once for each crossing."""

from __future__ import annotations

from nca.agent.window import Window
from nca.context.budget import Measurement
from nca.errors import ContextDoesNotFit
from nca.events import ContextWarning, Listener


class Ladder:
    """Where a conversation stands on it. `rearm` once a compaction or another model has moved it."""

    def __init__(self, window: Window, emit: Listener) -> None:
        self._window = window
        self._emit = emit
        self.rearm()

    def rearm(self) -> None:
        """What is due is said anew."""
        self._warned = {"info": False, "warning": False}

    @property
    def is_automatic(self) -> bool:
        return self._window.context.auto != "off"

    def is_due(self, measured: Measurement) -> bool:
        used = measured.used_tokens
        if not measured.fits:
            return True
        if self._window.provider_compacts_at:
            return False
        return used >= self._window.budget.trigger_tokens(self._window.context) and used >= self._window.quiet_below

    def after_turn(self, *, is_preparing: bool = False) -> None:
        """The notices of the ladder, once for each crossing. `is_preparing`: a compaction is, in the background."""
        measured = self._window.measure()
        if self.is_due(measured):
            follows = (
                "A compaction is being prepared." if is_preparing else "Compaction follows before the next request."
            )
            self.warn(measured, follows)
        elif measured.usage_ratio > self._window.context.info_threshold:
            if not self._warned["info"]:
                self._warned["info"] = True
                self._send("info", measured, f"Context: {measured.usage_ratio:.0%} used")
            self._warned["warning"] = False
        else:
            self._warned = {"info": False, "warning": False}

    def warn(self, measured: Measurement, otherwise: str) -> None:
        if self._warned["warning"]:
            return
        self._warned["warning"] = True
        numbers = f"{measured.used_tokens:,} / {measured.budget.budget_tokens:,} tokens"
        self._send(
            "warning",
            measured,
            f"Context usage: {measured.usage_ratio:.0%} of budget ({numbers}). {self._doing(otherwise)}",
        )

    def does_not_fit(self, measured: Measurement) -> ContextDoesNotFit:
        how = "Make room with /compact or /context clear" if not self.is_automatic else "Shorten the input"
        return ContextDoesNotFit(
            f"The next request needs {measured.used_tokens:,} tokens; the budget is"
            f" {measured.budget.budget_tokens:,}. Nothing was sent.",
            advice=f"{how}, or use a model with a larger window.",
            used_tokens=measured.used_tokens,
            budget_tokens=measured.budget.budget_tokens,
        )

    def _send(self, level: str, measured: Measurement, message: str) -> None:
        self._emit(
            ContextWarning(
                level=level,  # type: ignore[arg-type]
                usage=measured.usage_ratio,
                used_tokens=measured.used_tokens,
                budget_tokens=measured.budget.budget_tokens,
                message=message,
            )
        )

    def _doing(self, otherwise: str) -> str:
        """What is being done about it: `otherwise`, where compaction happens by itself."""
        match self._window.context.auto:
            case "off":
                return "Auto-compaction is off; /compact makes room."
            case "preview":
                return "Auto-compaction only says what it would do (context.auto = preview); /compact makes room."
            case _:
                return otherwise
