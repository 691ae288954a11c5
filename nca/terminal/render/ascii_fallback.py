"""ASCII in place of symbols that a terminal's encoding lacks: `>` for `›`, not `?`. The width stays the same."""

from __future__ import annotations

import codecs
import contextlib
import io
from typing import TextIO

ERROR_HANDLER = "nca.ascii_fallback"
"""For `errors=` of a stream or of str.encode."""

_SYMBOLS = dict(
    zip(
        "›‹•●○▼·…–—−‘’“”→←↑↓×✗⏎↵▏█▓░⟨⟩²⇥␠␍↪↩",
        "><**ov-.---''\"\"><^vxx|||#=.<>2>_$><",
        strict=True,
    )
)


def replace_unencodable(*streams: TextIO | None) -> None:
    """Make these streams write symbols they cannot encode in ASCII. Otherwise they would raise or write `?`."""
    for stream in streams:
        if isinstance(stream, io.TextIOWrapper) and not is_utf8(stream.encoding):
            with contextlib.suppress(OSError, ValueError):
                stream.reconfigure(errors=ERROR_HANDLER)


def encodable(text: str, encoding: str) -> str:
    """The text with the symbols that `encoding` lacks in ASCII."""
    return text.encode(encoding, ERROR_HANDLER).decode(encoding, "replace")


def is_utf8(encoding: str | None) -> bool:
    return (encoding or "").lower().replace("_", "-") in ("utf-8", "utf8")


def _handle(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(map(_ascii, error.object[error.start : error.end])), error.end


def _ascii(character: str) -> str:
    if known := _SYMBOLS.get(character):
        return known
    match ord(character):
        case 0x2500 | 0x2501 | 0x2550:
            return "-"
        case 0x2502 | 0x2503 | 0x250A | 0x2551:
            return "|"
        case code if 0x2500 <= code <= 0x257F:  # corners and crossings
            return "+"
        case code if 0x2800 <= code <= 0x28FF:  # a spinner of dots
            return "*"
        case _:
            return "?"


codecs.register_error(ERROR_HANDLER, _handle)
