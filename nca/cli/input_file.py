"""Read a file, or standard input for `-`."""

from __future__ import annotations

import sys
from pathlib import Path

from nca.errors import UsageError


def read_input(file: str) -> tuple[bytes, str]:
    """The content, and the name of its source for messages. Raises UsageError if the file cannot be read."""
    if file == "-":
        return sys.stdin.buffer.read(), "standard input"
    try:
        return Path(file).read_bytes(), file
    except OSError as error:
        raise UsageError(f"{file}: cannot be read ({error.strerror or error}).") from error
