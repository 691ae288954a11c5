"""The bytes of a row in a database file: numbers, values, and the text in what is no row.

Formats are those of https://www.sqlite.org/fileformat2.html#record_format.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from math import isnan

Value = None | int | float | str | bytes

_BYTES = {0: 0, 1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8, 7: 8, 8: 0, 9: 0}
_FIRST_TEXT = 12
_MOST_COLUMNS_BYTES = 255
_TEXT = re.compile(rb"[\x20-\x7e\x80-\xff]{24,}")
_MOST_WRONG_RATIO = 0.05
"""Text has less bytes that are not UTF-8; random bytes have more."""


def varint(content: bytes, at: int) -> tuple[int, int]:
    """A number of one to nine bytes, and where it ends. Raises IndexError."""
    value = 0
    for place in range(at, at + 8):
        value = value << 7 | content[place] & 0x7F
        if content[place] < 0x80:
            return value, place + 1
    return value << 8 | content[at + 8], at + 9


def record_bytes(content: bytes, at: int) -> int:
    """The size of the row that begins here, by its own header. Raises IndexError or ValueError if there is none."""
    kinds, end = _kinds(content, at)
    return end - at + sum(_size(kind) for kind in kinds)


def values_of(payload: bytes, length: int) -> tuple[Value, ...]:
    """The values of a row of `length` bytes, of which the payload may have fewer. Raises IndexError or ValueError.

    A text ends where the payload does; other values that are missing there are NULL. If the row's header says another
    length, the longest text takes up the difference.
    """
    kinds, at = _kinds(payload, 0)
    sizes = [_size(kind) for kind in kinds]
    if difference := length - at - sum(sizes):
        longest = max(range(len(kinds)), key=lambda place: (kinds[place] >= _FIRST_TEXT, sizes[place]))
        if kinds[longest] < _FIRST_TEXT or sizes[longest] + difference < 0:
            raise ValueError("another length")
        sizes[longest] += difference
    is_cut = len(payload) < length
    values: list[Value] = []
    for kind, size in zip(kinds, sizes, strict=True):
        content = payload[at : at + size]
        values.append(None if is_cut and kind < _FIRST_TEXT and len(content) < size else _value(kind, size, content))
        at += size
    return tuple(values)


def text_runs(content: bytes) -> Iterator[str]:
    """The pieces of text in any bytes. In a stored text control characters are escaped, so they end a piece."""
    for match in _TEXT.finditer(content):
        text = match[0].decode("utf-8", "replace")
        if " " in text and text.count("\N{REPLACEMENT CHARACTER}") <= _MOST_WRONG_RATIO * len(text):
            yield text


def _kinds(content: bytes, at: int) -> tuple[list[int], int]:
    """How each value is stored, and where the first one begins."""
    length, place = varint(content, at)
    end = at + length
    if not 1 < length <= _MOST_COLUMNS_BYTES:
        raise ValueError("no header of a row")
    kinds = []
    while place < end:
        kind, place = varint(content, place)
        kinds.append(kind)
    if place != end:
        raise ValueError("no header of a row")
    return kinds, end


def _size(kind: int) -> int:
    size = _BYTES.get(kind, (kind - _FIRST_TEXT) // 2)
    if size < 0:
        raise ValueError(f"no kind of value: {kind}")
    return size


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
