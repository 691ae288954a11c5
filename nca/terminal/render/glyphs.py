"""Signs that a terminal's encoding cannot carry, in ASCII: `›` is `>`, and not `?`.

A codec error handler, so that whatever is written to a stream comes out whole; each sign is one cell before and after.
"""

from __future__ import annotations

import codecs
import contextlib
import io
from typing import TextIO

HANDLER = "nca.glyphs"
"""For `errors=` of a stream or of str.encode."""

_SIGNS = dict(
    zip(
        "›‹•●▪·…–—−‘’“”→←↑↓×✗⏎↵▏█▓▒░▄▌▐▙▜▚▞⟨⟩²",
        "><***-.---''\"\"><^vxx|||#=+.u[]:;\\/<>2",
        strict=True,
    )
)


def _instead(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(map(_sign, error.object[error.start : error.end])), error.end


def _sign(character: str) -> str:
    if known := _SIGNS.get(character):
        return known
    match ord(character):
        case 0x2500 | 0x2501 | 0x2550:
            return "-"
        case 0x2502 | 0x2503 | 0x2551:
            return "|"
        case code if 0x2500 <= code <= 0x257F:  # corners and crossings
            return "+"
        case code if 0x2800 <= code <= 0x28FF:  # a spinner of dots
            return "*"
        case _:
            return "?"


codecs.register_error(HANDLER, _instead)


def carry(*streams: TextIO | None) -> None:
    """Have these streams write what they cannot carry in ASCII, where they would raise or write `?`."""
    for stream in streams:
        if isinstance(stream, io.TextIOWrapper) and not is_universal(stream.encoding):
            with contextlib.suppress(OSError, ValueError):
                stream.reconfigure(errors=HANDLER)


def carried(text: str, encoding: str) -> str:
    """The text as a stream of this encoding can carry it."""
    return text.encode(encoding, HANDLER).decode(encoding, "replace")


def is_universal(encoding: str | None) -> bool:
    """Whether it carries everything."""
    return (encoding or "").lower().replace("_", "-") in ("utf-8", "utf8")
