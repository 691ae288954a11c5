"""Choose and open what a chat draws on and reads from: a screen with a prompt, or plain lines."""

from __future__ import annotations

import os
import select
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from nca.config.schema import TerminalSettings
    from nca.terminal.input.first_prompt import FirstPrompt
    from nca.terminal.interrupts import Interrupts
    from nca.terminal.reader import Reader
    from nca.terminal.render.output import Output

_INCAPABLE = frozenset({"", "dumb", "unknown"})
"""Values of TERM for terminals that understand no escape codes."""


def has_screen(settings: TerminalSettings, *streams: TextIO | None) -> bool:
    """Whether nca draws on a screen: a person is at a terminal, and wants more than lines.

    streams  what has to be a terminal; by default input and output
    """
    needed = streams or (sys.stdin, sys.stdout)
    is_terminal = all(one is not None and one.isatty() for one in needed)
    return is_terminal and not settings.plain and os.environ.get("TERM", "").lower() not in _INCAPABLE


def has_typed_line() -> bool:
    """Whether a line was typed that nobody has read. One without its Enter does not count."""
    try:
        return sys.stdin.isatty() and bool(select.select([sys.stdin], [], [], 0)[0])
    except (OSError, ValueError, AttributeError):
        return False


def open_terminal(
    settings: TerminalSettings, prompt: FirstPrompt | None, interrupts: Interrupts
) -> tuple[Output, Reader]:
    """`prompt`: None for line mode, which does without prompt_toolkit."""
    if prompt is None:
        from nca.terminal.reader import LineReader
        from nca.terminal.render.plain import PlainDraw

        plain = PlainDraw(sys.stdout, sys.stderr, os.environ)
        plain.apply(settings)
        return plain, LineReader(sys.stdin, plain, interrupts)
    from nca.terminal.prompt_reader import PromptReader
    from nca.terminal.render.draw import Draw
    from nca.terminal.render.screen import Screen

    draw = Draw(Screen(sys.stdout), prompt.prompt)
    draw.apply(settings)
    return draw, PromptReader(prompt, draw, interrupts)


_READERS = frozenset({"orca", "brltty", "espeakup", "fenrir", "speechd-up", "yasr"})
_MAC_READER = "VoiceOver"
_PGREP = "/usr/bin/pgrep"
_SECONDS = 2.0


def running_screen_reader() -> str:
    """Its name; "" if none is found. It looks at the names of all processes: call it in a thread."""
    if sys.platform == "darwin":
        # Imported here: the chat opens its terminal without it.
        import subprocess

        with suppress(OSError, subprocess.TimeoutExpired):
            command = [_PGREP, "-x", _MAC_READER]
            found = subprocess.run(command, capture_output=True, timeout=_SECONDS, check=False)  # noqa: S603  fixed words
            return _MAC_READER if found.returncode == 0 else ""
        return ""
    for file in Path("/proc").glob("[0-9]*/comm"):
        # A process may have ended meanwhile.
        with suppress(OSError):
            if (name := file.read_text("utf-8", "replace").strip()) in _READERS:
                return name
    return ""


def plain_offer(reader: str) -> str:
    return (
        f"{reader} is running: nca loop --plain writes plain lines for screen readers. "
        "nca config set terminal.plain true keeps it, false ends this notice."
    )
