"""Read rows from the pages of a damaged database, without SQLite, which gives up at a broken tree.

Each page that holds rows of a table is read by itself. If its cells make no sense, rows are found by their
beginning. A long row continues in a chain of other pages; a broken chain is joined again. Bytes that belong to
nothing in the end are returned as text. Offsets and values are those of https://www.sqlite.org/fileformat2.html.
"""

from __future__ import annotations

import os
import re
import struct
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import BinaryIO, NamedTuple

from nca.sessions.paths import HEADER_BYTES
from nca.sessions.rows import Frame, Value, record_bytes, text_runs, values_of, varint

_TABLE_LEAF, _TABLE_INTERIOR, _INDEX_LEAF, _INDEX_INTERIOR = 13, 5, 10, 2
_INTERIOR = (_TABLE_INTERIOR, _INDEX_INTERIOR)
_HEADER = struct.Struct(">xxxHxxxI")
"""In a page: the number of cells; the last child, which only interior pages have."""
_LEAST_CELL_BYTES = 6
_TRUNK = struct.Struct(">II")
"""In a page of the freelist: the next one; how many free pages it names."""
_ROW = re.compile(rb"(?=[\x03-\x1e]\x00[^\x0a\x0b])")
"""The beginning of a row with the rowid as first column: the size of its header, then NULL."""
_LINK_BYTES = 4
"""At the start of a page that continues a row: the page that continues it next."""


class Record(NamedTuple):
    """A row as it is stored: its rowid (0 in an index, or if it is not known) and its values.

    A text that breaks off ends there.
    """

    rowid: int
    values: tuple[Value, ...]


class _Cell(NamedTuple):
    """The beginning of a row: its page as read, the bytes of its payload, and whether it is in use, or in an index."""

    number: int
    page: bytes
    at: int
    length: int
    rowid: int
    is_live: bool
    is_key: bool = False


