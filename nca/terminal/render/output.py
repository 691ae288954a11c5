"""What the loop and the slash commands need of a screen; `Draw` and `PlainDraw` are the two there are."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from rich.console import RenderableType

    from nca.config.schema import TerminalSettings
    from nca.events import Event
    from nca.terminal.render.recent_calls import RecentCalls


class Output(Protocol):
    """Strings handed in are foreign text and are made safe; renderables are safe already."""

    recent: RecentCalls

    def apply(self, settings: TerminalSettings) -> None:
        """The settings as they are from now on."""

    def send_codes(self, codes: str) -> bool:
        """Escape codes that move nothing on the screen, without foreign text in them; False where no terminal is."""

    @property
    def failure(self) -> OSError | None:
        """Why the output is gone, where that is known."""

    @property
    def is_gone(self) -> bool:
        """Nobody can see the output any more: the terminal or the pipe was closed."""

    def on_event(self, event: Event) -> None:
        """The listener of a Conversation."""

    def show(self, answer: RenderableType | str) -> None:
        """The answer to a command."""

    def notice(self, text: str) -> None:
        """Something to know, in grey."""

    def warn(self, text: str) -> None:
        """Something to act on, in yellow."""

    def error(self, message: str, advice: str = "") -> None:
        """One red line, and what to do."""

    def clear(self) -> None:
        """An empty screen, where there is one."""

    def at_work(self, label: str) -> AbstractAsyncContextManager[None]:
        """While it lasts, the person sees that something is going on; `label` says what."""
