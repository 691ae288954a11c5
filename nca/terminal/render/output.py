"""The interface of an output: `Draw` implements it for a screen, `PlainDraw` for plain lines."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from rich.console import RenderableType

    from nca.config.schema import TerminalSettings
    from nca.events import Event
    from nca.terminal.render.recent_calls import RecentCalls


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
        """Show a few short lines that belong to what was shown last, in grey, each on one row."""

    def error(self, message: str, advice: str = "") -> None:
        """Show an error in red, and what to do about it."""

    def clear(self) -> None:
        """Clear the screen, if there is one."""

    def status(self, text: str) -> None:
        """Say what is at work now, in place of the label; within `at_work`."""

    def at_work(self, label: str) -> AbstractAsyncContextManager[None]:
        """Show that work is going on while the context is entered; `label` names it."""
