"""One settings file, read without trusting it: any bytes give a Document or one ConfigError, never a hang.

Used by the layers (reading) and by saving. A project's file may come from anyone, so it is bounded in size and
nesting, and only an ordinary file is opened.
"""

from __future__ import annotations

import os
import re
import stat
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nca.errors import ConfigError

MAX_BYTES = 1 << 20
MAX_DEPTH = 12
"""Tables within tables. nca's own settings and the seeds' need four."""

_KEY = r"""(?:[A-Za-z0-9_-]++|"[^"\n]*+"|'[^'\n]*+')"""
# tomllib needs time and memory quadratic in a dotted key's parts, so a key with thousands of them is refused unread.
_ENDLESS_KEY = re.compile(rf"(?<![A-Za-z0-9_-]){_KEY}(?:[ \t]*+\.[ \t]*+{_KEY}){{200}}")
_HEADER = re.compile(rf"\s*\[(\[?)\s*({_KEY}(?:\s*\.\s*{_KEY})*)\s*\]")
_ASSIGNMENT = re.compile(rf"\s*({_KEY}(?:\s*\.\s*{_KEY})*)\s*=")
_PART = re.compile(_KEY)
_PLACE = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")

KeyPath = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Document:
    """A parsed file. `text` has no byte order mark; `lines` tells where a key is written, counted from 1.

    A table of a list is found under the list's path and its number, counted from 1 too: ("context", "section", "2").
    """

    path: Path
    text: str
    data: dict[str, Any]
    lines: dict[KeyPath, int] = field(default_factory=dict)

    def place(self, path: KeyPath, *inner: str) -> str:
        """`FILE:LINE` of a key, of the nearest table around it, or only the file where neither is found.

        `inner` leads on into a value that is a list of tables.
        """
        path = (*path, *inner)
        for length in range(len(path), 0, -1):
            if line := self.lines.get(path[:length]):
                return f"{shown_path(self.path)}:{line}"
        return shown_path(self.path)


def read_document(path: Path) -> Document | None:
    """The file's settings; None where there is no such file. Raises ConfigError on everything else."""
    raw = _read_bytes(path)
    if raw is None:
        return None
    import tomllib

    where = shown_path(path)
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{where}: not UTF-8 text (byte {error.start + 1}).") from None
    if _ENDLESS_KEY.search(text):
        raise ConfigError(f"{where}: a key has too many parts.")
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(_syntax_error(where, text, str(error))) from None
    except RecursionError:
        raise ConfigError(f"{where}: nested too deeply.") from None
    except ValueError:
        # Such as a number of five thousand digits, or a date that does not exist.
        raise ConfigError(f"{where}: a value cannot be read.") from None
    return Document(path, text, data, _index(text))


def leaves(data: dict[str, Any], path: Path, whole: Collection[KeyPath] = ()) -> Iterator[tuple[KeyPath, Any]]:
    """Every value with its path, in the file's order; an empty table counts as a value, and so do those at `whole`.

    Raises ConfigError beyond MAX_DEPTH.
    """

    def walk(prefix: KeyPath, table: dict[str, Any]) -> Iterator[tuple[KeyPath, Any]]:
        if len(prefix) >= MAX_DEPTH:
            raise ConfigError(f"{shown_path(path)}: nested too deeply.")
        for key, value in table.items():
            if isinstance(value, dict) and value and (*prefix, key) not in whole:
                yield from walk((*prefix, key), value)
            else:
                yield (*prefix, key), value

    return walk((), data)


def shown_path(path: Path) -> str:
    """A path as it may be printed: one line, no control characters, no lone surrogates."""
    text = str(path)
    return text if text.isprintable() else ascii(text)[1:-1]


def shown_name(name: str) -> str:
    """A setting's name as someone wrote it, shortened and safe to print."""
    cut = name if len(name) <= 80 else name[:79] + "…"
    return cut if cut.isprintable() else ascii(cut)[1:-1]


def shown_value(value: Any) -> str:
    """A refused value, in one short line."""
    if isinstance(value, bool):
        return str(value).lower()
    try:
        text = ascii(value) if isinstance(value, str) and not value.isprintable() else repr(value)
    except (ValueError, RecursionError):
        return "(something too long to show)"
    return text if len(text) <= 80 else text[:79] + "…"


def _read_bytes(path: Path) -> bytes | None:
    where = shown_path(path)
    try:
        # Without O_NONBLOCK a pipe in place of the file would wait for a writer for ever.
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ConfigError(f"{where}: cannot be read ({error.strerror}).") from error
    except ValueError as error:
        raise ConfigError(f"{where}: not a path.") from error
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise ConfigError(f"{where}: not a file.")
        with os.fdopen(handle, "rb", closefd=False) as file:
            raw = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"{where}: cannot be read ({error.strerror}).") from error
    finally:
        os.close(handle)
    if len(raw) > MAX_BYTES:
        raise ConfigError(f"{where}: larger than 1 MiB, which no settings file is.")
    return raw


def _syntax_error(where: str, text: str, message: str) -> str:
    """`FILE:LINE:COLUMN: what`; tomllib tells the place only in the message."""
    match = _PLACE.search(message)
    if match is None:
        return f"{where}: {message}."
    line, column = match[1], match[2]
    if line is None:
        line, column = str(text.count("\n") + 1), str(len(text) - text.rfind("\n"))
    what = message[: min(match.start(), 120)]
    return f"{where}:{line}:{column}: {what}{' at the end of the file' if match[1] is None else ''}."


def _index(text: str) -> dict[KeyPath, int]:
    """The line of each table and key, by a look at the lines; only messages depend on it."""
    table: KeyPath = ()
    lines: dict[KeyPath, int] = {}
    rows: Counter[KeyPath] = Counter()
    for number, line in enumerate(text.split("\n"), start=1):
        if match := _HEADER.match(line):
            table = _parts(match[2])
            lines.setdefault(table, number)
            if match[1]:
                rows[table] += 1
                table = (*table, str(rows[table]))
                lines[table] = number
        elif match := _ASSIGNMENT.match(line):
            lines.setdefault(table + _parts(match[1]), number)
    return lines


def _parts(dotted: str) -> KeyPath:
    return tuple(part[1:-1] if part[0] in "\"'" else part for part in _PART.findall(dotted))
