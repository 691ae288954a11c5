"""Read the write-ahead log beside a database, also behind damage, where SQLite stops without a word.

Each frame is a page as one commit wrote it. Offsets are those of https://www.sqlite.org/fileformat2.html#walformat.
"""

from __future__ import annotations

import struct
import sys
from pathlib import Path
from typing import NamedTuple

_LOG_HEADER_BYTES, _FRAME_HEADER_BYTES = 32, 24
_LITTLE, _BIG = 0x377F0682, 0x377F0683
"""How a log begins: by it, its checksums add up words of this byte order."""
_WORD = 0xFFFF_FFFF


class Frames(NamedTuple):
    """Pages by number, in the order in which they were written, up to the last commit."""

    pages: list[tuple[int, bytes]]
    checked: int
    """How many of them SQLite reads: up to the last commit before the first wrong checksum."""

    @property
    def is_damaged(self) -> bool:
        """Whether something was committed that SQLite does not read.

        A power failure in the middle of a commit can look the same; salvage then keeps all that was committed before.
        """
        return self.checked < len(self.pages)


def read_frames(log: Path, page_bytes: int) -> Frames:
    """The frames of a log; none if there is no file. Raises OSError."""
    try:
        content = log.read_bytes()
    except FileNotFoundError:
        return Frames([], 0)
    size = _FRAME_HEADER_BYTES + page_bytes
    frames = [content[at : at + size] for at in range(_LOG_HEADER_BYTES, len(content) - size + 1, size)]
    magic, *_, first, second = struct.unpack(">8I", content[:_LOG_HEADER_BYTES].ljust(_LOG_HEADER_BYTES, b"\0"))
    order = {_LITTLE: "<", _BIG: ">"}.get(magic, "<" if sys.byteorder == "little" else ">")
    is_sound = magic in (_LITTLE, _BIG) and _checksum(content[:24], (0, 0), order) == (first, second)
    commits = [place for place, frame in enumerate(frames, 1) if frame[4:8] != bytes(4)]
    # Frames behind the last one with these salts were written before the log began anew.
    salts = content[16:24] if is_sound else b"".join(frames[place - 1][8:16] for place in commits[:1])
    last = max((place for place in commits if frames[place - 1][8:16] == salts), default=0)
    checked = 0
    running = (first, second)
    for place, frame in enumerate(frames[:last] if is_sound else [], 1):
        running = _checksum(frame[:8] + frame[_FRAME_HEADER_BYTES:], running, order)
        if frame[8:24] != salts + struct.pack(">2I", *running):
            break
        if frame[4:8] != bytes(4):
            checked = place
    pages = [(int.from_bytes(frame[:4]), frame[_FRAME_HEADER_BYTES:]) for frame in frames[:last]]
    return Frames(pages, checked)


def _checksum(content: bytes, seed: tuple[int, int], order: str) -> tuple[int, int]:
    first, second = seed
    words = iter(struct.unpack(f"{order}{len(content) // 4}I", content))
    for word, following in zip(words, words, strict=True):
        first = (first + word + second) & _WORD
        second = (second + following + first) & _WORD
    return first, second
