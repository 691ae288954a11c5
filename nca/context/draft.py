"""The view that a compaction works on: its parts, and the cost of each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field
from hashlib import blake2b

import msgspec

from nca.context.history import History
from nca.context.meter import Meter
from nca.context.record.steps import LEAST_RESULT_TOKENS
from nca.context.rules import BLOCK_REPAIRS
from nca.context.rules.cut_points import blocks, regular_spans
from nca.context.rules.untouchable import unseen, untouchable
from nca.context.tokens import MESSAGE_TOKENS, content_tokens
from nca.context.view import (
    Item,
    Marker,
    Range,
    Stub,
    Summary,
    Verbatim,
    View,
    check_partition,
    merge_ranges,
    without_recall,
)
from nca.messages import Entry, Message


@dataclass(slots=True)
class Block:
    """The smallest run of messages that can be hidden: first … last, between two legal cuts."""

    first: int
    last: int
    turn: int
    """Which turn it belongs to, from 1; 0 before the first user message."""
    raw: int
    is_locked: bool
    is_unseen: bool = False
    """Locked only because the model has not seen its results yet. They may be cut, and a large step may go at last."""
    stubs: dict[int, Stub] = field(default_factory=dict)
    is_sound: bool = False
    """It needs no repair, its stubs included, so it costs the sum of its messages."""

    @property
    def seqs(self) -> range:
        return range(self.first, self.last + 1)


Part = Block | Summary | Marker


class Draft:
    """Starts as the history's view; stages change it; `view()` is the result."""

    def __init__(
        self,
        history: History,
        meter: Meter,
        *,
        keeps_newest: bool = True,
        has_recall: bool = True,
        passed_turns: int = 0,
    ) -> None:
        """A draft of the history's view.

        keeps_newest  False: the newest user message has its answer, and may be hidden as others may
        has_recall    the view's reader can look up the hidden messages: placeholders say how
        passed_turns  turns that the view hides for this compaction already (`nca.context.oldest`)
        """
        self.history = history
        self.meter = copy(meter)
        """Its own: it counts as the text of this draft says, not as that of the history's view."""
        self.meter.look(history)
        self.has_recall = has_recall
        self.passed_turns = passed_turns
        self.locked = untouchable(history)
        self.unseen = unseen(history)
        self.newest_user = history.newest_user
        if not keeps_newest and self.newest_user not in history.pins:
            self.locked.discard(self.newest_user or 0)
        self.parts: list[Part] = []
        self._turn = 0
        self._take_view()
        # Anchored counts are exact; the ratio that they imply for this request is the best for its parts too.
        raw = meter.raw_with(history, history.view)
        self._extra_raw = raw - sum(self.part_raw(part) for part in self.parts)
        self.raw = raw

    @property
    def tokens(self) -> int:
        return self.meter.total(self.raw)

    def marker_id(self) -> str:
        """The id of a marker that is put in now: the same log gives the same."""
        return blake2b(f"{self.history.head}/{self.raw}".encode(), digest_size=4).hexdigest()

    def fixed_tokens(self) -> int:
        """Tokens that no stage may touch: system prompt, tools, and locked blocks as far as they cannot be cut."""
        locked = (block for block in self.blocks() if block.is_locked)
        return self.meter.total(self.meter.fixed_raw + sum(map(self.least_raw, locked)))

    def least_raw(self, block: Block) -> int:
        """Raw tokens of a locked block, whose results are cut as far as allowed if the model has not seen them."""
        if not block.is_unseen:
            return block.raw
        tokens, message = self.history.run_tokens, self.history.message
        most = {seq: LEAST_RESULT_TOKENS if message(seq).role == "tool" else block.raw for seq in block.seqs}
        return sum(min(tokens(seq, seq), limit) for seq, limit in most.items())

    def blocks(self) -> list[Block]:
        return [part for part in self.parts if isinstance(part, Block)]

    def turns(self) -> list[list[Block]]:
        """The blocks by turn, oldest first, without those before the first user message."""
        turns: dict[int, list[Block]] = {}
        for block in self.blocks():
            if block.turn:
                turns.setdefault(block.turn, []).append(block)
        return list(turns.values())

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
        """Raw tokens saved by showing message `seq` as a stub; 0 or less if the stub is not smaller."""
        stub = block.stubs.get(seq)
        message = self.history.message(seq)
        if stub is None and not message.tool_calls and not message.extra:
            now = self.history.run_tokens(seq, seq) - MESSAGE_TOKENS
        else:
            now = content_tokens(stub.text if stub else message.content)
        return now - content_tokens(text)

    def settle(self) -> int:
        """Count the draft's view as a check does, repairs and the text's own ratio included; returns the tokens."""
        view = self.view()
        self.meter.look(self.history, view)
        exact = self.meter.raw_with(self.history, view)
        self._extra_raw += exact - self.raw
        self.raw = exact
        return self.tokens

    def put_stub(self, block: Block, seq: int, text: str, stage: str) -> int:
        """Show message `seq` as `text`. Returns the raw tokens saved."""
        before = block.raw
        self._stub(block, Stub(seq, self.placeholder(text), stage))
        self.raw += block.raw - before
        return before - block.raw

    def remove_stub(self, block: Block, seq: int) -> None:
        """Show message `seq` as it is again."""
        before, stub = block.raw, block.stubs.pop(seq)
        more = content_tokens(self.history.message(seq).content) - content_tokens(stub.text)
        block.raw = block.raw + more if block.is_sound else self._block_raw(block)
        self.raw += block.raw - before

    def _stub(self, block: Block, stub: Stub) -> None:
        saved = self.saving(block, stub.seq, stub.text)
        block.stubs[stub.seq] = stub
        block.is_sound = block.is_sound and bool(stub.text.strip())
        block.raw = block.raw - saved if block.is_sound else self._block_raw(block)

    def replace(self, gone: Iterable[Part], item: Summary | Marker) -> None:
        """Put `item` in the place of the first of `gone`, and remove all of `gone`."""
        leaving = {id(part) for part in gone}
        item = msgspec.structs.replace(item, text=self.placeholder(item.text))
        place = next(index for index, part in enumerate(self.parts) if id(part) in leaving)
        self.parts = [
            *self.parts[:place],
            item,
            *(part for part in self.parts[place:] if id(part) not in leaving),
        ]
        self.raw = self._extra_raw + sum(self.part_raw(part) for part in self.parts)

    def placeholder(self, text: str) -> str:
        """A placeholder, without its recall hint if the reader has no recall."""
        return text if self.has_recall else without_recall(text)

    def view(self) -> View:
        items = list(_items(self.parts))
        tail = self.history.head + 1
        if items and isinstance(items[-1], Verbatim) and items[-1].last == self.history.head:
            tail = items.pop().first  # type: ignore[union-attr]
        view = View(tuple(items), tail, self.history.view.aside)
        check_partition(view)
        return view

    def _block_raw(self, block: Block) -> int:
        """Raw tokens of the block as it is sent, with its repairs."""
        messages = self.shown(block)
        for repair in BLOCK_REPAIRS:
            messages = repair(messages)
        return sum(self.history.message_tokens(message) for message in messages)

    def _take_view(self) -> None:
        run: list[Entry] = []
        stubs: dict[int, Stub] = {}
        for item in (*self.history.view.items, Verbatim(self.history.view.tail, self.history.head)):
            if isinstance(item, Verbatim):
                self._extend(run, stubs, self.history.entries[item.first - 1 : item.last])
            elif isinstance(item, Stub):
                stubs[item.seq] = item
                self._extend(run, stubs, self.history.entries[item.seq - 1 : item.seq])
            else:
                self._close(run, stubs)
                self.parts.append(item)
        self._close(run, stubs)

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
            seqs = range(first, last + 1)
            is_locked = not self.locked.isdisjoint(seqs)
            # With a todo list among its calls it is both: new results are no less new beside it.
            is_unseen = not self.unseen.isdisjoint(seqs) and self.history.pins.isdisjoint(seqs)
            raw = self.history.run_tokens(first, last)
            block = Block(first, last, self._turn, raw, is_locked or is_unseen, is_unseen)
            block.is_sound = regular is not None or regular_spans(messages[start : end + 1]) is not None
            if not block.is_sound:
                block.raw = self._block_raw(block)
            for seq in seqs if stubs else ():
                if seq in stubs:
                    self._stub(block, stubs[seq])
            self.parts.append(block)
        run.clear()
        stubs.clear()


def covered(parts: Iterable[Part]) -> tuple[Range, ...]:
    """The messages that these parts cover."""
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
