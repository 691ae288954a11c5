"""The current content of a path in the workspace. No link is followed, neither of the path nor of a folder above it."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path, PurePosixPath

from nca.errors import system_reason
from nca.safe_files import Folder, open_folder
from nca.sessions.file_record import ABSENT, FileState

_MIB = 1 << 20
_GONE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})
"""A folder above is missing, is a file, or is a link: whatever it leads to is another place."""


def look(root: Path, path: str, most_bytes: int) -> tuple[FileState, bytes]:
    """The state of a path below the root, and its content or a link's target; see `look_in`."""
    where = PurePosixPath(path)
    try:
        with open_folder(str(root), where.parent.parts) as folder:
            return (ABSENT, b"") if _is_in_other_case(folder, where.name) else look_in(folder, where.name, most_bytes)
    except OSError as error:
        return _failed(error), b""


def _is_in_other_case(folder: Folder, name: str) -> bool:
    """Whether a file system that ignores case finds an entry by this name, but the entry is spelt differently."""
    try:
        if folder.stat(name).st_ino != folder.stat(name.swapcase()).st_ino:
            return False
    except OSError:
        return False
    with folder.entries() as entries:
        return all(entry.name != name for entry in entries)


def look_in(folder: Folder, name: str, most_bytes: int) -> tuple[FileState, bytes]:
    """The state of an entry of an open folder, and its content; b"" if that cannot be stored: `why` says so then."""
    try:
        status = folder.stat(name)
        mode = stat.S_IMODE(status.st_mode)
        if stat.S_ISDIR(status.st_mode):
            return FileState("folder", mode=mode), b""
        if stat.S_ISLNK(status.st_mode):
            target = os.fsencode(os.readlink(name, dir_fd=folder.handle))
            return FileState("link", _sha256(target), 0, len(target)), target
    except OSError as error:
        return _failed(error), b""
    if not stat.S_ISREG(status.st_mode):
        return FileState("other", why="not an ordinary file"), b""
    if status.st_size > most_bytes:
        return _too_large(mode, status.st_size, most_bytes), b""
    try:
        with folder.open_ordinary(name) as file:
            content = file.read(status.st_size + 1)
            if len(content) > status.st_size:  # It grows just now.
                content += file.read(max(0, most_bytes + 1 - len(content)))
    except OSError as error:
        why = system_reason(error)
        return ABSENT if error.errno in _GONE else FileState("file", "", mode, status.st_size, why), b""
    return state_of(content, mode, most_bytes), content if len(content) <= most_bytes else b""


def state_of(content: bytes, mode: int, most_bytes: int) -> FileState:
    """The state of a file with this content."""
    if len(content) > most_bytes:
        return _too_large(mode, len(content), most_bytes)
    return FileState("file", _sha256(content), mode, len(content))


def has_other_names(root: Path, path: str) -> bool:
    """Whether a file has hard links: to replace it would part it from its other names."""
    where = PurePosixPath(path)
    try:
        with open_folder(str(root), where.parent.parts) as folder:
            status = folder.stat(where.name)
    except OSError:
        return False
    return stat.S_ISREG(status.st_mode) and status.st_nlink > 1


def is_temporary(name: str) -> bool:
    """Whether nca names files so while it writes them."""
    return name.startswith(".nca-") and name.endswith(".tmp")


def remove_temporaries(root: Path, paths: Iterable[str]) -> None:
    """Remove the leftovers of a killed nca that was writing these paths: beside each, or in a folder above it."""
    folders = {above.parts for path in paths for above in PurePosixPath(path).parents}
    for parts in folders:
        with suppress(OSError), open_folder(str(root), parts) as folder:
            with folder.entries() as entries:
                names = [entry.name for entry in entries if is_temporary(entry.name)]
            for name in names:
                os.unlink(name, dir_fd=folder.handle)


def nearest_folder(root: Path, parts: tuple[str, ...]) -> tuple[str, ...]:
    """The innermost folder on the way to this one that is there."""
    while parts:
        with suppress(OSError), open_folder(str(root), parts):
            return parts
        parts = parts[:-1]
    return parts


def missing_folders(root: Path, path: str) -> list[str]:
    """The folders above a path that are not there, the outermost first."""
    missing: list[str] = []
    for above in PurePosixPath(path).parents:
        if str(above) == "." or look(root, str(above), 0)[0].kind != "absent":
            break
        missing.insert(0, str(above))
    return missing


def _too_large(mode: int, size: int, most_bytes: int) -> FileState:
    bound = f"{most_bytes / _MIB:g} MiB" if most_bytes >= _MIB else f"{most_bytes:,} bytes"
    return FileState("file", "", mode, size, f"larger than {bound}")


def _failed(error: OSError) -> FileState:
    if error.errno in _GONE:
        return ABSENT
    return FileState("other", why=system_reason(error))


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
