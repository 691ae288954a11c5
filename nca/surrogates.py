"""Text that everybody can read: what every boundary makes of what came from outside.

Apart from the messages, because it is all that the first prompt needs of them.
"""

from __future__ import annotations

import re

_LONE_SURROGATES = re.compile(r"[\ud800-\udfff]")


def clean_text(text: str) -> str:
    """Replace lone surrogates by U+FFFD; idempotent, other text untouched.

    A lone surrogate cannot be stored, printed or sent (reliability F49), so every boundary calls this.
    """
    if text.isascii():
        return text
    return _LONE_SURROGATES.sub("\ufffd", text)
