"""How much an archive may hold, checked while it is read, before memory or the disk is full.

An archive's file may come from anywhere, and a few kilobytes of it may unpack to terabytes. What nca archives is read
back within the same limits before the session leaves the store, so everything archived can be restored.
"""

from __future__ import annotations

import io
import stat
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from nca.errors import InvalidMessages
from nca.ordinary_files import open_ordinary


class Limits(NamedTuple):
    """Of one JSON part.

    size_bytes  unpacked
    values      objects, arrays and what is in them: an empty object is three bytes in the file, and 64 in memory
    depth       what nests deeper could be written to the store, and not be read again from deeper in the program
    """

    size_bytes: int
    values: int
    depth: int


SESSION = Limits(512 << 20, 30_000_000, 100)
"""Twice what a session of a million messages has. Memory has to hold the bytes several times."""
INFO = Limits(1 << 20, 1_000, 10)
MOST_OUTPUT_BYTES = 8 << 30
MOST_OUTPUTS = 200_000
_MOST_AT_ONCE = 64 << 20
"""zipfile reads the list of members in one piece and keeps all of them: room for more than MOST_OUTPUTS."""
_PIECE_BYTES = 1 << 20
_STEPS = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
_NO_BRACKETS = bytes(byte for byte in range(256) if byte not in _STEPS)
_NOT_COUNTED = bytes(byte for byte in range(256) if byte not in b"[{,")


@contextmanager
def open_archive(path: Path) -> Iterator[zipfile.ZipFile]:
    """Open an archive for reading. Raises OSError, zipfile.BadZipFile."""
    with _Bounded(open_ordinary(path).detach()) as file, zipfile.ZipFile(file) as archive:  # type: ignore[attr-defined]
        yield archive


def check_outputs(members: list[zipfile.ZipInfo], place: str) -> None:
    """Raise InvalidMessages if the outputs are too many or too large, or if one is no file. zipfile unpacks no more of
    a member than it declares."""
    if len(members) > MOST_OUTPUTS:
        raise InvalidMessages(f"{place}: holds {len(members):,} outputs; valid: at most {MOST_OUTPUTS:,}.")
    check_output_bytes(sum(member.file_size for member in members), place)
    for member in members:
        kind = stat.S_IFMT(member.external_attr >> 16)
        if kind not in (0, stat.S_IFREG):
            raise InvalidMessages(f"{place}: {member.filename!r} is a link or no file; valid: files.")


def check_output_bytes(count: int, place: str) -> None:
    if count > MOST_OUTPUT_BYTES:
        raise InvalidMessages(f"{place}: its outputs unpack to more than {MOST_OUTPUT_BYTES >> 30} GiB, the limit.")


def read_json(archive: zipfile.ZipFile, name: str, limits: Limits, place: str) -> bytes:
    """The bytes of a JSON member. Raises InvalidMessages at the first piece that goes beyond a limit."""
    read = bytearray()
    with archive.open(name) as file:
        for piece in checked(iter(lambda: file.read(_PIECE_BYTES), b""), limits, f"{place}: {name}"):
            read += piece
    return bytes(read)


def checked(pieces: Iterable[bytes], limits: Limits, place: str) -> Iterator[bytes]:
    """The pieces of a JSON text, each after it was found to be within the limits. Raises InvalidMessages."""
    size = values = depth = 0
    is_in_text, held = False, b""
    for piece in pieces:
        size += len(piece)
        # A piece may end between a backslash and what it escapes.
        plain = (held + piece).replace(b"\\\\", b"").replace(b'\\"', b"")
        held = b"\\" if plain.endswith(b"\\") else b""
        runs = plain.split(b'"')
        outside = b"".join(runs[int(is_in_text) :: 2])
        is_in_text ^= len(runs) % 2 == 0
        values += len(outside.translate(None, _NOT_COUNTED))
        depths = list(accumulate(map(_STEPS.__getitem__, outside.translate(None, _NO_BRACKETS)), initial=depth))
        depth = depths[-1]
        if size > limits.size_bytes:
            raise InvalidMessages(f"{place}: unpacks to more than {limits.size_bytes >> 20} MiB, the limit.")
        if values > limits.values:
            raise InvalidMessages(f"{place}: holds more than {limits.values:,} values, the limit.")
        if max(depths) > limits.depth:
            raise InvalidMessages(f"{place}: is nested deeper than {limits.depth} levels, the limit.")
        yield piece


class _Bounded(io.BufferedReader):
    """A file of which nobody reads more at once than _MOST_AT_ONCE."""

    def read(self, size: int | None = -1) -> bytes:
        if size is None or size < 0 or size > _MOST_AT_ONCE:
            data = super().read(_MOST_AT_ONCE + 1)
            if len(data) > _MOST_AT_ONCE:
                raise zipfile.BadZipFile(f"its list of files is larger than {_MOST_AT_ONCE >> 20} MiB")
            return data
        return super().read(size)
