"""Replace lone surrogates in text that comes from outside.

Not in `messages`, because the first prompt needs only this.
"""

from __future__ import annotations

import re

_LONE_SURROGATES = re.compile(r"[\ud800-\udfff]")


def clean_text(text: str) -> str:
    """Replace lone surrogates by U+FFFD; other text stays. Idempotent.

    A lone surrogate cannot be stored, printed or sent: UTF-8 has no encoding for it.
    """
    if text.isascii():
        return text
    return _LONE_SURROGATES.sub("\ufffd", text)
