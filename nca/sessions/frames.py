"""Read the write-ahead log beside a database, also behind damage, where SQLite stops without a word.

Each frame is a page as one commit wrote it. Its checksum goes on from that of the frame before it, so each frame is
checked by itself and its neighbour, whatever the log's header says. The salts tell the frames of this log from those
that were written before it began anew. Offsets are those of https://www.sqlite.org/fileformat2.html#walformat.
"""

from __future__ import annotations

import struct
import sys
from itertools import groupby, pairwise
from pathlib import Path
from typing import NamedTuple

_LOG_HEADER_BYTES, _FRAME_HEADER_BYTES = 32, 24
_LITTLE, _BIG = 0x377F0682, 0x377F0683
"""How a log begins: by it, its checksums add up words of this byte order."""
_WORD = 0xFFFF_FFFF
_NOT_LAST = bytes(4)
"""Where the last frame of a commit has the size of the database."""


class Frame(NamedTuple):
    """A page as it was written. `is_sound`: it is as its checksum says."""

    page: int
    content: bytes
    is_sound: bool


class Frames(NamedTuple):
    """The frames of a log in the order in which they stand there.

    committed  of this log, up to its last commit
    checked    how many of them SQLite reads: up to the last commit before the first wrong checksum
    loose      what no commit completed, a frame that breaks off, and what was written before the log began anew;
               oldest first
    """

    committed: list[Frame]
    checked: int
    loose: list[Frame]

    @property
    def is_damaged(self) -> bool:
        """Whether something was committed that SQLite does not read.

        A power failure in the middle of a commit can look the same; salvage then keeps all that was committed before.
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
    older = [frame for run in reversed(runs) for frame in run]  # what was written first stands last
    loose = [Frame(int.from_bytes(frame[:4]), frame[_FRAME_HEADER_BYTES:], False) for frame in older]
    return Frames(found, checked, loose)


def _newest_salts(frames: list[bytes], order: str) -> bytes:
    """Those of the log that stands first: of its first frame that follows from the one before it."""
    for before, frame in pairwise(frames):
        if frame[8:16] == before[8:16] and _follows(frame, before[16:24], order):
            return frame[8:16]
    return frames[0][8:16] if frames else b""


def _follows(frame: bytes, before: bytes, order: str) -> bool:
    """Whether a frame's checksum is that of its content, behind a frame with the checksum `before`."""
    seed = struct.unpack(">2I", before)
    return struct.pack(">2I", *_checksum(frame[:8] + frame[_FRAME_HEADER_BYTES:], seed, order)) == frame[16:24]


def _checksum(content: bytes, seed: tuple[int, ...], order: str) -> tuple[int, int]:
    first, second = seed
    words = iter(struct.unpack(f"{order}{len(content) // 4}I", content))
    for word, following in zip(words, words, strict=True):
        first = (first + word + second) & _WORD
        second = (second + following + first) & _WORD
    return first, second
