"""The files that belong to a database file, and their sizes."""

from __future__ import annotations

import os
from pathlib import Path


def unused(path: Path) -> Path:
    """`path`, or the first of path-2, path-3 … that does not exist."""
    candidate, number = path, 1
    while os.path.lexists(candidate):
        number += 1
        candidate = path.with_name(f"{path.name}-{number}")
    return candidate


def log_of(path: Path) -> Path:
    """The write-ahead log that belongs to a database file."""
    return path.with_name(path.name + "-wal")


def outputs_of(path: Path) -> Path:
    """The folder of complete tool outputs that belongs to a database file."""
    return path.parent / "outputs"


def archives_of(path: Path) -> Path:
    """The folder of archived sessions that belongs to a database file."""
    return path.parent / "archives"


def suspicion_of(path: Path) -> Path:
    """A flag file: a process met damage in the database, and no opening has set it aside since."""
    return path.parent / "locks" / f"{path.name}.suspect"


def size_of(path: Path) -> int:
    """In bytes; 0 if there is no file."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
