"""Read one settings file safely: any file gives a Document or a ConfigError, and never hangs.

A project's file may come from anyone, so its size and nesting are limited, and only ordinary files are opened.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from nca.config.commented_json import NotJson, parsed
from nca.config.paths import read_path
from nca.errors import ConfigError, UsageError, system_reason
from nca.safe_files import exclusively, open_ordinary

MAX_BYTES = 1 << 20
MAX_DEPTH = 12
"""Depth of nested tables. All known settings need four."""

_KEY = r"""(?:[A-Za-z0-9_-]++|"[^"\n]*+"|'[^'\n]*+')"""
# tomllib takes quadratic time and memory for a dotted key, so a key with hundreds of parts is refused first.
_ENDLESS_KEY = re.compile(rf"(?<![A-Za-z0-9_-]){_KEY}(?:[ \t]*+\.[ \t]*+{_KEY}){{200}}")
_HEADER = re.compile(rf"\s*\[(\[?)\s*({_KEY}(?:\s*\.\s*{_KEY})*)\s*\]")
_ASSIGNMENT = re.compile(rf"\s*({_KEY}(?:\s*\.\s*{_KEY})*)\s*=")
_PART = re.compile(_KEY)
_PLACE = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")

KeyPath = tuple[str, ...]


class Document(NamedTuple):
    """A parsed file. `text` has no byte order mark; `lines` maps each key to its line, from 1.

    The path of a table in a list ends with its number, from 1: ("context", "section", "2").
    is_grant: its settings are otherwise the user's only, and hold once the user trusts the project.
    """

    path: Path
    text: str
    data: dict[str, Any]
    lines: Mapping[KeyPath, int] = MappingProxyType({})
    is_grant: bool = False

    def place(self, path: KeyPath, *inner: str) -> str:
        """`FILE:LINE` of a key or of the nearest table around it, or `FILE`.

        `inner` leads to a part of the value, if it is a list of tables.
        """
        path = (*path, *inner)
        for length in range(len(path), 0, -1):
            if line := self.lines.get(path[:length]):
                return f"{shown_path(self.path)}:{line}"
        return shown_path(self.path)


def read_document(path: Path) -> Document | None:
    """The parsed file, None if there is none. Raises ConfigError for everything else."""
    raw = read_bytes(path)
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
        # Such as a number of five thousand digits, or an impossible date.
        raise ConfigError(f"{where}: a value cannot be read.") from None
    return Document(path, text, data, _index(text))


def leaves(data: dict[str, Any], path: Path, whole: Collection[KeyPath] = ()) -> Iterator[tuple[KeyPath, Any]]:
    """Every value with its path, in the file's order. Empty tables are values, and so are tables at `whole`.

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


def read_folder(value: Any, name: str) -> Path:
    """The absolute path of a folder that a program passes. Raises UsageError if there is none."""
    path = read_path(value, name).absolute()
    if not os.path.isdir(path):
        raise UsageError(f"{name}: {shown_path(path)} is no folder.")
    return path


def shown_path(path: Path) -> str:
    """A path that is safe to print: one line, no control characters, no lone surrogates."""
    text = str(path)
    return text if text.isprintable() else ascii(text)[1:-1]


def shown_name(name: str) -> str:
    """A setting's name, shortened and safe to print."""
    cut = name if len(name) <= 80 else name[:79] + "…"
    return cut if cut.isprintable() else ascii(cut)[1:-1]


def shown_value(value: Any) -> str:
    """A refused value, in one short line that is safe to print."""
    if isinstance(value, bool):
        return str(value).lower()
    try:
        text = ascii(value) if isinstance(value, str) and not value.isprintable() else repr(value)
    except (ValueError, RecursionError):
        return "(too long to show)"
    return text if len(text) <= 80 else text[:79] + "…"


def read_json(path: Path) -> Any:
    """The JSON of a settings file, which may have comments; {} if there is none. Raises ConfigError."""
    raw = read_bytes(path)
    try:
        return parsed(raw.decode("utf-8-sig")) if raw is not None else {}
    except UnicodeDecodeError:
        raise ConfigError(f"{shown_path(path)}: it is not JSON.") from None
    except NotJson as reason:
        raise ConfigError(f"{shown_path(path)}: {reason}.") from None


def read_bytes(path: Path, most_bytes: int = MAX_BYTES) -> bytes | None:
    """The bytes of a settings file, None if there is none. Raises ConfigError."""
    where = shown_path(path)
    try:
        with open_ordinary(path) as file:
            raw = file.read(most_bytes + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ConfigError(f"{where}: cannot be read ({system_reason(error)}).") from error
    except ValueError as error:
        raise ConfigError(f"{where}: not a path.") from error
    if len(raw) > most_bytes:
        raise ConfigError(f"{where}: larger than {most_bytes >> 20} MiB, which no settings file is.")
    return raw


def _syntax_error(where: str, text: str, message: str) -> str:
    """`FILE:LINE:COLUMN: what`; tomllib gives the position only in the message."""
    match = _PLACE.search(message)
    if match is None:
        return f"{where}: {message}."
    line, column = match[1], match[2]
    if line is None:
        line, column = str(text.count("\n") + 1), str(len(text) - text.rfind("\n"))
    what = message[: min(match.start(), 120)]
    return f"{where}:{line}:{column}: {what}{' at the end of the file' if match[1] is None else ''}."


def _index(text: str) -> dict[KeyPath, int]:
    """The line of each table and key, found with simple patterns, for messages only."""
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


@contextlib.contextmanager
def alone(path: Path, *, mode: int = 0o700) -> Iterator[None]:
    """To change a file: no other nca changes it meanwhile. `mode` of its folder, if that is missing.

    Raises ConfigError, also for an OSError of the block.
    """
    try:
        with exclusively(path, mode=mode):
            yield
    except OSError as error:
        raise ConfigError(f"{shown_path(path)}: cannot be written ({system_reason(error)}).") from error
