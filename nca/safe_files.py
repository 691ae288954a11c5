"""Open files inside a folder without following links; open ordinary files only; write files atomically.

A path is opened component by component, each one relative to the folder before it. If somebody replaces a component by
a link after the path was checked, opening it fails. The search process loads this module too, so it imports only the
standard library.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal


def _flags(*names: str) -> int:
    """Those of these flags that this system has. Windows, on which the library works, lacks most."""
    return sum(getattr(os, name, 0) for name in names)


_FOLDER = _flags("O_DIRECTORY", "O_CLOEXEC")
# O_PATH (Linux): a folder on the way may be one that can be entered but not listed.
_TRAVERSED = _FOLDER | _flags("O_PATH")
# O_NONBLOCK: opening a pipe would wait for its writer.
READ_FLAGS = os.O_RDONLY | _flags("O_NONBLOCK", "O_NOFOLLOW", "O_CLOEXEC")
_CREATE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _flags("O_NOFOLLOW", "O_CLOEXEC")


@dataclass(frozen=True, slots=True)
class Folder:
    """An open folder. Use `handle` as `dir_fd` for the names in it."""

    handle: int

    def open(self, name: str) -> int:
        """Open anything but a link for reading, and return its descriptor. Raises OSError."""
        return os.open(name, READ_FLAGS, dir_fd=self.handle)

    def open_ordinary(self, name: str) -> BinaryIO:
        """Open an ordinary file for reading. Raises OSError, also for anything else."""
        return _ordinary(self.open(name), "rb")

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
        with descriptor(".", _FOLDER, dir_fd=self.handle) as handle:
            yield handle


@contextlib.contextmanager
def descriptor(path: Path | str, flags: int, *, dir_fd: int | None = None) -> Iterator[int]:
    """A descriptor that is closed at the end of the block. Raises OSError."""
    handle = os.open(path, flags, dir_fd=dir_fd)
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
    temporary = path.with_name(f".{path.name}.{os.urandom(4).hex()}.tmp")
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


_BUSY_SECONDS, _EACH_SECONDS = 10.0, 0.01


@contextmanager
def exclusively(path: Path, *, mode: int = 0o700) -> Iterator[None]:
    """One process at a time, of those that ask: what it has read of `path` in the block is as it was when it writes.

    The lock is one of the folder, which is created with `mode` if it is missing. Where folders cannot be locked, as on
    Windows, nothing is. Raises OSError; TimeoutError if another process holds it for ten seconds.
    """
    try:
        import fcntl
    except ModuleNotFoundError:
        yield
        return
    path.parent.mkdir(parents=True, exist_ok=True, mode=mode)
    with descriptor(path.parent, _FOLDER) as handle:
        deadline = time.monotonic() + _BUSY_SECONDS
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise TimeoutError(errno.ETIMEDOUT, "another process is changing it") from None
                time.sleep(_EACH_SECONDS)
                continue
            except OSError:
                pass  # a file system that has no locks for folders
            break
        yield


def is_missing(path: Path) -> bool:
    """Whether there is surely nothing. A path that cannot be asked about, as in a folder of another user, is not."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False


def paths_below(folder: Path, pattern: str) -> Iterator[Path]:
    """The paths below a folder that match: none of one that cannot be read, for which `Path.glob` raises."""
    return iter(folder.glob(pattern) if os.path.isdir(folder) else ())


def sync_folder(folder: Path) -> None:
    """Make a new or renamed entry of a folder durable, if the file system can."""
    with suppress(OSError), descriptor(folder, os.O_RDONLY) as handle:
        os.fsync(handle)


_BUFFER_BYTES = 64 * 1024
"""Logs of other agents have lines of many kilobytes; with the default, each would be read in several pieces."""


def open_ordinary(path: Path, mode: Literal["rb", "ab"] = "rb", *, follows_links: bool = True) -> BinaryIO:
    """Open a file to read it, or to append to it; for `ab`, a missing one is created for its owner only.

    Raises OSError, also for anything that is not an ordinary file, and ValueError for an invalid path.
    """
    flags = os.O_RDONLY if mode == "rb" else os.O_WRONLY | os.O_CREAT | os.O_APPEND
    flags |= _flags("O_NONBLOCK", "O_CLOEXEC", "O_BINARY") | (0 if follows_links else _flags("O_NOFOLLOW"))
    return _ordinary(os.open(path, flags, PRIVATE), mode)


def _ordinary(handle: int, mode: Literal["rb", "ab"]) -> BinaryIO:
    """The ordinary file behind a descriptor. Anything else is closed, and raises OSError."""
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "not an ordinary file")
    return os.fdopen(handle, mode, _BUFFER_BYTES)
