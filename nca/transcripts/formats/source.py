"""What a reader reads: a file, or bytes from standard input. Lines come with their numbers, one at a time."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cached_property
from hashlib import blake2b
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from nca.errors import InvalidMessages, install_command, system_reason
from nca.messages import clean_text
from nca.safe_files import open_ordinary
from nca.transcripts.formats.row import Row, decode, parsed, row_of

HEAD_BYTES = 64 * 1024
"""How much a format may look at to recognise its file. Claude Code's first lines may hold a long first message."""
_DIGESTED_BYTES = 4_096
MAX_LINE_BYTES = 256 * 1024 * 1024
"""A longer line is not read: memory has to hold it several times."""
_LONGEST_LINE_BYTES = 8192
_ZSTANDARD = b"\x28\xb5\x2f\xfd"


class BadLine(msgspec.Struct, frozen=True):
    """A line that is not JSON. `is_cut`: the last line, without its end: the agent is writing it, or was stopped."""

    number: int
    reason: str
    is_cut: bool = False


class Source:
    """A file or bytes. `place` names it in messages; `start` is the byte where `rows` begins.

    Every method that reads raises InvalidMessages, which names the place, if the file cannot be read.
    """

    def __init__(self, place: str, *, path: Path | None = None, raw: bytes = b"", start: int = 0) -> None:
        self.place = place
        self.path = path
        self.start = start
        self.line_at: int | None = None
        """Where the line begins that `rows` came to; None before and behind all lines."""
        self._raw = raw

    @classmethod
    def of_file(cls, path: Path, start: int = 0) -> Source:
        """Its `path` is absolute: it may be stored, and tells the directory of a session that names none."""
        absolute = path if path.is_absolute() else path.parent.resolve() / path.name
        return cls(str(path), path=absolute, start=start)

    def digest(self, end: int) -> bytes:
        """Of the first 4 KiB and the 4 KiB before `end`: it tells a file that has grown from another one. b"" if it
        has not so many bytes, or cannot be read."""
        with suppress(OSError, InvalidMessages), self.open() as file:
            head = file.read(min(end, _DIGESTED_BYTES))
            file.seek(max(0, end - _DIGESTED_BYTES))
            tail = file.read(min(end, _DIGESTED_BYTES))
            if len(tail) == min(end, _DIGESTED_BYTES):
                return blake2b(head + tail, digest_size=16).digest()
        return b""

    @property
    def is_folder(self) -> bool:
        return self.path is not None and os.path.isdir(self.path)

    def open(self) -> BinaryIO:
        if self.path is None:
            return _uncompressed(io.BytesIO(self._raw), self.place)
        try:
            return _uncompressed(open_ordinary(self.path), self.place)
        except (OSError, ValueError) as error:
            raise self._unreadable(error) from error

    @cached_property
    def head(self) -> bytes:
        """The first HEAD_BYTES."""
        with self._reading() as file:
            return file.read(HEAD_BYTES)

    @cached_property
    def first_rows(self) -> tuple[Row, ...]:
        """The objects in the head's whole lines; what is not an object is left out. For `Format.knows`."""
        lines = self.head.split(b"\n")
        whole = lines if len(self.head) < HEAD_BYTES else lines[:-1]
        return tuple(Row(row) for line in whole if isinstance(row := parsed(line), dict))

    @property
    def first_row(self) -> Row:
        return self.first_rows[0] if self.first_rows else Row()

    def read(self) -> bytes:
        """The whole content."""
        with self._reading() as file:
            return file.read()

    def value(self) -> Any:
        """The content as one JSON value. Raises InvalidMessages, which says what is wrong."""
        try:
            return decode(self.read())
        except (ValueError, RecursionError) as error:
            raise InvalidMessages(f"{self.place}: is not JSON ({error}).") from error

    def rows(self) -> Iterator[tuple[int, Row] | BadLine]:
        """The objects of a file of JSON lines with their line numbers. Values that are not objects are BadLines."""
        with self._reading() as file:
            number, line_at = 0, self.start
            if self.start:
                file.seek(self.start)
            while line := file.readline(MAX_LINE_BYTES + 1):
                number, self.line_at = number + 1, line_at
                line_at += len(line)
                if len(line) > MAX_LINE_BYTES:
                    yield BadLine(number, f"is longer than {MAX_LINE_BYTES >> 20} MB")
                    while not line.endswith(b"\n") and (line := file.readline(MAX_LINE_BYTES + 1)):
                        line_at += len(line)
                    continue
                if line.isspace():
                    continue
                try:
                    rows = _decode_line(line)
                except (ValueError, RecursionError) as error:
                    yield BadLine(number, f"is not JSON ({error})", is_cut=not line.endswith(b"\n"))
                    continue
                for row in rows:
                    yield (number, Row(row)) if isinstance(row, dict) else BadLine(number, "is not an object")
            self.line_at = None

    @contextmanager
    def _reading(self) -> Iterator[BinaryIO]:
        with self.open() as file:
            try:
                yield file
            except OSError as error:
                raise self._unreadable(error) from error

    def _unreadable(self, error: OSError | ValueError) -> InvalidMessages:
        return InvalidMessages(f"{self.place}: cannot be read ({system_reason(error)}).")


