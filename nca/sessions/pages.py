"""Read rows from the pages of a damaged database, without SQLite, which gives up where a tree is broken.

Each page that holds rows of a table is read by itself; a cell that makes no sense is skipped. Offsets and values are
those of https://www.sqlite.org/fileformat2.html.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Iterator
from itertools import chain
from math import isnan
from typing import BinaryIO, NamedTuple

from nca.sessions.file_header import HEADER_BYTES

Value = None | int | float | str | bytes

_TABLE_LEAF, _INDEX_LEAF, _INDEX_INTERIOR = 13, 10, 2
_HEADER = struct.Struct(">xxxHxxxI")
"""Of a page: the number of cells; the last child, which only interior pages have."""
_LEAST_CELL_BYTES = 6
_TRUNK = struct.Struct(">II")
"""Of a page of the freelist: the next one; how many free pages it names."""
_BYTES = {0: 0, 1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8, 7: 8, 8: 0, 9: 0}
_FIRST_TEXT = 12


class Record(NamedTuple):
    """A row as it is stored: its rowid (0 in an index) and its values. A text that breaks off ends there."""

    rowid: int
    values: tuple[Value, ...]


class Pages:
    """The pages of a file, below those of its write-ahead log. `size`: the bytes of a page."""

    def __init__(self, file: BinaryIO, size: int, newer: Iterable[tuple[int, bytes]]) -> None:
        self._file = file
        self._size = size
        self._newer = dict(newer)
        self._in_file = -(-os.fstat(file.fileno()).st_size // size)

    def leaves(self) -> Iterator[tuple[int, list[Record]]]:
        """The number and the rows of each page that holds rows of a table."""
        for number in chain(range(1, self._in_file + 1), [number for number in self._newer if number > self._in_file]):
            page = self._page(number)
            if page[_start(number)] == _TABLE_LEAF:
                yield number, list(self._records(page, _start(number)))

    def index(self, root: int) -> Iterator[Record]:
        """The rows of the tree of a table without a rowid."""
        waiting, seen = [root], set[int]()
        while waiting:
            number = waiting.pop()
            page = self._page(number)
            if number in seen or page[0] not in (_INDEX_LEAF, _INDEX_INTERIOR):
                continue
            seen.add(number)
            yield from self._records(page, 0)
            if page[0] == _INDEX_INTERIOR:
                cells, last = _HEADER.unpack_from(page)
                places = struct.unpack_from(f">{min(cells, self._size // _LEAST_CELL_BYTES)}H", page, 12)
                waiting += [last, *(_number(page, place % self._size) for place in places)]

    def freed(self) -> set[int]:
        """The pages of the freelist, as far as it makes sense. They hold what was deleted."""
        freed: set[int] = set()
        trunk = _number(self._page(1), 32)
        while trunk and trunk not in freed:
            page = self._page(trunk)
            following, count = _TRUNK.unpack_from(page)
            if count > self._size // 4 - 2:
                break
            freed |= {trunk, *struct.unpack_from(f">{count}I", page, _TRUNK.size)}
            trunk = following
        return freed

    def _page(self, number: int) -> bytes:
        """A page; bytes that the file does not have are 0."""
        if number in self._newer:
            return self._newer[number]
        content = os.pread(self._file.fileno(), self._size, (number - 1) * self._size) if number else b""
        return content.ljust(self._size, b"\0")

    def _records(self, page: bytes, start: int) -> Iterator[Record]:
        cells, _ = _HEADER.unpack_from(page, start)
        first = start + (12 if page[start] == _INDEX_INTERIOR else 8)
        last = min(first + 2 * cells, self._size - 1)
        for place in range(first, last, 2):
            cell = int.from_bytes(page[place : place + 2]) % self._size
            try:
                yield self._record(page, cell, page[start])
            except (IndexError, ValueError):
                continue

    def _record(self, page: bytes, at: int, kind: int) -> Record:
        length, at = _varint(page, at + (4 if kind == _INDEX_INTERIOR else 0))
        rowid, at = _varint(page, at) if kind == _TABLE_LEAF else (0, at)
        most = self._size - 35 if kind == _TABLE_LEAF else (self._size - 12) * 64 // 255 - 23
        least = (self._size - 12) * 32 // 255 - 23
        local = length
        if length > most:
            local = least + (length - least) % (self._size - 4)
            local = least if local > most else local
        payload = page[at : at + local]
        if length > local:
            payload += self._overflow(_number(page, at + local), length - local)
        return Record(rowid if rowid < 1 << 63 else rowid - (1 << 64), _values(payload))

    def _overflow(self, number: int, length: int) -> bytes:
        parts: list[bytes] = []
        seen: set[int] = set()
        while number and number not in seen and length > 0:
            seen.add(number)
            page = self._page(number)
            parts.append(page[4 : 4 + length])
            number = _number(page, 0)
            length -= len(parts[-1])
        return b"".join(parts)


def _start(number: int) -> int:
    """Where a page's own header begins."""
    return HEADER_BYTES if number == 1 else 0


def _number(page: bytes, place: int) -> int:
    return int.from_bytes(page[place : place + 4])


def _varint(content: bytes, at: int) -> tuple[int, int]:
    """A number of one to nine bytes, and where it ends. Raises IndexError."""
    value = 0
    for place in range(at, at + 8):
        value = value << 7 | content[place] & 0x7F
        if content[place] < 0x80:
            return value, place + 1
    return value << 8 | content[at + 8], at + 9


def _values(payload: bytes) -> tuple[Value, ...]:
    """The values of a record. Raises IndexError or ValueError if it is none."""
    header, at = _varint(payload, 0)
    kinds = []
    while at < header:
        kind, at = _varint(payload, at)
        kinds.append(kind)
    values = []
    for kind in kinds:
        size = _BYTES.get(kind, (kind - _FIRST_TEXT) // 2)
        if size < 0:
            raise ValueError(f"no kind of value: {kind}")
        values.append(_value(kind, size, payload[at : at + size]))
        at += size
    return tuple(values)


def _value(kind: int, size: int, content: bytes) -> Value:
    if kind >= _FIRST_TEXT:
        return content.decode("utf-8", "replace") if kind % 2 else content
    if len(content) < size:
        raise ValueError("cut short")
    match kind:
        case 0:
            return None
        case 8 | 9:
            return kind - 8
        case 7:
            real: float = struct.unpack(">d", content)[0]
            return None if isnan(real) else real  # as SQLite reads it
        case _:
            return int.from_bytes(content, signed=True)
