"""The view: the log as the model sees it.

A view is an ordered list of items over a log, and an open tail: every message from `tail` on is shown as it is.
Each seq below `tail` is in exactly one item, or it is aside: no part of the conversation. So checking a compaction is
set arithmetic. Between compactions only the log grows, so a view shows a longer tail and nothing before it moves.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Literal

import msgspec

from nca.messages import Message

Range = tuple[int, int]
"""First and last seq, both included."""
_RECALL = re.compile(
    r" \[recall expand=[\d-]+\]|[;:] recall expand=[\d-]+(?: lines=[\d-]+)?"
    r"|(?:\n\n\[| )recall expand=[\d-]+ shows (?:it|it whole|the messages that this stands for)\.(?:(?<=for\.)\])?"
)
"""`how_to_recall` in the forms of placeholders, markers, cuts and imported texts."""

PASSED = "passed"
"""The id of the marker of a compaction that has just begun, for messages that no stage could keep."""
RECALL = "recall"
"""The tool that shows hidden messages. Its own calls and results are not looked for: they are told elsewhere."""
_RECALLED = re.compile(r"\[(\d{1,9}(?:-\d{1,9})?): (?:characters|lines) \d")
"""The header of an answer of `recall` that shows messages whole."""


class Verbatim(msgspec.Struct, frozen=True, tag_field="type", tag="verbatim"):
    """A run of messages, as they are."""

    first: int
    last: int


class Stub(msgspec.Struct, frozen=True, tag_field="type", tag="stub"):
    """One message with its content replaced by `text`; its role, ids and error mark stay."""

    seq: int
    text: str
    stage: str
    """Its origin: prune, deduplicate, truncate (cut contents), recovery (size caps), or collapse (a person)."""


class Summary(msgspec.Struct, frozen=True, tag_field="type", tag="summary"):
    """Messages replaced by a summary. `text` is sent. Further fields in older stores are ignored."""

    id: str
    ranges: tuple[Range, ...]
    text: str
    prose: str = ""
    """A model's part of `text`, merged into the next summary."""
    made_by: str = ""
    """The model's name, or "extract" if code wrote it."""
    role: Literal["user", "system"] = "user"
    """The role it is sent in; user unless `context.summarize.role` said otherwise when it was made."""
    block: dict[str, Any] = {}
    """The provider's own form of it, if the provider of `made_by` wrote it; goes back to that model only."""
    prose_of: tuple[Range, ...] = ()
    """The messages that `prose` covers, if these are not all of `ranges`."""


class Marker(msgspec.Struct, frozen=True, tag_field="type", tag="marker"):
    """Messages left out. An empty `text` sends nothing (a cleared context)."""

    id: str
    ranges: tuple[Range, ...]
    text: str


Item = Verbatim | Stub | Summary | Marker


class View(msgspec.Struct, frozen=True):
    """`items` in the order in which they are sent, then every message with seq >= tail.

    aside  messages that are not part of the conversation: rewound, or asked beside it. No item covers them, and no
           record keeps anything of them
    """

    items: tuple[Item, ...] = ()
    tail: int = 1
    aside: tuple[Range, ...] = ()


def ranges_of(item: Item) -> tuple[Range, ...]:
    match item:
        case Verbatim(first, last):
            return ((first, last),)
        case Stub(seq):
            return ((seq, seq),)
        case Summary() | Marker():
            return item.ranges


def merge_ranges(ranges: Iterable[Range]) -> tuple[Range, ...]:
    """Sorted, with neighbours joined."""
    merged: list[Range] = []
    for first, last in sorted(ranges):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
        else:
            merged.append((first, last))
    return tuple(merged)


