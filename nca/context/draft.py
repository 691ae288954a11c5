"""A view being made: the parts that stages may stub or hide, with their cost, until it fits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import msgspec

from nca.context.history import History
from nca.context.importance import Importance, importances
from nca.context.meter import Meter
from nca.context.rules import BLOCK_REPAIRS
from nca.context.rules.cut_points import blocks
from nca.context.rules.regular import regular_spans
from nca.context.rules.untouchable import unseen, untouchable
from nca.context.settled_prefix import far_stretches
from nca.context.tokens import MESSAGE_TOKENS, content_tokens
from nca.context.view import Item, Marker, Range, Stub, Summary, Verbatim, View, check_partition, merge_ranges
from nca.messages import Entry, Message


@dataclass(slots=True)
class Block:
    """The smallest stretch that may stand or go: messages first … last, between two legal cuts."""

    first: int
    last: int
    turn: int
    """Which turn it belongs to, from 1; 0 before the first user message."""
    raw: int
    is_locked: bool
    is_unseen: bool = False
    """Locked only because the model has not seen its results yet: at last their contents may be cut."""
    stubs: dict[int, Stub] = field(default_factory=dict)
    is_sound: bool = False
    """Sent as it is, its stubs included: its cost is the sum of its messages, without repairing it to see."""
    far_turns: int = 0
    """Above 0 for a stretch of at least so many turns that is certain to go (`settled_prefix`); no stage looks in."""

    @property
    def seqs(self) -> range:
        return range(self.first, self.last + 1)


Part = Block | Summary | Marker


class Draft:
    """Starts as the history's view; stages change it; `view()` is what came out."""

    def __init__(self, history: History, meter: Meter, *, keeps_newest: bool = True, near_raw: int = 0) -> None:
        """A draft of the history's view.

        keeps_newest  False where the newest user message has its answer, and may go as others may
        near_raw      raw tokens that the newest messages must hold before older ones are taken as certain to go;
                      0: all are looked at
        """
        self.history = history
        self.meter = meter
        self.locked = untouchable(history)
        self.unseen = unseen(history)
        self.newest_user = history.newest_user
        if not keeps_newest and self.newest_user not in history.pins:
            self.locked.discard(self.newest_user or 0)
        self.parts: list[Part] = []
        self._turn = 0
        self._near_raw = near_raw
        self._importances: dict[int, Importance] = {}
        self._take_view()
        # Anchored counts are exact; the ratio that they imply for this request is the best for its parts too.
        raw = meter.raw(history)
        self._extra_raw = raw - sum(self.part_raw(part) for part in self.parts)
        self.raw = raw

    @property
    def tokens(self) -> int:
        return self.meter.total(self.raw)

    def fixed_tokens(self) -> int:
        """What no stage may touch now: system prompt, tools, and the blocks of `untouchable` messages as they stand."""
        return self.meter.total(
            self.meter.fixed_raw + sum(block.raw for block in self.blocks() if block.is_locked and not block.is_unseen)
        )

    def blocks(self) -> list[Block]:
        return [part for part in self.parts if isinstance(part, Block)]

    def near(self) -> list[Block]:
        """The shown blocks but for those that are certain to go: what stages look into."""
        return [part for part in self.parts if isinstance(part, Block) and not part.far_turns]

    def turns(self) -> list[list[Block]]:
        """The shown blocks by turn, oldest first; what stands before the first user message is no turn."""
        turns: dict[int, list[Block]] = {}
        for block in self.blocks():
            if block.turn:
                turns.setdefault(block.turn, []).append(block)
        return list(turns.values())

    def score(self, seq: int) -> float:
        """How much a message matters, 0 … 1, judged by all that the history's view shows; found when first asked."""
        if not self._importances:
            history = self.history
            self._importances = importances(history.visible(), history.found, history.pins)
        return self._importances[seq].score

    def part_raw(self, part: Part) -> int:
        return part.raw if isinstance(part, Block) else self.history.item_tokens(part)

    def shown(self, block: Block) -> list[Message]:
        """The block's messages as the draft shows them."""
        return [
            msgspec.structs.replace(self.history.message(seq), content=block.stubs[seq].text)
            if seq in block.stubs
            else self.history.message(seq)
            for seq in block.seqs
        ]

    def saving(self, block: Block, seq: int, text: str) -> int:
        """Raw tokens saved by showing message `seq` as a stub; 0 or less where the stub is not smaller."""
        stub = block.stubs.get(seq)
        message = self.history.message(seq)
        if stub is None and not message.tool_calls:
            now = self.history.run_tokens(seq, seq) - MESSAGE_TOKENS
        else:
            now = content_tokens(message.role, stub.text if stub else message.content)
        return now - content_tokens(message.role, text)

    def settle(self) -> int:
        """Count the draft's view exactly, repairs between its parts included; returns the tokens."""
        exact = self.meter.raw_with(self.history, self.view())
        self._extra_raw += exact - self.raw
        self.raw = exact
        return self.tokens

    def put_stub(self, block: Block, seq: int, text: str, stage: str, saved: int | None = None) -> int:
        """Show message `seq` as `text`; `saved` is its `saving`, where that is known. Returns the raw tokens saved."""
        before = block.raw
        self._stub(block, Stub(seq, text, stage), self.saving(block, seq, text) if saved is None else saved)
        self.raw += block.raw - before
        return before - block.raw

    def _stub(self, block: Block, stub: Stub, saved: int) -> None:
        block.stubs[stub.seq] = stub
        block.is_sound = block.is_sound and bool(stub.text.strip())
        block.raw = block.raw - saved if block.is_sound else self._block_raw(block)

    def replace(self, gone: Iterable[Part], item: Summary | Marker) -> None:
        """Put `item` where the first of `gone` stood, and take all of `gone` out."""
        leaving = {id(part) for part in gone}
        place = next(index for index, part in enumerate(self.parts) if id(part) in leaving)
        self.parts = [
            *self.parts[:place],
            item,
            *(part for part in self.parts[place:] if id(part) not in leaving),
        ]
        self.raw = self._extra_raw + sum(self.part_raw(part) for part in self.parts)

    def view(self) -> View:
        items = list(_items(self.parts))
        tail = self.history.head + 1
        if items and isinstance(items[-1], Verbatim) and items[-1].last == self.history.head:
            tail = items.pop().first  # type: ignore[union-attr]
        view = View(tuple(items), tail)
        check_partition(view)
        return view

    def _block_raw(self, block: Block) -> int:
        """What the block costs as it is sent, its own repairs included."""
        messages = self.shown(block)
        for rule in BLOCK_REPAIRS:
            messages = rule.repair(messages)
        return sum(self.history.message_tokens(message) for message in messages)

    def _take_view(self) -> None:
        run: list[Entry] = []
        stubs: dict[int, Stub] = {}
        for item in (*self.history.view.items, Verbatim(self.history.view.tail, self.history.head)):
            if isinstance(item, Verbatim):
                self._extend_near(run, stubs, item)
            elif isinstance(item, Stub):
                stubs[item.seq] = item
                self._extend(run, stubs, self.history.entries[item.seq - 1 : item.seq])
            else:
                self._close(run, stubs)
                self.parts.append(item)
        self._close(run, stubs)

    def _extend_near(self, run: list[Entry], stubs: dict[int, Stub], item: Verbatim) -> None:
        """What of the newest messages is certain to go becomes a block without being looked into."""
        first = item.first
        if self._near_raw and item.last == self.history.head:
            for stretch in far_stretches(self.history, first, self._near_raw, self.locked):
                self._extend(run, stubs, self.history.entries[first - 1 : stretch.first - 1])
                self._close(run, stubs)
                self._turn += 1
                raw = self.history.run_tokens(stretch.first, stretch.last)
                far_turns = max(1, stretch.turns)
                block = Block(stretch.first, stretch.last, self._turn, raw, is_locked=False, far_turns=far_turns)
                self.parts.append(block)
                first = stretch.last + 1
        self._extend(run, stubs, self.history.entries[first - 1 : item.last])

    def _extend(self, run: list[Entry], stubs: dict[int, Stub], entries: Sequence[Entry]) -> None:
        if run and entries and entries[0].seq != run[-1].seq + 1:
            kept = stubs.pop(entries[0].seq, None)
            self._close(run, stubs)
            if kept:
                stubs[entries[0].seq] = kept
        run.extend(entries)

    def _close(self, run: list[Entry], stubs: dict[int, Stub]) -> None:
        """Turn a run of neighbouring messages into blocks."""
        messages = [entry.message for entry in run]
        regular = regular_spans(messages)
        for start, end in regular if regular is not None else blocks(messages):
            first, last = run[start].seq, run[end].seq
            message = messages[start]
            if message.role == "user" and not message.is_synthetic:
                self._turn += 1
            block = Block(first, last, self._turn, self.history.run_tokens(first, last), is_locked=False)
            is_locked = not self.locked.isdisjoint(block.seqs)
            block.is_unseen = not is_locked and not self.unseen.isdisjoint(block.seqs)
            block.is_locked = is_locked or block.is_unseen
            block.is_sound = regular is not None or regular_spans(messages[start : end + 1]) is not None
            if not block.is_sound:
                block.raw = self._block_raw(block)
            for seq in block.seqs if stubs else ():
                if seq in stubs:
                    self._stub(block, stubs[seq], self.saving(block, seq, stubs[seq].text))
            self.parts.append(block)
        run.clear()
        stubs.clear()


def covered(parts: Iterable[Part]) -> tuple[Range, ...]:
    """The messages that these parts stand for."""
    ranges: list[Range] = []
    for part in parts:
        ranges.extend(((part.first, part.last),) if isinstance(part, Block) else part.ranges)
    return merge_ranges(ranges)


def _items(parts: Iterable[Part]) -> Iterator[Item]:
    """A view's items; neighbours of the log that are shown as they are become one."""
    run: Range | None = None
    for piece in _pieces(parts):
        if isinstance(piece, tuple) and run is not None and run[1] == piece[0] - 1:
            run = run[0], piece[1]
            continue
        if run is not None:
            yield Verbatim(*run)
        run = piece if isinstance(piece, tuple) else None
        if not isinstance(piece, tuple):
            yield piece
    if run is not None:
        yield Verbatim(*run)


def _pieces(parts: Iterable[Part]) -> Iterator[Item | Range]:
    for part in parts:
        if not isinstance(part, Block):
            yield part
        elif not part.stubs:
            yield part.first, part.last
        else:
            for seq in part.seqs:
                yield part.stubs.get(seq) or (seq, seq)
