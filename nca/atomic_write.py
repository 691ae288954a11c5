"""Write a file atomically: after a crash it has its old content or the new one, never a part of either."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

PRIVATE = 0o600
"""Readable by the user only."""


def write_atomically(path: Path, content: bytes, *, mode: int | None = PRIVATE) -> None:
    """Replace or create `path`; the content is on the disk on return. Raises OSError. `mode` as in `atomic_file`."""
    with atomic_file(path, mode=mode) as file:
        file.write(content)


@contextmanager
def atomic_file(path: Path, *, mode: int | None = PRIVATE) -> Iterator[BinaryIO]:
    """A new file that takes the place of `path` at the end of the block, when it is on the disk. Raises OSError.

    An exception in the block leaves `path` as it is.
    mode: permissions; None keeps those of the existing file, and uses the defaults for a new one.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    permissions = 0o666 if mode is None else mode
    # Python's own flags: on Windows they say that no line end is changed.
    file = open(temporary, "xb", opener=lambda name, flags: os.open(name, flags, permissions))  # noqa: SIM115
    try:
        with file:
            yield file
            if mode is None:
                with suppress(FileNotFoundError):
                    temporary.chmod(stat.S_IMODE(path.stat().st_mode))
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make a new or renamed entry of a folder durable, if the file system can."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