def without_ranges(ranges: Iterable[Range], gone: Iterable[Range]) -> tuple[Range, ...]:
    """`ranges` without the messages in `gone`; sorted, neighbours joined."""
    left: list[Range] = []
    holes, done = merge_ranges(gone), 0
    for begin, last in merge_ranges(ranges):
        while done < len(holes) and holes[done][1] < begin:
            done += 1
        first, place = begin, done
        while place < len(holes) and holes[place][0] <= last:
            if first < holes[place][0]:
                left.append((first, holes[place][0] - 1))
            first = holes[place][1] + 1
            place += 1
        if first <= last:
            left.append((first, last))
    return tuple(left)


def how_to_recall(ranges: Iterable[Range]) -> str:
    """The call that shows these messages again, as every placeholder, marker and cut names it: `recall expand=3-57`."""
    merged = merge_ranges(ranges)
    first, last = merged[0][0], merged[-1][1]
    return f"recall expand={first}" + (f"-{last}" if last > first else "")


def looked_up(message: Message, seq: int) -> str:
    """What `recall` shows for the text of message `seq`: itself, and for an answer of `recall` what that showed."""
    found = _RECALLED.match(message.text) if message.role == "tool" and message.name == RECALL else None
    return found[1] if found is not None else str(seq)


def without_recall(text: str) -> str:
    """A placeholder of nca's, for a reader without recall."""
    return _RECALL.sub("", text)


def seqs(ranges: Iterable[Range]) -> Iterator[int]:
    for first, last in ranges:
        yield from range(first, last + 1)


def check_partition(view: View) -> None:
    """Raise ValueError unless the items and the messages aside cover 1 … tail-1 exactly once."""
    expected = 1
    for first, last in sorted([*view.aside, *(span for item in view.items for span in ranges_of(item))]):
        if first != expected or last < first:
            raise ValueError(f"the view's items do not partition the log at message {expected}")
        expected = last + 1
    if expected != view.tail:
        raise ValueError(f"the view covers up to message {expected - 1}, but its tail starts at {view.tail}")


def ordered(items: Iterable[Item], head: int, aside: tuple[Range, ...]) -> View:
    """A view with these items, which cover the messages up to `head`, each at the place of its first message.

    Raises ValueError as `check_partition`.
    """
    placed = sorted(items, key=lambda item: min(first for first, _ in ranges_of(item)))
    tail = head + 1
    if placed and isinstance(last := placed[-1], Verbatim) and last.last == head:
        tail = last.first
        placed.pop()
    view = View(tuple(placed), tail, aside)
    check_partition(view)
    return view


def is_in(seq: int, ranges: Iterable[Range]) -> bool:
    return any(first <= seq <= last for first, last in ranges)


def put_aside(view: View, ranges: Iterable[Range]) -> View:
    """The view with these messages aside: no item is about one of them, and all others are shown as ever.

    No text can be taken out of a summary: one that tells of such a message gives way to the others that it stands for.
    """
    aside = merge_ranges([*view.aside, *ranges])
    if aside == view.aside:
        return view
    end = max(view.tail - 1, aside[-1][1])
    items = (*view.items, Verbatim(view.tail, end)) if end >= view.tail else view.items
    left = [part for item in items for part in _without(item, aside)]
    return View(tuple(sorted(left, key=lambda part: ranges_of(part)[0])), end + 1, aside)


def _without(item: Item, gone: tuple[Range, ...]) -> Iterable[Item]:
    left = without_ranges(ranges_of(item), gone)
    if left == merge_ranges(ranges_of(item)):
        return (item,)
    if isinstance(item, Marker) and left:
        return (msgspec.structs.replace(item, ranges=left),)
    return (Verbatim(*run) for run in left)


def is_shown(view: View, seq: int) -> bool:
    """Whether the model sees a message, whole or as a stub."""
    return not is_in(seq, view.aside) and hidden_by(view, seq) is None


def hidden_by(view: View, seq: int) -> Summary | Marker | None:
    """The summary or marker that hides a message; None if the message is shown or stubbed."""
    for item in view.items:
        if isinstance(item, Summary | Marker) and any(first <= seq <= last for first, last in item.ranges):
            return item
    return None
