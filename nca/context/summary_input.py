"""Turn messages into delimited text for a summarizer, in as many chunks as its window requires.

Chunks end between blocks (see `nca.context.rules.cut_points`), and between turns if that costs little; only a block
larger than a chunk is split between its messages. Counts are raw tokens.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from nca.context.record.excerpt import excerpt
from nca.context.record.steps import shortened
from nca.context.rules.cut_points import blocks
from nca.context.tokens import text_tokens
from nca.messages import Message
from nca.vocabulary import fitting_end, fitting_start
from nca.vocabulary import within as fitted
from nca.wire import content_text

MESSAGE_CHARS = (10_000, 2_500, 600, 150)
"""Characters of a message that a summarizer is shown; less than the first only if there are too many chunks."""
MAX_CHUNKS = 8
"""Each chunk rewrites the summary of those before it and has its share of the one deadline: with eight, a fact is
rewritten eight times at most and a question has some twenty of the usual 180 seconds. Eight chunks hold about three
times the summarizer's window; beyond that, shorter messages cost less than still more rewriting."""
SMALLEST_CHUNK_TOKENS = 160
"""Less of a transcript at a time is not worth a question: the question itself is twice as long."""
MESSAGE_WEIGHT = 0.3
"""How much more a message must matter (`nca.context.importance`, 0 … 1) to be shown one step longer than another."""
TURN_SHARE = 0.75
"""A chunk that is so full ends with a turn rather than in the middle of the next one."""
FILLINGS = 16
"""Steps in which chunks are made equally full."""

_FRAME = ("transcript", "/transcript", "existing_summary", "/existing_summary")


@dataclass(frozen=True, slots=True)
class Chunk:
    """The messages from position `start` to before `end`, as text. `left_out`: so many of them are not shown at all."""

    start: int
    end: int
    text: str
    left_out: int


@dataclass(frozen=True, slots=True)
class _Piece:
    """An indivisible piece; it has its own text only if it replaces left-out messages."""

    start: int
    end: int
    tokens: int
    begins_turn: bool
    is_left_out: bool = False


