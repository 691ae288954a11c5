"""The searches behind grep and glob, which run in a process of their own (nca.tools.grep_and_glob).

A regular expression can take years and cannot be interrupted, and it holds Python's lock meanwhile. Only a process can
be stopped. This one reads a JSON request from stdin and writes one JSON object per line to stdout: each result as it is
found, and at the end {"end": "done" | "results" | "deadline", …} or {"error": …}.

It looks at no links, no folders of tools, nothing that .gitignore excludes, no binary files, and only at the first
2,000 characters of a line.

Glob patterns: `*.py` in any folder, `src/**/*.ts` from where the search starts, `*.{ts,tsx}`. They are matched
component by component, so that none takes exponential time (as gitignore rules and fnmatch can).
"""

from __future__ import annotations

import contextlib
import fnmatch
import json
import os
import re
import signal
import stat
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import pathspec

from nca.humanize import one_line
from nca.safe_files import Folder, open_folder

MAX_LINE_CHARS = 2_000
SHOWN_CHARS = 300
LOOKED_AT = 10
"""So many times as many matches as may be shown are looked for."""
EXTRA_SECONDS = 2.0
"""How much longer that may take, once there are as many as may be shown."""
_LAST_SECONDS = 10.0
MOST_OPTIONS = 64
MAX_PATTERN_CHARS = 1_000
_BRACES = re.compile(r"\{([^{}]*)\}")
_Component = Callable[[str], object] | None
"""Matches one name; None is `**`, any number of folders."""


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """A search for lines that match `pattern`, or for files if `pattern` is empty.

    start  relative to `root` ("." for all of it); both are real paths
    glob   the names of the files: from the root in a search for lines, from the start in a search for files
    """

    root: str
    start: str
    pattern: str
    glob: str
    max_results: int
    deadline_seconds: float


def search(request: SearchRequest) -> Iterator[dict[str, Any]]:
    """The matches, ordered by file name, up to LOOKED_AT times as many as may be shown; then how the search ended."""
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
    fits = matcher(request.glob) if request.glob.strip() else None
    found = files = long_lines = 0
    most = request.max_results * LOOKED_AT

    def ended(how: str) -> dict[str, Any]:
        return {"end": how, "files": files, "long_lines": long_lines}

    for file in walk(request.root, request.start):
        if fits is not None and not fits(file.name) and file.name != request.start:
            continue
        files += 1
        for number, line, is_long in _lines(file):
            if time.monotonic() > end:
                yield ended("deadline" if found < request.max_results else "results")
                return
            long_lines += is_long
            match = pattern.search(line)
            if match is None:
                continue
            if found == most:
                yield ended("results")
                return
            found += 1
            if found == request.max_results:
                end = min(end, time.monotonic() + EXTRA_SECONDS)
            yield {"path": file.name, "line": number, "text": around(line, match.start())}
    yield ended("done")


def list_files(request: SearchRequest) -> Iterator[dict[str, Any]]:
    """The newest files, newest first, then one record of how the search ended and how many files it found."""
    deadline = time.monotonic() + request.deadline_seconds
    fits = matcher(request.glob)
    prefix = "" if request.start == "." else f"{request.start}/"
    found: list[tuple[int, str]] = []
    end = "done"
    for file in walk(request.root, request.start):
        if time.monotonic() > deadline:
            end = "deadline"
            break
        if fits(file.name.removeprefix(prefix)):
            # It may be gone by now.
            with contextlib.suppress(OSError):
                found.append((-file.stat().st_mtime_ns, file.name))
    for _, name in sorted(found)[: request.max_results]:
        yield {"path": name}
    yield {"end": end, "files": len(found)}


