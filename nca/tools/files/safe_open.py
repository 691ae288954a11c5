"""Files inside a folder, opened component by component, so that a link put in place meanwhile leads nowhere.

Names come from a resolved path: no component is a link, or it was put there since, and then opening fails. Only the
standard library is imported here: the search's own process loads this too.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

HAS_HANDLES = {os.open, os.mkdir, os.stat, os.unlink, os.rename, os.link} <= os.supports_dir_fd and hasattr(
    os, "O_NOFOLLOW"
)
"""Whether names can be looked up inside an open folder (not on Windows; there the whole path is checked again)."""


def _flags(*names: str) -> int:
    flags = 0
    for name in names:
        flags |= getattr(os, name, 0)
    return flags


_FOLDER = _flags("O_DIRECTORY", "O_CLOEXEC")
# O_PATH: a folder on the way may be one that can be entered but not listed.
_ON_THE_WAY = _FOLDER | _flags("O_PATH")
# O_NONBLOCK: a pipe would wait for its writer for ever.
READING = os.O_RDONLY | _flags("O_NONBLOCK", "O_NOFOLLOW", "O_CLOEXEC", "O_BINARY")
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _flags("O_NOFOLLOW", "O_CLOEXEC", "O_BINARY")


@dataclass(frozen=True, slots=True)
class Folder:
    """An open folder. `handle`: its descriptor, None where the system has none; then names go by `path`."""

    path: str
    handle: int | None

    def at(self, name: str) -> str:
        """What to call the entry `name` by, with `dir_fd=handle`."""
        return name if self.handle is not None else f"{self.path}{os.sep}{name}"

    def open(self, name: str) -> int:
        """A descriptor for reading, of whatever there is but a link. Raises OSError."""
        return os.open(self.at(name), READING, dir_fd=self.handle)

    def create(self, name: str, mode: int) -> int:
        """A descriptor for writing a new file. Raises FileExistsError, OSError."""
        return os.open(self.at(name), _CREATE, mode, dir_fd=self.handle)

    def stat(self, name: str) -> os.stat_result:
        """Of the entry itself, not of what a link leads to. Raises OSError."""
        return os.stat(self.at(name), dir_fd=self.handle, follow_symlinks=False)

    @contextlib.contextmanager
    def entries(self) -> Iterator[Iterator[os.DirEntry[str]]]:
        """What is in it; the entries can be asked for their facts while it is open. Raises OSError."""
        if self.handle is None:
            with os.scandir(self.path) as scan:
                yield scan
            return
        handle = os.open(".", _FOLDER, dir_fd=self.handle)
        try:
            with os.scandir(handle) as scan:
                yield scan
        finally:
            os.close(handle)

    def sync(self) -> None:
        """Make a new or renamed entry durable, where the system can."""
        if self.handle is None:
            return
        with contextlib.suppress(OSError):
            handle = os.open(".", _FOLDER, dir_fd=self.handle)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)


@contextlib.contextmanager
def opened(root: str, parts: Sequence[str], *, create: bool = False) -> Iterator[Folder]:
    """The folder `parts` below `root`, a real path; with `create`, made where it is missing.

    Raises OSError: NotADirectoryError (on some systems ELOOP) where a component is a link or a file.
    """
    path = str(Path(root, *parts))
    if not HAS_HANDLES:
        if create:
            os.makedirs(path, exist_ok=True)  # noqa: PTH103  this module knows paths as text only
        if os.path.realpath(path) != path:
            raise NotADirectoryError(20, "a link is in the way", path)
        yield Folder(path, None)
        return
    handle = os.open(root, _ON_THE_WAY)
    try:
        for part in parts:
            if create:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(part, dir_fd=handle)
            inner = os.open(part, _ON_THE_WAY | os.O_NOFOLLOW, dir_fd=handle)
            os.close(handle)
            handle = inner
        yield Folder(path, handle)
    finally:
        os.close(handle)
