"""Open ordinary files only: a pipe would wait for its writer, and a device may do anything."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO, Literal

from nca.atomic_write import PRIVATE

_BUFFER_BYTES = 64 * 1024
"""Logs of other agents have lines of many kilobytes; with the default, each would be read in several pieces."""


def open_ordinary(path: Path, mode: Literal["rb", "ab"] = "rb", *, follows_links: bool = True) -> BinaryIO:
    """Open a file to read it, or to append to it; for `ab`, a missing one is created for its owner only.

    Raises OSError, also for anything that is no ordinary file, and ValueError for what is no path.
    """
    flags = os.O_RDONLY if mode == "rb" else os.O_WRONLY | os.O_CREAT | os.O_APPEND
    for flag in ("O_NONBLOCK", "O_CLOEXEC", "O_BINARY", *(() if follows_links else ("O_NOFOLLOW",))):
        flags |= getattr(os, flag, 0)
    handle = os.open(path, flags, PRIVATE)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "not an ordinary file")
    return os.fdopen(handle, mode, _BUFFER_BYTES)