def _decode_line(line: bytes) -> list[Any]:
    """The value of a line. Several objects if the line breaks between them are missing: two processes wrote at once.

    Raises as `decode` does.
    """
    try:
        return [decode(line)]
    except ValueError as refused:
        if b"}{" not in line:
            raise
        try:
            return list(_values(line.decode().strip()))
        except ValueError:
            raise refused from None


def _values(text: str) -> Iterator[Any]:
    """The JSON values that follow each other."""
    decoder, place = json.JSONDecoder(), 0
    while place < len(text):
        value, place = decoder.raw_decode(text, place)
        yield value


def _uncompressed(file: BinaryIO, place: str) -> BinaryIO:
    """The content of a file that may be compressed. Raises InvalidMessages if it is and cannot be read here."""
    start = file.read(len(_ZSTANDARD))
    file.seek(0)
    if start != _ZSTANDARD:
        return file
    try:
        zstandard = import_module("zstandard")
    except ImportError as error:
        file.close()
        raise InvalidMessages(
            f"{place}: is compressed with Zstandard, which this Python cannot read.",
            advice=f"To install what reads it: {install_command('zstandard')}. Or unpack it with `zstd -d`.",
        ) from error
    unpacker = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
    return io.BufferedReader(_Unpacked(unpacker, zstandard.ZstdError))


class _Unpacked(io.RawIOBase):
    """A stream whose faults are those of a file."""

    def __init__(self, unpacker: Any, fault: type[Exception]) -> None:
        self._unpacker = unpacker
        self._fault = fault

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data = self._unpacker.read(len(buffer))
        except self._fault as error:
            raise OSError(f"damaged: {error}") from error
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._unpacker.close()
        super().close()


def data_folder(env: Mapping[str, str], home: Path) -> Path:
    """Where programs keep their data by the XDG base directories."""
    given = env.get("XDG_DATA_HOME", "")
    return Path(given) if given.startswith("/") else home / ".local" / "share"


def chosen_folder(given: str | None, home: Path) -> Path | None:
    """The folder that an environment variable names, in which `~` is the home; None without one."""
    if not given:
        return None
    return home / given[2:] if given.startswith("~/") else home if given == "~" else Path(given)


def small_file(path: Path, most_bytes: int = -1) -> bytes:
    """The content of a small file of another program; b"" if it cannot be read."""
    try:
        with open_ordinary(path) as file:
            return file.read(most_bytes)
    except (OSError, ValueError):
        return b""


def first_line(path: Path) -> str:
    """The first line of a small file; "" if it cannot be read."""
    return clean_text(small_file(path, _LONGEST_LINE_BYTES).decode("utf-8", "replace").split("\n", 1)[0].strip())


def json_file(path: Path) -> Any:
    """The JSON of a small file; None if it cannot be read or is not JSON."""
    return parsed(small_file(path))


def row_file(path: Path) -> Row:
    """The object of a small file; an empty one if there is none."""
    return row_of(json_file(path))


def folders_above(env: Mapping[str, str]) -> list[Path]:
    """The folder that one works in, and those above it: some agents keep sessions beside the project."""
    given = env.get("PWD", "")
    return [Path(given), *Path(given).parents] if given.startswith("/") else []
