"""Choose and open the output: a screen, or plain lines."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from nca.config.schema import TerminalSettings

if TYPE_CHECKING:
    from nca.terminal.render.draw import Draw, TypedAhead
    from nca.terminal.render.plain import PlainDraw

_INCAPABLE = frozenset({"", "dumb", "unknown"})


def is_capable(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether a person sits at a terminal that understands escape codes, for input and output."""
    if sys.stdin is None or sys.stdout is None or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return False
    return sys.platform == "win32" or environment.get("TERM", "").lower() not in _INCAPABLE


def has_screen(settings: TerminalSettings, environment: Mapping[str, str] = os.environ) -> bool:
    """Whether nca draws; else it writes lines."""
    return not settings.plain and is_capable(environment)


def open_draw(settings: TerminalSettings, typed_ahead: TypedAhead) -> Draw:
    """The listener for a screen."""
    from nca.terminal.render.draw import Draw
    from nca.terminal.render.screen import Screen

    draw = Draw(Screen(sys.stdout), typed_ahead)
    draw.apply(settings)
    return draw


def open_plain(settings: TerminalSettings, environment: Mapping[str, str] = os.environ) -> PlainDraw:
    """The listener for lines on standard output and standard error."""
    from nca.terminal.render.plain import PlainDraw

    draw = PlainDraw(sys.stdout, sys.stderr, environment)
    draw.apply(settings)
    return draw
