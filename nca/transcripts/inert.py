"""Foreign text in a file for people: no control character gets into it, so it is safe to `cat` and to open."""

from __future__ import annotations

import html
import re

from nca.messages import clean_text

_CONTROLS = re.compile("\r\n?|[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_PICTURES = 0x2400
"""Unicode's pictures of the control characters begin here."""


def visible(text: str) -> str:
    """The text with every control and bidirectional override made visible; newlines and tabs stay."""
    return _CONTROLS.sub(_picture, clean_text(text))


def escaped(text: str) -> str:
    """`visible`, as HTML text or as a quoted attribute."""
    return html.escape(visible(text), quote=True)


def _picture(found: re.Match[str]) -> str:
    char = found[0]
    if char == "\r\n":
        return "\n"
    if char < " ":
        return chr(_PICTURES + ord(char))
    return "␡" if char == "\x7f" else f"<U+{ord(char):04X}>"
