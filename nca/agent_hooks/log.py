"""What the hooks handed over, and what went wrong: a file of JSON lines that only its owner can read."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

import msgspec

from nca.agent_hooks.client import LOG
from nca.safe_files import open_ordinary, write_atomically

MOST_BYTES = 2 * 1024 * 1024
"""Of a longer log the newer half stays."""


class Line(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One event.

    event    the hook's, as the agent names it
    text     what was handed over
    problem  why nothing was, where something should have been
    ms       how long the hook waited for nca, without the start of its program; None if it had gone by then
    """

    at: float
    agent: str
    event: str = ""
    session: str = ""
    directory: str = ""
    text: str = ""
    problem: str = ""
    ms: int | None = None


class Log:
    def __init__(self, folder: Path) -> None:
        self._path = folder / LOG

    def add(self, line: Line) -> None:
        """Write a line. A disk that takes no more is no reason to disturb an agent."""
        with suppress(OSError):
            with open_ordinary(self._path, "ab", follows_links=False) as file:
                file.write(msgspec.json.encode(line) + b"\n")
                size = file.tell()
            if size > MOST_BYTES:
                kept = self._raw()[-MOST_BYTES // 2 :].partition(b"\n")[2]
                write_atomically(self._path, kept)

    def lines(self) -> list[Line]:
        """Oldest first; without lines that are damaged. Raises OSError."""
        found = []
        for row in self._raw().splitlines():
            with suppress(msgspec.DecodeError):
                found.append(msgspec.json.decode(row, type=Line))
        return found

    def _raw(self) -> bytes:
        try:
            with open_ordinary(self._path, follows_links=False) as file:
                return file.read()
        except FileNotFoundError:
            return b""


def now() -> float:
    return round(time.time(), 3)
