"""Walk the files that a search looks at: no links, no folders of tools, and nothing that .gitignore excludes."""

from __future__ import annotations

import contextlib
import os
import stat
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pathspec

from nca.safe_files import Folder, open_folder

SKIPPED_FOLDERS = frozenset({".git", ".hg", ".svn", "node_modules", ".venv", "__pycache__"})
_MAX_IGNORE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file: its path from the root with slashes, and its folder, which is open until the next file is asked for."""

    name: str
    folder: Folder

    def open(self) -> int:
        return self.folder.open(self.name.rpartition("/")[2])

    def stat(self) -> os.stat_result:
        return self.folder.stat(self.name.rpartition("/")[2])


@dataclass(slots=True)
class Ignored:
    """The .gitignore files from the root down. The deepest one with a matching rule decides."""

    specs: list[tuple[str, pathspec.GitIgnoreSpec]] = field(default_factory=list)

    def below(self, folder: Folder, name: str) -> Ignored:
        """Add the .gitignore of a folder; `name` is relative with slashes, "" for the root."""
        spec = _read_spec(folder)
        return Ignored([*self.specs, (name, spec)]) if spec is not None else self

    def matches(self, name: str, *, is_folder: bool) -> bool:
        for folder, spec in reversed(self.specs):
            inner = name[len(folder) + 1 :] if folder else name
            verdict = spec.check_file(inner + "/" if is_folder else inner).include
            if verdict is not None:
                return verdict
        return False


def walk(root: str, start: str, *, nearest_first: bool = False) -> Iterator[FoundFile]:
    """The files at or below `start` ("." for all), ordered by name. `start` itself is walked even if it is ignored.

    nearest_first  breadth first, for callers that stop early
    """
    parts = [] if start == "." else start.split("/")
    if parts and not _is_folder(root, parts):
        with contextlib.suppress(OSError), open_folder(root, parts[:-1]) as folder:
            if stat.S_ISREG(folder.stat(parts[-1]).st_mode):
                yield FoundFile(start, folder)
        return
    waiting = deque([("/".join(parts), _above(root, parts))])
    while waiting:
        name, above = waiting.popleft() if nearest_first else waiting.pop()
        inner = []
        # A folder that may not be entered, is gone, or is a link by now is skipped.
        with contextlib.suppress(OSError), open_folder(root, name.split("/") if name else []) as folder:
            ignored = above.below(folder, name)
            for path, is_folder in _entries(folder, name):
                if ignored.matches(path, is_folder=is_folder):
                    continue
                if is_folder:
                    inner.append((path, ignored))
                else:
                    yield FoundFile(path, folder)
        waiting += inner if nearest_first else reversed(inner)


def _is_folder(root: str, parts: Sequence[str]) -> bool:
    try:
        with open_folder(root, parts):
            return True
    except OSError:
        return False


def _above(root: str, parts: Sequence[str]) -> Ignored:
    """The rules of the folders above the start; none if they exclude the start itself."""
    ignored = Ignored()
    for depth in range(len(parts)):
        with contextlib.suppress(OSError), open_folder(root, parts[:depth]) as folder:
            ignored = ignored.below(folder, "/".join(parts[:depth]))
    return Ignored() if parts and ignored.matches("/".join(parts), is_folder=True) else ignored


def _entries(folder: Folder, name: str) -> Iterator[tuple[str, bool]]:
    """The path of each file and folder to look at, and whether it is a folder; sorted by name."""
    prefix = f"{name}/" if name else ""
    with folder.entries() as scan:
        for entry in sorted(scan, key=lambda one: one.name):
            is_folder = entry.is_dir(follow_symlinks=False)
            if entry.name not in SKIPPED_FOLDERS if is_folder else entry.is_file(follow_symlinks=False):
                yield prefix + entry.name, is_folder


def _read_spec(folder: Folder) -> pathspec.GitIgnoreSpec | None:
    try:
        handle = folder.open(".gitignore")
    except OSError:
        return None
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return None
        lines = file.read(_MAX_IGNORE_BYTES).decode("utf-8", "replace").splitlines()
    spec = pathspec.GitIgnoreSpec([])
    for line in lines:
        # git ignores lines that it does not understand.
        with contextlib.suppress(ValueError):
            spec += pathspec.GitIgnoreSpec.from_lines([line])
    return spec
