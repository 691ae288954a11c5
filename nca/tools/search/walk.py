"""The files below a folder that a search looks at: without links, folders of tools and what .gitignore excludes."""

from __future__ import annotations

import contextlib
import os
import stat
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pathspec

from nca.tools.files.safe_open import Folder, open_folder

SKIPPED_FOLDERS = frozenset({".git", ".hg", ".svn", "node_modules", ".venv", "__pycache__"})
_MAX_IGNORE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Found:
    """A file: its name from the root with slashes, its folder (open until the next one is asked for) and its facts."""

    name: str
    folder: Folder
    facts: os.stat_result | None
    """None where they were not wanted."""

    def open(self) -> int:
        return self.folder.open(self.name.rpartition("/")[2])


@dataclass(slots=True)
class Ignored:
    """What .gitignore files say: of each folder from the root down, the deepest that has an opinion counts."""

    specs: list[tuple[str, pathspec.GitIgnoreSpec]] = field(default_factory=list)

    def below(self, folder: Folder, name: str) -> Ignored:
        """With the folder's own .gitignore added; `name` is relative with slashes, "" for the root."""
        spec = _read_spec(folder)
        return Ignored([*self.specs, (name, spec)]) if spec is not None else self

    def matches(self, name: str, *, is_folder: bool) -> bool:
        for folder, spec in reversed(self.specs):
            inner = name[len(folder) + 1 :] if folder else name
            verdict = spec.check_file(inner + "/" if is_folder else inner).include
            if verdict is not None:
                return verdict
        return False


def walk(root: str, start: str, *, with_facts: bool = False, nearest_first: bool = False) -> Iterator[Found]:
    """Files from `start` on ("." for all), in the order of names. What is named itself counts even if it is ignored.

    nearest_first  folder by folder from the top down, for who will not take all of them
    """
    parts = [] if start == "." else start.split("/")
    if parts and not _is_folder(root, parts):
        with contextlib.suppress(OSError), open_folder(root, parts[:-1]) as folder:
            own = folder.stat(parts[-1])
            if stat.S_ISREG(own.st_mode):
                yield Found(start, folder, own)
        return
    waiting = deque([("/".join(parts), _above(root, parts))])
    while waiting:
        name, above = waiting.popleft() if nearest_first else waiting.pop()
        inner = []
        # Suppressed: it may not be entered, is gone, or is a link now; there is nothing to find in it.
        with contextlib.suppress(OSError), open_folder(root, name.split("/") if name else []) as folder:
            ignored = above.below(folder, name)
            for path, is_folder, facts in _entries(folder, name, with_facts=with_facts):
                if ignored.matches(path, is_folder=is_folder):
                    continue
                if is_folder:
                    inner.append((path, ignored))
                else:
                    yield Found(path, folder, facts)
        waiting += inner if nearest_first else reversed(inner)


def _is_folder(root: str, parts: Sequence[str]) -> bool:
    try:
        with open_folder(root, parts):
            return True
    except OSError:
        return False


def _above(root: str, parts: Sequence[str]) -> Ignored:
    """What the folders above the start say of what is below it; nothing where they ignore the start itself."""
    ignored = Ignored()
    for depth in range(len(parts)):
        with contextlib.suppress(OSError), open_folder(root, parts[:depth]) as folder:
            ignored = ignored.below(folder, "/".join(parts[:depth]))
    return Ignored() if parts and ignored.matches("/".join(parts), is_folder=True) else ignored


def _entries(folder: Folder, name: str, *, with_facts: bool) -> Iterator[tuple[str, bool, os.stat_result | None]]:
    """Path, whether it is a folder, facts; of files and folders that a search looks at, sorted by name."""
    prefix = f"{name}/" if name else ""
    with folder.entries() as scan:
        for entry in sorted(scan, key=lambda one: one.name):
            if entry.is_dir(follow_symlinks=False):
                if entry.name not in SKIPPED_FOLDERS:
                    yield prefix + entry.name, True, None
            elif entry.is_file(follow_symlinks=False):
                yield prefix + entry.name, False, entry.stat(follow_symlinks=False) if with_facts else None


def _read_spec(folder: Folder) -> pathspec.GitIgnoreSpec | None:
    try:
        handle = folder.open(".gitignore")
    except OSError:
        return None
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return None
        lines = file.read(_MAX_IGNORE_BYTES).decode("utf-8", "replace").splitlines()
    try:
        return pathspec.GitIgnoreSpec.from_lines(lines)
    except ValueError:
        return pathspec.GitIgnoreSpec.from_lines(line for line in lines if _is_usable(line))


def _is_usable(line: str) -> bool:
    try:
        pathspec.GitIgnoreSpec.from_lines([line])
    except ValueError:
        return False
    return True
