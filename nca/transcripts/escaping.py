"""Make stored text safe in exported files: no control character gets in, so they are safe to `cat` and to open."""

from __future__ import annotations

import html
import re

from nca.messages import clean_text
from nca.visible import HIDING

_CONTROLS = re.compile(f"\r\n?|[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f{HIDING}]")
_CONTROL_PICTURES = 0x2400
"""The first of Unicode's pictures of control characters (U+2400, for NUL)."""


def visible(text: str) -> str:
    """The text with control characters, and those that reorder or hide text, made visible. Newlines and tabs stay."""
    return _CONTROLS.sub(_picture, clean_text(text))


def html_escaped(text: str) -> str:
    """`visible` text, escaped for HTML content and quoted attributes."""
    return html.escape(visible(text), quote=True)


def _picture(found: re.Match[str]) -> str:
    char = found[0]
    if char == "\r\n":
        return "\n"
    if char < " ":
        return chr(_CONTROL_PICTURES + ord(char))
    return "␡" if char == "\x7f" else f"<U+{ord(char):04X}>"
