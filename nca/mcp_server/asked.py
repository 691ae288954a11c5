"""What a call asks for: which messages, since when, in which folder."""

from __future__ import annotations

import re
import time
from datetime import datetime
from pathlib import Path

from nca.tools.tool import ToolError

_SECONDS = {"h": 3_600, "d": 86_400, "w": 7 * 86_400}
_AGE = re.compile(r"(\d{1,5})\s*([hdw])")
_MESSAGES = re.compile(r"\[?([0-9A-Za-z][^\s:\[\]]{0,99}):#?(\d{1,9})(?:\s*[-–]\s*(\d{1,9}))?\]?")
_SHOWN_CHARS = 60


def since_of(text: str) -> float:
    """Seconds since the epoch for a date (2026-03-01), a time (2026-03-01T14:00) or an age (12h, 7d, 2w); 0 for "".

    Raises ToolError.
    """
    asked = text.strip()
    if not asked:
        return 0.0
    if age := _AGE.fullmatch(asked.lower()):
        return max(1.0, time.time() - int(age[1]) * _SECONDS[age[2]])
    try:
        return max(1.0, datetime.fromisoformat(asked).timestamp())
    except (ValueError, OverflowError, OSError):
        raise ToolError(
            f"since is a date such as 2026-03-01 or an age such as 12h, 7d or 2w, not {asked[:_SHOWN_CHARS]!r}"
        ) from None


def folder_of(text: str) -> str:
    """A folder as sessions name it: absolute, with `~` written out; "" for "". Raises ToolError."""
    asked = text.strip()
    if not asked:
        return ""
    try:
        folder = Path(asked).expanduser()
    except RuntimeError:
        folder = Path(asked)
    if not folder.is_absolute() or "\0" in asked:
        raise ToolError(f"directory is an absolute path such as /home/me/project, not {asked[:_SHOWN_CHARS]!r}")
    return str(folder)


def messages_of(text: str) -> tuple[str, int, int]:
    """Session, first and last message of an id such as `1a2b3c4d:12` or `1a2b3c4d:12-15`. Raises ToolError."""
    match = _MESSAGES.fullmatch(text.strip())
    if match is None:
        raise ToolError(
            f"messages is an id from recall, such as 1a2b3c4d:12 or 1a2b3c4d:12-15, not {text.strip()[:_SHOWN_CHARS]!r}"
        )
    first = max(1, int(match[2]))
    return match[1], first, max(first, int(match[3] or first))
