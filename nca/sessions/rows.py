"""The bytes of a row in a database file (numbers, values, the text in what is not a row), and the frames of its log.

Formats are those of https://www.sqlite.org/fileformat2.html#record_format.
"""

from __future__ import annotations

import re
import struct
import sys
from collections.abc import Iterator
from itertools import groupby, pairwise
from math import isnan
from pathlib import Path
from typing import NamedTuple

Value = None | int | float | str | bytes

_BYTES = {0: 0, 1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8, 7: 8, 8: 0, 9: 0}
_FIRST_TEXT = 12
_MOST_COLUMNS_BYTES = 255
_TEXT = re.compile(rb"[\x20-\x7e\x80-\xff]{24,}")
_MOST_WRONG_RATIO = 0.05
"""Text has fewer bytes that are not UTF-8; random bytes have more."""


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
    """The values of a row of `length` bytes; the payload may have fewer. Raises IndexError or ValueError.

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


_LOG_HEADER_BYTES, _FRAME_HEADER_BYTES = 32, 24
_LITTLE, _BIG = 0x377F0682, 0x377F0683
"""The first bytes of a log: its checksums add up words in this byte order."""
_WORD = 0xFFFF_FFFF
_NOT_LAST = bytes(4)
"""The last frame of a commit has the size of the database here."""


class Frame(NamedTuple):
    """A page as it was written. `is_sound`: it is as its checksum says."""

    page: int
    content: bytes
    is_sound: bool


class Frames(NamedTuple):
    """The frames of a log in their order.

    committed  of this log, up to its last commit
    checked    how many of them SQLite reads: up to the last commit before the first wrong checksum
    loose      frames without a commit, a frame that breaks off, and those from before the log started over;
               oldest first
    """

    committed: list[Frame]
    checked: int
    loose: list[Frame]

    @property
    def is_damaged(self) -> bool:
        """Whether something was committed that SQLite does not read.

        A power failure in the middle of a commit can look the same; recovery then keeps all that was committed before.
        """
        return self.checked < len(self.committed)


def read_frames(log: Path, page_bytes: int) -> Frames:
    """The frames of a log; none if there is no file. Raises OSError."""
    try:
        content = log.read_bytes()
    except FileNotFoundError:
        return Frames([], 0, [])
    size = _FRAME_HEADER_BYTES + page_bytes
    ends = len(content) - _FRAME_HEADER_BYTES
    frames = [content[at : at + size].ljust(size, b"\0") for at in range(_LOG_HEADER_BYTES, ends, size)]
    whole = max(0, len(content) - _LOG_HEADER_BYTES) // size
    magic, *_, first, second = struct.unpack(">8I", content[:_LOG_HEADER_BYTES].ljust(_LOG_HEADER_BYTES, b"\0"))
    order = {_LITTLE: "<", _BIG: ">"}.get(magic, "<" if sys.byteorder == "little" else ">")
    has_header = magic in (_LITTLE, _BIG) and _checksum(content[:24], (0, 0), order) == (first, second)
    salts = content[16:24] if has_header else _newest_salts(frames[:whole], order)
    commits = [place for place, frame in enumerate(frames[:whole], 1) if frame[4:8] != _NOT_LAST]
    last = max((place for place in commits if frames[place - 1][8:16] == salts), default=0)
    while last < whole and _follows(frames[last], frames[last - 1][16:24] if last else content[24:32], order):
        last += 1  # its salts are damaged, or no commit completed it
    last = max((place for place in commits if place <= last), default=0)
    found = []
    before = content[24:32]
    for frame in frames[:last]:
        found.append(Frame(int.from_bytes(frame[:4]), frame[_FRAME_HEADER_BYTES:], _follows(frame, before, order)))
        before = frame[16:24]
    checked = 0
    for place, (frame, one) in enumerate(zip(frames, found, strict=False), 1):
        if not (has_header and one.is_sound and frame[8:16] == salts):
            break
        if frame[4:8] != _NOT_LAST:
            checked = place
    runs = [list(run) for _, run in groupby(frames[last:], lambda frame: frame[8:16])]
    older = [frame for run in reversed(runs) for frame in run]  # the frame written first comes last
    loose = [Frame(int.from_bytes(frame[:4]), frame[_FRAME_HEADER_BYTES:], False) for frame in older]
    return Frames(found, checked, loose)


def _newest_salts(frames: list[bytes], order: str) -> bytes:
    """The salts of the log that comes first: of its first frame that follows from the one before it."""
    for before, frame in pairwise(frames):
        if frame[8:16] == before[8:16] and _follows(frame, before[16:24], order):
            return frame[8:16]
    return frames[0][8:16] if frames else b""


def _follows(frame: bytes, before: bytes, order: str) -> bool:
    """Whether a frame's checksum is that of its content, after a frame with the checksum `before`."""
    seed = struct.unpack(">2I", before)
    return struct.pack(">2I", *_checksum(frame[:8] + frame[_FRAME_HEADER_BYTES:], seed, order)) == frame[16:24]


def _checksum(content: bytes, seed: tuple[int, ...], order: str) -> tuple[int, int]:
    first, second = seed
    words = iter(struct.unpack(f"{order}{len(content) // 4}I", content))
    for word, following in zip(words, words, strict=True):
        first = (first + word + second) & _WORD
        second = (second + following + first) & _WORD
    return first, second