def around(line: str, at: int) -> str:
    """The part of a long line that shows the match."""
    if len(line) <= SHOWN_CHARS:
        return line
    first = max(0, min(at - SHOWN_CHARS // 3, len(line) - SHOWN_CHARS))
    last = first + SHOWN_CHARS
    return ("…" if first else "") + line[first:last] + ("…" if last < len(line) else "")


def _lines(found: FoundFile) -> Iterator[tuple[int, str, bool]]:
    """Each line's number, its text up to the limit, and whether it is longer; none of a binary or unreadable file."""
    try:
        opened = found.open()
    except OSError:
        return
    with opened as file:
        if b"\0" in file.read(8192):
            return
        file.seek(0)
        number = 0
        # A character has at most four bytes.
        while piece := file.readline(4 * MAX_LINE_CHARS):
            number += 1
            line = piece.decode("utf-8", "replace").rstrip("\r\n")
            is_long = len(line) > MAX_LINE_CHARS
            while not piece.endswith(b"\n") and (piece := file.readline(1 << 20)):
                is_long = True
            yield number, line[:MAX_LINE_CHARS], is_long


def main() -> None:
    """Read a request from stdin and write its records to stdout as they come."""
    try:
        request = SearchRequest(**json.load(sys.stdin))
        # If nca was killed, nobody else stops this process. The alarm's default action ends it.
        signal.setitimer(signal.ITIMER_REAL, request.deadline_seconds + _LAST_SECONDS)
        for record in search(request) if request.pattern else list_files(request):
            sys.stdout.write(json.dumps(record) + "\n")
            sys.stdout.flush()
    except ValueError as error:
        # For example, the glob is not a valid pattern.
        sys.stdout.write(json.dumps({"error": str(error)}) + "\n")


def matcher(pattern: str) -> Callable[[str], bool]:
    """A function that tests a path with slashes. Raises ValueError for an invalid pattern."""
    cleaned = pattern.strip().removeprefix("./")
    if not cleaned or cleaned.startswith(("!", "/")) or len(cleaned) > MAX_PATTERN_CHARS:
        raise ValueError(f"{one_line(pattern, 60)!r} is not a pattern; patterns look like *.py or src/**/*.ts")
    options = [_components(option) for option in _options(cleaned)]
    return lambda path: any(_fits(option, path.split("/")) for option in options)


def _options(pattern: str) -> list[str]:
    """Expand the braces: one pattern for each combination of alternatives."""
    done: list[str] = []
    waiting = [pattern]
    while waiting:
        one = waiting.pop()
        match = _BRACES.search(one)
        if match is None:
            done.append(one)
        else:
            waiting += [one[: match.start()] + inner + one[match.end() :] for inner in match[1].split(",")]
        if len(done) + len(waiting) > MOST_OPTIONS:
            raise ValueError(f"the pattern has more than {MOST_OPTIONS} alternatives")
    return done


def _components(pattern: str) -> list[_Component]:
    names = [name for name in pattern.split("/") if name not in ("", ".")]
    if pattern.endswith("/"):
        names.append("**")
    elif len(names) == 1 and names[0] != "**":
        names.insert(0, "**")
    return [None if name == "**" else re.compile(fnmatch.translate(name)).match for name in names]


def _fits(components: Sequence[_Component], names: Sequence[str]) -> bool:
    """Dynamic programming: `reached` holds how many names the components so far can have matched."""
    reached = {0}
    for component in components:
        if component is None:
            reached = set(range(min(reached), len(names) + 1))
        else:
            reached = {at + 1 for at in reached if at < len(names) and component(names[at])}
        if not reached:
            return False
    return len(names) in reached


SKIPPED_FOLDERS = frozenset({".git", ".hg", ".svn", "node_modules", ".venv", "__pycache__"})
_MAX_IGNORE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file: its path from the root with slashes, and its folder, which is open until the next file is asked for."""

    name: str
    folder: Folder

    def open(self) -> BinaryIO:
        return self.folder.open_ordinary(self.name.rpartition("/")[2])

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
        with folder.open_ordinary(".gitignore") as file:
            lines = file.read(_MAX_IGNORE_BYTES).decode("utf-8", "replace").splitlines()
    except OSError:
        return None
    spec = pathspec.GitIgnoreSpec([])
    for line in lines:
        # git ignores lines that it does not understand.
        with contextlib.suppress(ValueError):
            spec += pathspec.GitIgnoreSpec.from_lines([line])
    return spec
