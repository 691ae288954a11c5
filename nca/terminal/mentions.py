"""Files that can follow an @ in the prompt: found within a bound of time, so that typing never waits."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

SEARCH_SECONDS = 0.06
"""A person notices a tenth of a second."""
MAX_FILES = 20_000
MAX_SUGGESTIONS = 50
KEEP_SECONDS = 5.0

_SKIPPED = frozenset(
    {".git", ".hg", ".svn", ".venv", "venv", "node_modules", "__pycache__", ".mypy_cache", ".ruff_cache", ".tox"}
)
_MENTION = re.compile(r"(?:^|\s)@(\"[^\"\n]*|[^\s@\"]*)$")
_NEEDS_QUOTES = re.compile(r"[\s'`()<>{}|;,]")


def mention_before(text: str) -> str | None:
    """What stands behind an @ that begins a word at the end of `text`, or None."""
    found = _MENTION.search(text)
    return found[1] if found else None


class FileFinder:
    """The files under a directory, walked breadth first and remembered for a few seconds."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._files: list[str] = []
        self._walked_at = -KEEP_SECONDS

    def find(self, wanted: str) -> list[str]:
        """Paths for what was typed: those that begin with it, then whose name does, then that contain it."""
        bare = wanted.removeprefix('"')
        if bare.startswith(("/", "~", "..")):
            return [_quoted(path) for path in islice(_in_folder(bare), MAX_SUGGESTIONS)]
        word = bare.removeprefix("./").lower()
        ranked = sorted((rank, len(path), path) for path in self._paths() if (rank := _rank(path.lower(), word)) < 4)
        return [_quoted(path) for _, _, path in ranked[:MAX_SUGGESTIONS]]

    def _paths(self) -> list[str]:
        now = time.monotonic()
        if now - self._walked_at > KEEP_SECONDS:
            self._files = list(_walk(self._directory, now + SEARCH_SECONDS))
            self._walked_at = time.monotonic()
        return self._files


def _quoted(path: str) -> str:
    """As it is written behind an @."""
    return f'"{path}"' if _NEEDS_QUOTES.search(path) else path


def _rank(path: str, word: str) -> int:
    """0 begins with the word, 1 its name does, 2 contains it, 3 has its letters in order, 4 has not."""
    if path.startswith(word):
        return 0
    if path.rpartition("/")[2].startswith(word):
        return 1
    if word in path:
        return 2
    letters = iter(path)
    return 3 if all(letter in letters for letter in word) else 4


def _walk(top: Path, deadline: float) -> Iterator[str]:
    """Relative paths of files, nearer ones first. Names that cannot be typed are left out."""
    folders = [""]
    count = 0
    while folders:
        deeper: list[str] = []
        for folder in folders:
            for entry in _entries(top / folder):
                path = f"{folder}{entry.name}"
                if entry.name in _SKIPPED or not _can_be_typed(entry.name):
                    continue
                if _is_folder(entry):
                    deeper.append(f"{path}/")
                    continue
                yield path
                count += 1
                if count >= MAX_FILES or time.monotonic() > deadline:
                    return
        folders = deeper


def _in_folder(wanted: str) -> Iterator[str]:
    """Completions of a path outside the directory: the entries of its folder."""
    shown_folder, _, beginning = wanted.rpartition("/")
    folder = Path(f"{shown_folder}/").expanduser()
    for entry in _entries(folder):
        if entry.name.startswith(beginning) and _can_be_typed(entry.name):
            yield f"{shown_folder}/{entry.name}{'/' if _is_folder(entry) else ''}"


def _entries(folder: Path) -> Iterable[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return ()


def _can_be_typed(name: str) -> bool:
    return name.isprintable() and '"' not in name


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False