class Pages:
    """The pages of a file, below those of its write-ahead log. `size`: the bytes of a page.

    is_known  whether the bytes that look like a row belong to a table; only if no cell leads to them
    """

    def __init__(
        self,
        file: BinaryIO,
        size: int,
        committed: Sequence[Frame] = (),
        loose: Sequence[Frame] = (),
        is_known: Callable[[Record], bool] = bool,
    ) -> None:
        self._file = file
        self._is_known = is_known
        self._size = size
        self._in_file = -(-os.fstat(file.fileno()).st_size // size)
        self._written: defaultdict[int, list[Frame]] = defaultdict(list)
        most = max(self._in_file, int.from_bytes(self._in_the_file(1)[28:32])) + len(committed)
        for frame in committed:
            if frame.is_sound or frame.page <= most:
                self._written[frame.page].append(frame)
        loose = [*loose, *(frame for frame in committed if frame.page not in self._written)]
        # If the file is cut short, its earlier content is the only copy.
        expected = int.from_bytes(self._newest(1)[28:32])
        cut_off = [frame for frame in loose if self._in_file < frame.page <= expected]
        for frame in [frame for frame in cut_off if frame.page not in self._written]:
            self._written[frame.page].append(frame)
        self._loose = loose
        self._count = max(self._in_file, *self._written, 0)
        self._claimed: dict[int, int] = {}
        """The pages that rows continue in, each with the first one of its row."""
        self._trees: set[int] = set()
        self._free: set[int] = set()
        self._broken: list[_Cell] = []
        self._open: set[int] = set()
        """The pages that belong to nothing that was read so far."""
        self._left: list[tuple[int, bytes]] = []
        """The bytes of damaged pages beside the rows that were found there."""

    def records(self) -> Iterator[tuple[Record, bool]]:
        """The rows of all tables, and whether each is in use.

        Unused rows were deleted, or are older copies; if damage hides the newer one, they may be all there is.
        """
        self._free = self.freed()
        for number in range(1, self._count + 1):
            if number not in self._written and number > self._in_file:
                continue
            is_live = number not in self._free
            for content, is_sound in self._versions(number):
                yield from self._of_page(number, content, is_live=is_live)
                is_live = is_live and not is_sound
        for frame in reversed(self._loose):
            yield from self._of_page(frame.page, frame.content, is_live=False)
        self._open = {number for number in range(2, self._count + 1) if self._is_open(number)}
        for cell in self._broken:
            chain = self._joined(cell)
            for record in self._read(cell, chain):
                yield record, cell.is_live

    def fragments(self) -> Iterator[tuple[int, str]]:
        """The texts that belong to none of the `records`, each after its rowid if that is known.

        They belong to rows that lost their beginning, or to pages on which rows continue.
        """
        for rowid, content in self._left:
            for text in text_runs(content):
                yield rowid, text
        left = {number for number in self._open if self._is_open(number)}
        followers = {self._next(number) for number in left}
        for head in sorted(left - followers):
            chain = [number for number in self._chain(head, len(left)) if number in left]
            for text in text_runs(b"".join(self._page(number)[_LINK_BYTES:] for number in chain)):
                yield 0, text

    def index(self, root: int) -> Iterator[Record]:
        """The rows of the tree of a table without a rowid."""
        waiting, seen = [root], set[int]()
        while waiting:
            number = waiting.pop()
            page = self._newest(number)
            if number in seen or page[0] not in (_INDEX_LEAF, _INDEX_INTERIOR):
                continue
            seen.add(number)
            for place in self._places(page, 0):
                try:
                    length, at = varint(page, place + (4 if page[0] == _INDEX_INTERIOR else 0))
                    cell = _Cell(number, page, at, length, 0, is_live=True, is_key=True)
                    yield from self._read(cell, self._chain(*self._overflow(cell)))
                except (IndexError, ValueError):
                    continue
            if page[0] == _INDEX_INTERIOR:
                waiting += self._children(page, 0)

    def freed(self) -> set[int]:
        """The pages of the readable part of the freelist. They hold deleted rows."""
        freed: set[int] = set()
        trunk = _number(self._newest(1), 32)
        while trunk and trunk not in freed:
            page = self._newest(trunk)
            following, count = _TRUNK.unpack_from(page)
            if count > self._size // 4 - 2:
                break
            freed |= {trunk, *struct.unpack_from(f">{count}I", page, _TRUNK.size)}
            trunk = following
        return freed

    def _versions(self, number: int) -> Iterator[tuple[bytes, bool]]:
        """The versions of a page, newest first, and whether each seems to be as it was written."""
        seen = set()
        for frame in reversed(self._written.get(number, ())):
            if frame.content not in seen:
                seen.add(frame.content)
                yield frame.content, frame.is_sound
        if number <= self._in_file and (content := self._in_the_file(number)) not in seen:
            yield content, True

    def _newest(self, number: int) -> bytes:
        written = self._written.get(number)
        return written[-1].content if written else self._in_the_file(number)

    def _page(self, number: int) -> bytes:
        """A page that never changes while it is in use: the newest that is as it was written."""
        written = self._written.get(number, ())
        sound = next((frame for frame in reversed(written) if frame.is_sound), None)
        return sound.content if sound else self._newest(number)

    def _in_the_file(self, number: int) -> bytes:
        """A page of the file; bytes that the file does not have are 0."""
        content = os.pread(self._file.fileno(), self._size, (number - 1) * self._size) if number > 0 else b""
        return content.ljust(self._size, b"\0")

    def _of_page(self, number: int, page: bytes, *, is_live: bool) -> Iterator[tuple[Record, bool]]:
        start = _start(number)
        kind, covered, broken = page[start], list[tuple[int, int]](), dict[int, int]()
        if kind == _TABLE_LEAF:
            for place in self._places(page, start):
                rowid = 0
                try:
                    length, at = varint(page, place)
                    rowid, at = varint(page, at)
                    yield from self._complete(_Cell(number, page, at, length, rowid, is_live))
                    if record_bytes(page, at) != length:
                        raise ValueError("another length")
                except (IndexError, ValueError):
                    broken[place] = _signed(rowid)
                    continue
                covered.append((place, at + self._room(length)))
        elif (kind in _INTERIOR or kind == _INDEX_LEAF) and self._is_tree(page, start):
            covered.append((0, self._size))
        is_known = bool(covered) or (kind == _TABLE_LEAF and not broken)
        if is_known and is_live:
            self._trees.add(number)
        for first, end in _between(sorted(covered), self._size):
            lost = {place: rowid for place, rowid in broken.items() if first <= place < end}
            yield from self._hidden(number, page, (first, end), lost, is_live=is_live and (bool(lost) or not is_known))

    def _hidden(
        self, number: int, page: bytes, part: tuple[int, int], lost: dict[int, int], *, is_live: bool
    ) -> Iterator[tuple[Record, bool]]:
        """The rows in a part of a page that its cells do not lead to. The rest there may be text of others.

        lost  the places of cells that make no sense, with their rowids
        """
        first, end = part
        done, left, found = first, list[tuple[int, int]](), False
        for match in _ROW.finditer(page, first, end):
            at = match.start()
            if at < done:
                continue
            try:
                length = record_bytes(page, at)
                local = self._local(length)
                rowid = _rowid_before(page, at, length)
                if not self._is_known(Record(_signed(rowid), values_of(page[at : at + local], length))):
                    continue
                yield from self._complete(_Cell(number, page, at, length, rowid, is_live))
            except (IndexError, ValueError):
                continue
            found = True
            left.append((done, at))
            done = at + self._room(length)
        if is_live and (found or number in self._trees):
            self._trees.add(number)
            for begin, stop in (*left, (done, end)):
                rowid = next((rowid for place, rowid in sorted(lost.items()) if begin <= place < stop), 0)
                self._left.append((rowid, page[begin:stop]))

    def _complete(self, cell: _Cell) -> Iterator[tuple[Record, bool]]:
        """The row of a cell, or nothing yet if the chain that it continues in is broken."""
        chain = list[int]()
        first, needed = self._overflow(cell)
        if needed:
            chain = self._chain(first, needed)
            is_whole = len(chain) == needed and self._next(chain[-1]) == 0
            if not is_whole or any(self._claimed.get(number, first) != first for number in chain):
                values_of(cell.page[cell.at : cell.at + self._local(cell.length)], cell.length)
                self._broken.append(cell)
                return
            if cell.is_live:
                self._claimed.update(dict.fromkeys(chain, first))
        for record in self._read(cell, chain):
            yield record, cell.is_live

    def _read(self, cell: _Cell, chain: Sequence[int]) -> Iterator[Record]:
        payload = cell.page[cell.at : cell.at + self._local(cell.length, is_key=cell.is_key)]
        payload += b"".join(self._page(number)[_LINK_BYTES:] for number in chain)
        yield Record(_signed(cell.rowid), values_of(payload[: cell.length], cell.length))

    def _joined(self, cell: _Cell) -> list[int]:
        """The chain of a row, joined where a page leads to no other one or to one of another row."""
        first, needed = self._overflow(cell)
        chain: list[int] = []
        following = first
        while len(chain) < needed:
            if not self._is_open(following) or following in chain:
                following = self._continuation(chain[-1] if chain else cell.number, needed - len(chain), chain)
                if not following:
                    break
            chain.append(following)
            following = self._next(following)
        if cell.is_live:
            self._claimed.update(dict.fromkeys(chain, first))
        return chain

    def _continuation(self, last: int, needed: int, chain: Sequence[int]) -> int:
        """The page on which a row may continue, or 0: if exactly as many pages follow as are missing, or one beside."""
        near = sorted((number for number in self._open if number not in chain), key=lambda number: abs(number - last))
        for number in near:
            rest = self._chain(number, needed + 1)
            if len(rest) == needed and self._next(rest[-1]) == 0 and all(map(self._is_open, rest)):
                return number
        return next((number for number in near if abs(number - last) == 1 and self._is_open(number)), 0)

    def _is_open(self, number: int) -> bool:
        """Whether a row may continue in this page: it is in the file, and nothing else."""
        is_there = number in self._written or 1 < number <= self._in_file
        return is_there and number not in self._trees and number not in self._claimed and number not in self._free

    def _chain(self, first: int, needed: int) -> list[int]:
        chain: list[int] = []
        while first and len(chain) < needed and first not in chain:
            if first not in self._written and first > self._in_file:
                break
            chain.append(first)
            first = self._next(first)
        return chain

    def _next(self, number: int) -> int:
        return _number(self._page(number), 0)

    def _overflow(self, cell: _Cell) -> tuple[int, int]:
        """The first page that a row continues in, and how many there are."""
        local = self._local(cell.length, is_key=cell.is_key)
        if local >= cell.length:
            return 0, 0
        return _number(cell.page, cell.at + local), -((local - cell.length) // (self._size - _LINK_BYTES))

    def _local(self, length: int, *, is_key: bool = False) -> int:
        """How much of a payload is in the page of its cell."""
        most = (self._size - 12) * 64 // 255 - 23 if is_key else self._size - 35
        if length <= most:
            return length
        least = (self._size - 12) * 32 // 255 - 23
        local = least + (length - least) % (self._size - 4)
        return least if local > most else local

    def _room(self, length: int) -> int:
        """The bytes of a payload in the page of its cell."""
        local = self._local(length)
        return local if local == length else local + _LINK_BYTES

    def _places(self, page: bytes, start: int) -> Iterator[int]:
        """The places of a page's cells."""
        cells, _ = _HEADER.unpack_from(page, start)
        first = start + (12 if page[start] in _INTERIOR else 8)
        for place in range(first, min(first + 2 * cells, self._size - 1), 2):
            yield int.from_bytes(page[place : place + 2]) % self._size

    def _children(self, page: bytes, start: int) -> list[int]:
        _, last = _HEADER.unpack_from(page, start)
        return [last, *(_number(page, place) for place in self._places(page, start))]

    def _is_tree(self, page: bytes, start: int) -> bool:
        """Whether a page that says so has keys and other pages, and not rows of a table."""
        cells, _ = _HEADER.unpack_from(page, start)
        first = start + (12 if page[start] in _INTERIOR else 8) + 2 * cells
        if cells > self._size // _LEAST_CELL_BYTES or any(place < first for place in self._places(page, start)):
            return False
        return page[start] == _INDEX_LEAF or all(0 < child <= self._count for child in self._children(page, start))


def _between(covered: list[tuple[int, int]], size: int) -> Iterator[tuple[int, int]]:
    done = 0
    for first, end in covered:
        if first > done:
            yield done, first
        done = max(done, end)
    if done < size:
        yield done, size


def _rowid_before(page: bytes, at: int, length: int) -> int:
    """The rowid before a payload, after its length; 0 if it is not there."""
    for size in range(1, 10):
        for head in range(1, 4):
            place = at - size - head
            try:
                if place >= 0 and varint(page, place) == (length, at - size) and varint(page, at - size)[1] == at:
                    return varint(page, at - size)[0]
            except IndexError:
                continue
    return 0


def _start(number: int) -> int:
    """The place of a page's own header."""
    return HEADER_BYTES if number == 1 else 0


def _number(page: bytes, place: int) -> int:
    return int.from_bytes(page[place : place + 4])


def _signed(rowid: int) -> int:
    return rowid if rowid < 1 << 63 else rowid - (1 << 64)