def split(
    messages: Sequence[Message],
    *,
    first_tokens: int,
    later_tokens: int,
    least_tokens: int = 0,
    scores: Callable[[], Sequence[float]] = tuple,
) -> tuple[Chunk, ...]:
    """All messages in order, in one chunk if they fit; () if a chunk would be too small to be of use.

    first_tokens, later_tokens  limits of the first chunk, and of each later one
    least_tokens                the least such limit, if there are several
    scores                      how much each message matters, asked for if some are shortened; of those that matter
                                equally, the middle gives way first
    """
    showing = _Showing(messages, min(first_tokens, later_tokens))
    sums = accumulate((showing.size(place, 0) for place in range(len(messages))), initial=0)
    if all(tokens <= first_tokens for tokens in sums):
        return (showing.chunk([_Piece(0, len(messages), 0, True)], [0] * len(messages)),)
    if showing.room < max(least_tokens, SMALLEST_CHUNK_TOKENS):
        return ()
    levels, pieces = _within(showing, scores, lambda them: len(_packed(them, first_tokens, later_tokens)) <= MAX_CHUNKS)
    count = len(_packed(pieces, first_tokens, later_tokens))
    for filling in range(FILLINGS // 2, FILLINGS + 1):
        packed = _packed(pieces, first_tokens * filling // FILLINGS, later_tokens * filling // FILLINGS)
        if len(packed) <= count:
            break
    return tuple(showing.chunk(pieces[start:end], levels) for start, end in packed)


def as_data(text: str) -> str:
    """Text in which none of the frames begins or ends."""
    for tag in _FRAME:
        text = text.replace(f"<{tag}>", f"‹{tag}›")
    return text


def framed(existing: Sequence[str], body: str) -> str:
    """Delimited text that marks data as data; earlier summaries first, to be merged."""
    before = "".join(f"<existing_summary>\n{text}\n</existing_summary>\n" for text in existing)
    return f"{before}<transcript>\n{body}\n</transcript>"


def within(existing: Sequence[str], max_tokens: int) -> tuple[str, ...]:
    """Earlier summaries as data, within `max_tokens` with their frames; visibly shortened if they are longer."""
    texts = tuple(as_data(text) for text in existing)
    if sum(text_tokens(framed([text], "")) for text in texts) <= max_tokens:
        return texts
    return (ends("\n\n".join(texts), max_tokens - text_tokens(framed([""], ""))),)


def ends(text: str, max_tokens: int) -> str:
    """A text's first and last characters and a note for the rest; all of it if it fits."""
    if text_tokens(text) <= max_tokens:
        return text

    seam = "\n[… left out for length …]\n"

    def cut(room: int) -> str:
        start, end = fitting_start(text, room // 2), fitting_end(text, room // 2)
        return f"{start}{seam}{end[max(0, len(start) + len(end) - len(text)) :]}"

    return fitted(max_tokens, max_tokens - text_tokens(seam), cut)


class _Showing:
    """The messages as text, at several levels of detail: level n shows MESSAGE_CHARS[n] characters of a message.

    room  the limit of a message, and so of a chunk
    """

    def __init__(self, messages: Sequence[Message], room: int) -> None:
        self.messages = messages
        self.room = room
        self.blocks = [(start, end + 1) for start, end in blocks(messages)]
        self._sizes: dict[tuple[int, int], int] = {}

    def size(self, place: int, level: int) -> int:
        known = self._sizes.get((place, level))
        if known is None:
            known = self._sizes[place, level] = text_tokens(f"{_flat(self.messages[place], level)}\n")
        return known

    def lowest(self, place: int) -> int:
        """The first level at which a message fits into a chunk; the last if none does: its ends are shown then."""
        levels = range(len(MESSAGE_CHARS) - 1)
        return next((level for level in levels if self.size(place, level) <= self.room), len(MESSAGE_CHARS) - 1)

    def pieces(self, levels: Sequence[int]) -> list[_Piece]:
        return [piece for block in self.blocks for piece in self._pieces_of(block, levels)]

    def _pieces_of(self, block: tuple[int, int], levels: Sequence[int]) -> list[_Piece]:
        start, end = block
        sizes = [min(self.room, self.size(place, levels[place])) for place in range(start, end)]
        is_turn = self.messages[start].role == "user" and not self.messages[start].is_synthetic
        if sum(sizes) <= self.room:
            return [_Piece(start, end, sum(sizes), is_turn)]
        # It is text and no request, so calls may be in one chunk and their results in the next.
        return [_Piece(place, place + 1, size, is_turn and place == start) for place, size in enumerate(sizes, start)]

    def chunk(self, pieces: Sequence[_Piece], levels: Sequence[int]) -> Chunk:
        texts: list[str] = []
        for piece in pieces:
            if piece.is_left_out:
                texts.append(_left_out(piece.end - piece.start))
                continue
            for place in range(piece.start, piece.end):
                text = _flat(self.messages[place], levels[place])
                is_shortest = levels[place] == len(MESSAGE_CHARS) - 1
                texts.append(ends(text, self.room - 1) if is_shortest else text)
        left_out = sum(piece.end - piece.start for piece in pieces if piece.is_left_out)
        return Chunk(pieces[0].start, pieces[-1].end, "\n".join(texts), left_out)


def _within(
    showing: _Showing,
    scores: Callable[[], Sequence[float]],
    fits: Callable[[Sequence[_Piece]], bool],
) -> tuple[list[int], list[_Piece]]:
    """Levels, and the pieces at them, that fit: shortened as far as it takes, and then without as little as possible.

    The least important messages are shortened first and most; among equals, those farthest from both ends.
    """
    count = len(showing.messages)
    shortest = [len(MESSAGE_CHARS) - 1] * count
    pieces = showing.pieces(shortest)
    if not fits(pieces):
        gone = bisect_left(range(len(pieces)), True, key=lambda gone: fits(_without_middle(pieces, gone)))
        return shortest, _without_middle(pieces, gone)
    base = [showing.lowest(place) for place in range(count)]
    weights = [int(score / MESSAGE_WEIGHT) for score in scores()] or [0] * count
    steps = sorted(
        ((place, level) for place in range(count) for level in range(1, len(MESSAGE_CHARS))),
        key=lambda step: (step[1] + weights[step[0]], -min(step[0], count - 1 - step[0])),
    )

    def levels(taken: int) -> list[int]:
        found = list(base)
        for place, level in steps[:taken]:
            found[place] = max(found[place], level)
        return found

    taken = bisect_left(range(len(steps)), True, key=lambda taken: fits(showing.pieces(levels(taken))))
    return levels(taken), showing.pieces(levels(taken))


def _without_middle(pieces: Sequence[_Piece], gone: int) -> list[_Piece]:
    """The pieces, and one that says how many messages of the middle are left out."""
    if not gone:
        return list(pieces)
    first = (len(pieces) - gone) // 2
    start, end = pieces[first].start, pieces[first + gone - 1].end
    note = _Piece(start, end, text_tokens(f"{_left_out(end - start)}\n"), begins_turn=False, is_left_out=True)
    return [*pieces[:first], note, *pieces[first + gone :]]


def _packed(pieces: Sequence[_Piece], first_tokens: int, later_tokens: int) -> list[tuple[int, int]]:
    """The pieces of each chunk, as (first, after the last), each as full as it may be; one piece always fits."""
    sums = list(accumulate((piece.tokens for piece in pieces), initial=0))
    starts = [0]
    while True:
        start = starts[-1]
        room = later_tokens if start else first_tokens
        end = max(start + 1, bisect_right(sums, sums[start] + room) - 1)
        if end >= len(pieces):
            return list(zip(starts, [*starts[1:], len(pieces)], strict=True))
        fullest = bisect_left(sums, sums[start] + int(room * TURN_SHARE))
        turns = (place for place in range(end, max(fullest, start + 1) - 1, -1) if pieces[place].begins_turn)
        starts.append(next(turns, end))


def _left_out(count: int) -> str:
    return f"[… {count} messages left out for length …]"


def _flat(message: Message, level: int) -> str:
    limit = MESSAGE_CHARS[level]
    text = shortened(message, _tokens(content_text(message.content), limit))
    calls = "".join(
        f"\n(called {call.name} with {excerpt(call.arguments, _tokens(call.arguments, limit))})"
        for call in message.tool_calls
    )
    kind = f"result of {message.name or 'a tool'}" if message.role == "tool" else message.role
    mark = " (failed)" if message.is_error else ""
    return as_data(f"[{kind}{mark}]\n{text}{calls}")


def _tokens(text: str, chars: int) -> int:
    """Raw tokens of so many characters of a text."""
    return text_tokens(text) * chars // max(chars, len(text))
