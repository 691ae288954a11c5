"""Put the messages that were read from a damaged database in their places.

In a log every message has the next number after the one before it, and was stored later. So both tell where a message
belongs, and a damaged number or session is noticed, because it contradicts the neighbours.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Container, Iterable
from typing import NamedTuple


class Found(NamedTuple):
    """A message as it was read. `id`: its row, 0 if unknown; `session` 0: not known."""

    id: int
    session: int
    seq: int
    at: float
    role: str
    body: str
    tokens: int | None


class Log:
    """The messages of one session by number, and those between and behind them that are lost."""

    def __init__(self, rows: Iterable[Found]) -> None:
        self.by_seq = {row.seq: row for row in _in_order(rows)}
        self._seqs = sorted(self.by_seq)
        self.head = self._seqs[-1] if self._seqs else 0

    @property
    def last_id(self) -> int:
        return self.by_seq[self._seqs[-1]].id if self._seqs else 0

    @property
    def lost(self) -> int:
        """How many messages are missing up to the last one that is known."""
        return self.head - len(self._seqs)

    def extend(self, numbers: Container[int]) -> None:
        """Messages behind the last one are lost, as far as these numbers of the session's messages go on."""
        while self.head + 1 in numbers:
            self.head += 1

    def fits(self, row: Found, seq: int, *, is_doubtful: bool = False) -> bool:
        """Whether a message can be the one with this number. `is_doubtful`: it may have been deleted."""
        if seq < 1 or seq in self.by_seq:
            return False
        place = bisect_left(self._seqs, seq)
        before = self.by_seq[self._seqs[place - 1]] if place else None
        after = self.by_seq[self._seqs[place]] if place < len(self._seqs) else None
        if before and (row.id - before.id < seq - before.seq or (is_doubtful and row.at < before.at)):
            return False
        if after and (after.id - row.id < after.seq - seq or (is_doubtful and row.at > after.at)):
            return False
        return row.id >= seq

    def put(self, row: Found, seq: int) -> None:
        self.by_seq[seq] = row._replace(seq=seq)
        self._seqs.insert(bisect_left(self._seqs, seq), seq)
        self.head = max(self.head, seq)

    def gap_of(self, row: Found) -> int:
        """The number of a lost message that was stored in this one's place; 0 if there is none."""
        place = bisect_left(self._seqs, row.id, key=lambda seq: self.by_seq[seq].id)
        first = self._seqs[place - 1] + 1 if place else 1
        return first if place < len(self._seqs) and self.fits(row, first) else 0


class Logs(dict[int, Log]):
    """The logs of all sessions. `strays`: messages with an unknown place."""

    def __init__(self, sessions: Iterable[int], live: Iterable[Found], doubtful: Iterable[Found]) -> None:
        rows = defaultdict[int, list[Found]](list)
        aside: list[Found] = []
        seen = set[tuple[int, int, int]]()
        for row in live:
            if row.id > 0 and row.session > 0 and row[:3] not in seen:
                seen.add(row[:3])
                rows[row.session].append(row)
            elif row.id <= 0 or row.session <= 0:
                aside.append(row)
        known = set(sessions)
        super().__init__({number: Log(rows[number]) for number in known})
        self._gapped = [log for log in self.values() if log.lost]
        """The possible places of a message that is not where it says."""
        for number in rows.keys() - known:
            strange = [row for row in rows[number] if len(self._gaps(row)) != 1]
            aside += [row for row in rows[number] if row not in strange]
            rows[number] = strange
            if strange:
                self[number] = Log(strange)
        self._gapped = [log for log in self.values() if log.lost]
        placed = {id(row) for log in self.values() for row in log.by_seq.values()}
        aside += [row for found in rows.values() for row in found if id(row) not in placed]
        self.strays: list[Found] = [row for row in aside if not self._placed(row)]
        for row in sorted(set(doubtful)):
            log = self.get(row.session)
            if log is not None and log.fits(row, row.seq, is_doubtful=True):
                log.put(row, row.seq)

    def _gaps(self, row: Found) -> list[tuple[Log, int]]:
        """The place of a lost message with this number that was stored at the same time."""
        return [(log, row.seq) for log in self._gapped if row.seq < log.head and log.fits(row, row.seq)]

    def _placed(self, row: Found) -> bool:
        """Whether there is exactly one place for a misplaced message. It is put there."""
        own = self.get(row.session)
        if own is not None and row.seq in own.by_seq and own.by_seq[row.seq].body == row.body:
            return True
        places = [(own, row.seq)] if own is not None and own.fits(row, row.seq) else self._gaps(row)
        if own is not None and 0 < row.seq <= own.head and row.seq not in own.by_seq and not places:
            places = [(own, row.seq)]  # its id is damaged
        if len(places) != 1:
            places = [(log, seq) for log in self._gapped if (seq := log.gap_of(row))]
        if len(places) != 1 and own is not None and row.id > own.last_id:
            places = [(own, own.head + 1)]
        if len(places) != 1:
            return False
        log, seq = places[0]
        log.put(row, seq)
        return True


def _in_order(rows: Iterable[Found]) -> list[Found]:
    """As many messages as can be in one log together: the longest series in which none was stored too early.

    Between two messages at least those with the numbers between them were stored. So what the id is ahead of the number
    never becomes less.
    """
    ordered = sorted((row for row in rows if 0 < row.seq <= row.id), key=lambda row: (row.seq, row.seq - row.id))
    ahead = [row.id - row.seq for row in ordered]
    tails: list[int] = []
    """For each length, by place among the rows, where the series of that length ends that is ahead the least."""
    before: list[int] = []
    for place, most in enumerate(ahead):
        length = bisect_right(tails, most, key=lambda tail: ahead[tail])
        before.append(tails[length - 1] if length else -1)
        tails[length : length + 1] = [place]
    found: list[Found] = []
    place = tails[-1] if tails else -1
    while place >= 0:
        found.append(ordered[place])
        place = before[place]
    return found[::-1]
