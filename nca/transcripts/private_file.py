"""Write a file atomically and readable by its owner only."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from nca.atomic_write import write_atomically
from nca.errors import NcaError, UsageError


def write_private(path: Path, data: bytes, *, overwrites: bool = False) -> None:
    """Write `path` in one step: an existing file stays intact until the new one is complete and synced.

    A conversation may hold secrets even after redaction, so only its owner can read it.

    Raises UsageError if the file exists and `overwrites` is False, NcaError if it cannot be written.
    """
    if os.path.lexists(path) and (not overwrites or path.is_dir()):
        advice = "" if path.is_dir() else "Name another file, or use --force."
        raise UsageError(f"{path} already exists; nothing was written", advice=advice)
    try:
        write_atomically(path, data)
    except ValueError as error:
        raise UsageError(f"{str(path)!r} is not a valid file name.") from error
    except OSError as error:
        reason = "the disk is full" if error.errno in (errno.ENOSPC, errno.EDQUOT) else error.strerror or str(error)
        raise NcaError(f"{path} cannot be written ({reason.lower()})") from error
