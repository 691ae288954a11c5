"""The searches behind grep and glob, run as a process of their own (nca.tools.search.worker_process).

A regular expression can take years, cannot be interrupted and holds Python's lock meanwhile; only a process can be
stopped. It reads one JSON request from stdin and writes one JSON object a line: what it finds, as it finds it, and at
the end either {"end": "done" | "results" | "deadline", …} or {"error": …}.

Left out: what `nca.tools.search.walk` leaves out, binary files, and all but the first 2,000 characters of a line.
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
from dataclasses import dataclass
from typing import Any

from nca.tools.search.patterns import matcher
from nca.tools.search.walk import Found, walk

MAX_LINE_CHARS = 2_000
SHOWN_CHARS = 300
_LAST_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Request:
    """`start` is relative to `root` ("." for all of it); both are real paths. `glob` counts from the root."""

    root: str
    start: str
    pattern: str
    glob: str
    max_results: int
    deadline_seconds: float


@dataclass(frozen=True, slots=True)
class FilesRequest:
    """The files below `start` whose path from there fits `glob`; the newest `max_results`."""

    root: str
    start: str
    glob: str
    max_results: int
    deadline_seconds: float


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
    fits = matcher(request.glob) if request.glob.strip() else None
    found = files = long_lines = 0
    for file in walk(request.root, request.start):
        if fits is not None and not fits(file.name) and file.name != request.start:
            continue
        files += 1
        for number, line, is_long in _lines(file):
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
            yield {"path": file.name, "line": number, "text": around(line, match.start())}
    yield {"end": "done", "files": files, "long_lines": long_lines}


def list_files(request: FilesRequest) -> Iterator[dict[str, Any]]:
    """Names, the newest first, then one record of how it ended with how many there are."""
    end = time.monotonic() + request.deadline_seconds
    fits = matcher(request.glob)
    prefix = "" if request.start == "." else f"{request.start}/"
    found: list[tuple[int, str]] = []
    how = "done"
    for file in walk(request.root, request.start, with_facts=True):
        if time.monotonic() > end:
            how = "deadline"
            break
        if file.facts is not None and fits(file.name.removeprefix(prefix)):
            found.append((-file.facts.st_mtime_ns, file.name))
    for _, name in sorted(found)[: request.max_results]:
        yield {"path": name}
    yield {"end": how, "files": len(found)}


def around(line: str, at: int) -> str:
    """The part of a long line that shows the match."""
    if len(line) <= SHOWN_CHARS:
        return line
    first = max(0, min(at - SHOWN_CHARS // 3, len(line) - SHOWN_CHARS))
    last = first + SHOWN_CHARS
    return ("…" if first else "") + line[first:last] + ("…" if last < len(line) else "")


def _lines(found: Found) -> Iterator[tuple[int, str, bool]]:
    """Number, text up to the limit, whether there was more; nothing of a binary file or one that cannot be read."""
    try:
        handle = found.open()
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


def main() -> None:
    """One request from stdin, its records to stdout as they come."""
    try:
        asked = json.load(sys.stdin)
        if hasattr(signal, "setitimer"):
            # Nobody is left to stop it where nca itself was killed; the alarm's default action ends the process.
            signal.setitimer(signal.ITIMER_REAL, asked["deadline_seconds"] + _LAST_SECONDS)
        records = search(Request(**asked)) if "pattern" in asked else list_files(FilesRequest(**asked))
        for record in records:
            sys.stdout.write(json.dumps(record) + "\n")
            sys.stdout.flush()
    except ValueError as error:
        # Such as a glob that is no pattern.
        sys.stdout.write(json.dumps({"error": str(error)}) + "\n")
