"""The search behind grep, run as a process of its own: `python search.py`, one JSON request on stdin.

A regular expression can take years, cannot be interrupted and holds Python's lock meanwhile; only a process can be
stopped. So this file imports nothing of nca. It writes one JSON object a line: matches as they are found, and at the
end either {"end": "done" | "results" | "deadline", …} or {"error": …}.

Left out: .git and other folders of tools, what .gitignore files say (also nested ones), links, binary files, and what
stands behind the first 2,000 characters of a line.
"""

from __future__ import annotations

import json
import os
import re
import signal
import stat
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pathspec

SKIPPED_FOLDERS = frozenset({".git", ".hg", ".svn", "node_modules", ".venv", "__pycache__"})
MAX_LINE_CHARS = 2_000
SHOWN_CHARS = 300
_MAX_IGNORE_BYTES = 1 << 20
_LAST_SECONDS = 10.0
_BRACES = re.compile(r"\{([^{}]*)\}")


@dataclass(frozen=True, slots=True)
class Request:
    """`start` is relative to `root` ("." for all of it); both are real paths."""

    root: str
    start: str
    pattern: str
    glob: str
    max_results: int
    deadline_seconds: float


@dataclass(slots=True)
class Ignored:
    """What .gitignore files say: of each folder from the root down, the deepest that has an opinion counts."""

    specs: list[tuple[str, pathspec.GitIgnoreSpec]] = field(default_factory=list)

    def below(self, root: Path, folder: str) -> Ignored:
        """With the folder's own .gitignore added; `folder` is relative with slashes, "" for the root."""
        spec = _read_spec(root / folder / ".gitignore")
        return Ignored([*self.specs, (folder, spec)]) if spec is not None else self

    def matches(self, name: str, *, is_folder: bool) -> bool:
        for folder, spec in reversed(self.specs):
            inner = name[len(folder) + 1 :] if folder else name
            verdict = spec.check_file(inner + "/" if is_folder else inner).include
            if verdict is not None:
                return verdict
        return False


def search(request: Request) -> Iterator[dict[str, Any]]:
    """Matches in the order of the files' names, then one record of how it ended."""
    end = time.monotonic() + request.deadline_seconds
    try:
        pattern = re.compile(request.pattern)
    except re.error as error:
        at = f" at column {error.pos + 1}" if error.pos is not None else ""
        yield {"error": f"invalid pattern{at}: {error.msg}"}
        return
    except (RecursionError, OverflowError, MemoryError):
        yield {"error": "invalid pattern: too large"}
        return
    found = files = long_lines = 0
    for name in _files(Path(request.root), request.start, _glob(request.glob)):
        files += 1
        for number, line, is_long in _lines(Path(request.root, name)):
            if time.monotonic() > end:
                yield {"end": "deadline", "files": files, "long_lines": long_lines}
                return
            long_lines += is_long
            match = pattern.search(line)
            if match is None:
                continue
            if found == request.max_results:
                yield {"end": "results", "files": files, "long_lines": long_lines}
                return
            found += 1
            yield {"path": name, "line": number, "text": _around(line, match.start())}
    yield {"end": "done", "files": files, "long_lines": long_lines}


def _files(root: Path, start: str, glob: pathspec.GitIgnoreSpec | None) -> Iterator[str]:
    """Names relative to the root, with slashes. What is named itself is searched even if it is ignored."""
    first = "" if start == "." else Path(start).as_posix()
    if not (root / first).is_dir():
        yield first
        return
    ignored = Ignored()
    for depth in range(len(Path(first).parts)):
        ignored = ignored.below(root, "/".join(Path(first).parts[:depth]))
    if first and ignored.matches(first, is_folder=True):
        ignored = Ignored()
    waiting = [(first, ignored)]
    while waiting:
        folder, above = waiting.pop()
        ignored = above.below(root, folder)
        inner = []
        for entry in _entries(root / folder):
            name = f"{folder}/{entry.name}" if folder else entry.name
            is_folder = entry.is_dir(follow_symlinks=False)
            if ignored.matches(name, is_folder=is_folder):
                continue
            if is_folder and entry.name not in SKIPPED_FOLDERS:
                inner.append((name, ignored))
            elif entry.is_file(follow_symlinks=False) and (glob is None or glob.match_file(name)):
                yield name
        waiting += reversed(inner)


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as scan:
            return sorted(scan, key=lambda entry: entry.name)
    except OSError:
        # It may not be read, or is gone: there is nothing to find in it.
        return []


def _lines(path: Path) -> Iterator[tuple[int, str, bool]]:
    """Number, text up to the limit, whether there was more; nothing of a binary file or one that cannot be read."""
    flags = os.O_RDONLY
    for flag in ("O_NONBLOCK", "O_NOFOLLOW", "O_CLOEXEC", "O_BINARY"):
        flags |= getattr(os, flag, 0)
    try:
        handle = os.open(path, flags)
    except OSError:
        return
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode) or b"\0" in file.read(8192):
            return
        file.seek(0)
        number = 0
        # Four bytes are the longest character.
        while piece := file.readline(4 * MAX_LINE_CHARS):
            number += 1
            line = piece.decode("utf-8", "replace").rstrip("\r\n")
            is_long = len(line) > MAX_LINE_CHARS
            while not piece.endswith(b"\n") and (piece := file.readline(1 << 20)):
                is_long = True
            yield number, line[:MAX_LINE_CHARS], is_long


def _around(line: str, at: int) -> str:
    """The part of a long line that shows the match."""
    if len(line) <= SHOWN_CHARS:
        return line
    first = max(0, min(at - SHOWN_CHARS // 3, len(line) - SHOWN_CHARS))
    last = first + SHOWN_CHARS
    return ("…" if first else "") + line[first:last] + ("…" if last < len(line) else "")


def _glob(glob: str) -> pathspec.GitIgnoreSpec | None:
    """`*.py` for any folder, `src/**/*.ts` from the root, `*.{ts,tsx}` with one group of braces."""
    if not glob.strip():
        return None
    match = _BRACES.search(glob)
    options = match[1].split(",")[:50] if match else [""]
    lines = [glob[: match.start()] + option + glob[match.end() :] for option in options] if match else [glob]
    return pathspec.GitIgnoreSpec.from_lines(line.removeprefix("./") for line in lines)


def _read_spec(path: Path) -> pathspec.GitIgnoreSpec | None:
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            return None
        with path.open("rb") as file:
            lines = file.read(_MAX_IGNORE_BYTES).decode("utf-8", "replace").splitlines()
    except OSError:
        return None
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


def main() -> None:
    """One request from stdin, its records to stdout as they come."""
    try:
        request = Request(**json.load(sys.stdin))
        if hasattr(signal, "setitimer"):
            # Nobody is left to stop it where nca itself was killed; the alarm's default action ends the process.
            signal.setitimer(signal.ITIMER_REAL, request.deadline_seconds + _LAST_SECONDS)
        for record in search(request):
            sys.stdout.write(json.dumps(record) + "\n")
            sys.stdout.flush()
    except ValueError as error:
        # Such as a glob that no pattern can be made of.
        sys.stdout.write(json.dumps({"error": str(error)}) + "\n")


if __name__ == "__main__":
    main()
