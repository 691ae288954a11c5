"""The folder that tools may touch: names become paths inside it, or a refusal that says why.

A link is followed and then judged by where it leads, so neither `..`, nor an absolute path, nor a link inside the
project reaches a file outside. Opening refuses what is not an ordinary file and does not follow a link that was put in
place since the check.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import BinaryIO

from nca.tools.tool import ToolError


class Workspace:
    """Everything under `root`."""

    def __init__(self, root: Path) -> None:
        self.root = Path(os.path.realpath(root))

    def resolve(self, name: str) -> Path:
        """The real path behind a name, relative to the root or absolute. Raises ToolError outside of the root."""
        if not name.strip() or "\0" in name:
            raise ToolError(f"{name!r} is not a path")
        try:
            path = Path(os.path.realpath(self.root / name))
        except (OSError, ValueError) as error:
            raise ToolError(f"{shown(name)}: not a usable path") from error
        if not path.is_relative_to(self.root):
            raise ToolError(f"{shown(name)} is outside of the working directory")
        return path

    def relative(self, path: Path) -> str:
        """A path under the root as a person and a model call it, with forward slashes."""
        return shown(path.relative_to(self.root).as_posix())

    def open(self, path: Path, name: str) -> BinaryIO:
        """An ordinary file, opened for reading. Raises ToolError with `name` in it for everything else."""
        # O_NONBLOCK: a pipe would wait for its writer for ever. O_NOFOLLOW: the path was resolved, so a link is new.
        flags = os.O_RDONLY
        for flag in ("O_NONBLOCK", "O_NOFOLLOW", "O_CLOEXEC", "O_BINARY"):
            flags |= getattr(os, flag, 0)
        try:
            handle = os.open(path, flags)
        except OSError as error:
            raise _refusal(name, error) from error
        mode = os.fstat(handle).st_mode
        if stat.S_ISREG(mode):
            return os.fdopen(handle, "rb")
        os.close(handle)
        if stat.S_ISDIR(mode):
            raise ToolError(f"{shown(name)} is a directory; use list_directory")
        raise ToolError(f"{shown(name)} is not an ordinary file")


def shown(name: str) -> str:
    """A file's name on one line: what is not printable, and bytes that are not UTF-8, are written as escapes."""
    return name if name.isprintable() else ascii(name)[1:-1]


def _refusal(name: str, error: OSError) -> ToolError:
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return ToolError(f"there is no file {shown(name)}")
    if isinstance(error, PermissionError):
        return ToolError(f"{shown(name)} may not be read (permission denied)")
    return ToolError(f"{shown(name)} cannot be read ({error.strerror})")
