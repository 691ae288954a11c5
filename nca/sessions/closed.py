"""Tell whether a database file is as the last process left it. If it is not, its pages are checked before it is used.

Whatever writes into the file from outside, and most damage, changes its size or its time. What changes neither is met
on the way.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path


def mark_of(path: Path) -> Path:
    """The file that says how the database file was left."""
    return path.parent / "locks" / f"{path.name}.closed"


def mark(path: Path) -> None:
    """Remember the file as it is now. A mark that cannot be written costs one check."""
    with suppress(OSError):
        mark_of(path).write_text(_state(path), encoding="ascii")


def is_as_left(path: Path) -> bool:
    try:
        return mark_of(path).read_text(encoding="ascii") == _state(path)
    except (OSError, UnicodeDecodeError):
        return False


def _state(path: Path) -> str:
    status = path.stat()
    return f"{status.st_size} {status.st_mtime_ns}"
