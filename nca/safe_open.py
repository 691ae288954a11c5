"""Open files inside a folder without following links.

A path is opened component by component, each one relative to the folder before it. If somebody replaces a component by
a link after the path was checked, opening it fails. The search process loads this module too, so it imports only the
standard library.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_FOLDER = os.O_DIRECTORY | os.O_CLOEXEC
# O_PATH (Linux): a folder on the way may be one that can be entered but not listed.
_TRAVERSED = _FOLDER | getattr(os, "O_PATH", 0)
# O_NONBLOCK: opening a pipe would wait for its writer.
READ_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
_CREATE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Folder:
    """An open folder. Use `handle` as `dir_fd` for the names in it."""

    handle: int

    def open(self, name: str) -> int:
        """Open anything but a link for reading, and return its descriptor. Raises OSError."""
        return os.open(name, READ_FLAGS, dir_fd=self.handle)

    def create(self, name: str, mode: int) -> int:
        """Create a file and return a descriptor for writing. Raises FileExistsError, OSError."""
        return os.open(name, _CREATE_FLAGS, mode, dir_fd=self.handle)

    def stat(self, name: str) -> os.stat_result:
        """The status of the entry itself, not of what a link leads to. Raises OSError."""
        return os.stat(name, dir_fd=self.handle, follow_symlinks=False)

    @contextlib.contextmanager
    def entries(self) -> Iterator[Iterator[os.DirEntry[str]]]:
        """The entries of the folder; their status can be read inside the block. Raises OSError."""
        with self.readable() as handle, os.scandir(handle) as scan:
            yield scan

    def sync(self) -> None:
        """Make a new or renamed entry durable, if the file system can."""
        with contextlib.suppress(OSError), self.readable() as handle:
            os.fsync(handle)

    @contextlib.contextmanager
    def readable(self) -> Iterator[int]:
        """A descriptor of the folder that can be listed and flushed. Raises OSError."""
        handle = os.open(".", _FOLDER, dir_fd=self.handle)
        try:
            yield handle
        finally:
            os.close(handle)


@contextlib.contextmanager
def open_folder(root: str, parts: Sequence[str], *, create: bool = False) -> Iterator[Folder]:
    """Open the folder `parts` below `root`, which is a real path; with `create`, make the folders that are missing.

    Raises OSError: NotADirectoryError (ELOOP on some systems) if a component is a link or a file.
    """
    handle = os.open(root, _TRAVERSED)
    try:
        for part in parts:
            if create:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(part, dir_fd=handle)
            inner = os.open(part, _TRAVERSED | os.O_NOFOLLOW, dir_fd=handle)
            os.close(handle)
            handle = inner
        yield Folder(handle)
    finally:
        os.close(handle)
