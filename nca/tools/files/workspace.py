"""The folder that tools may touch: names become paths inside it, or a refusal that says why.

A link is followed and then judged by where it leads, so neither `..`, nor an absolute path, nor a link inside the
project reaches a file outside. Files are then opened component by component, following no link at all: one that was put
in place since the check leads nowhere (nca.tools.files.safe_open).
"""

from __future__ import annotations

import os
import stat
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from nca.config.paths import PROJECT_FOLDER
from nca.tools.files.safe_open import READING, Folder, opened
from nca.tools.tool import ToolError

RUN_BY_OTHERS = frozenset(
    {".git", ".hg", ".svn", ".husky", ".vscode", ".idea", ".devcontainer", ".envrc", ".mcp.json", ".claude", ".cursor"}
)
"""Files whose content other programs run without being asked (hooks, tasks, servers): to write one is to execute."""


class Workspace:
    """Everything under `root`. `protected`: further folders in which nothing may be written."""

    def __init__(self, root: Path, protected: Sequence[Path] = ()) -> None:
        self.root = Path(os.path.realpath(root))
        self._protected = [_plain(Path(os.path.realpath(path)).parts) for path in protected]

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

    def resolve_to_write(self, name: str) -> Path:
        """As `resolve`; raises ToolError for nca's own settings and data too, whether they exist or not."""
        path = self.resolve(name)
        if path == self.root:
            raise ToolError(f"{shown(name)} is a directory")
        inside = _plain(path.relative_to(self.root).parts)
        whole = _plain(path.parts)
        if PROJECT_FOLDER in inside or any(whole[: len(one)] == one for one in self._protected):
            raise ToolError(f"{shown(name)} belongs to nca's own settings and data, which tools may not write")
        return path

    def is_run_by_others(self, path: Path) -> bool:
        """Whether to write the file would make another program run what it says."""
        return not RUN_BY_OTHERS.isdisjoint(_plain(path.relative_to(self.root).parts))

    def is_behind_link(self, name: str, path: Path) -> bool:
        """Whether a name leads elsewhere than it says."""
        return Path(os.path.normpath(self.root / name)) != path

    def relative(self, path: Path) -> str:
        """A path under the root as a person and a model call it, with forward slashes."""
        return shown(path.relative_to(self.root).as_posix())

    @contextmanager
    def folder(self, path: Path, *, create: bool = False) -> Iterator[Folder]:
        """A folder under the root, opened without following links. Raises OSError."""
        with opened(str(self.root), path.relative_to(self.root).parts, create=create) as folder:
            yield folder

    def open(self, path: Path, name: str) -> BinaryIO:
        """An ordinary file, opened for reading. Raises ToolError with `name` in it for everything else."""
        try:
            if path == self.root:
                raise IsADirectoryError
            with self.folder(path.parent) as folder:
                handle = folder.open(path.name)
        except IsADirectoryError:
            raise ToolError(f"{shown(name)} is a directory; use list_directory") from None
        except OSError as error:
            raise _refusal(name, error) from error
        return _as_file(handle, name)


def open_own(path: Path, name: str) -> BinaryIO:
    """A file that the person named themselves, wherever its links lead. Raises ToolError with `name` in it."""
    try:
        handle = os.open(os.path.realpath(path), READING)
    except (OSError, ValueError) as error:
        raise _refusal(name, error if isinstance(error, OSError) else OSError(22, "not a path")) from error
    return _as_file(handle, name)


class NoSuchFile(ToolError):
    """There is nothing of that name."""


def shown(name: str) -> str:
    """A file's name on one line: what is not printable, and bytes that are not UTF-8, are written as escapes."""
    return name if name.isprintable() else ascii(name)[1:-1]


def _as_file(handle: int, name: str) -> BinaryIO:
    """The ordinary file behind a descriptor, which is closed where it is none. Raises ToolError."""
    mode = os.fstat(handle).st_mode
    if stat.S_ISREG(mode):
        return os.fdopen(handle, "rb")
    os.close(handle)
    if stat.S_ISDIR(mode):
        raise ToolError(f"{shown(name)} is a directory; use list_directory")
    raise ToolError(f"{shown(name)} is not an ordinary file")


def _plain(parts: Sequence[str]) -> tuple[str, ...]:
    """Names as file systems compare them that are lax about it.

    They may ignore case, characters without width, dots and blanks at the end, and a stream's name behind a colon
    (what git calls its protection of HFS and NTFS).
    """
    plain = []
    for part in parts:
        visible = "".join(char for char in part if unicodedata.category(char) != "Cf")
        plain.append(unicodedata.normalize("NFKC", visible).casefold().split(":")[0].rstrip(". ") or part)
    return tuple(plain)


def _refusal(name: str, error: OSError) -> ToolError:
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return NoSuchFile(f"there is no file {shown(name)}")
    if isinstance(error, PermissionError):
        return ToolError(f"{shown(name)} may not be read (permission denied)")
    return ToolError(f"{shown(name)} cannot be read ({error.strerror})")
