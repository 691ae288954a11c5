"""Giving out the room: a prefix of one order."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nca.config.schema import SummarizeSettings
from nca.context.history import History
from nca.context.record.compose import Composer, Prose
from nca.context.record.piece import Piece, line
from nca.context.record.text import Section
from nca.context.record.walk import Lane, Limit, Taken, walk
from nca.context.view import Summary
from nca.messages import Entry, Message

WEIGHTS = ((0.7, 0, 0), (0, 0.7, 0), (0.3, 0.3, 0.5), (0, 0, 0.5))
SECTIONS = (Section.WORDS, Section.ANSWERS, Section.EFFECTS, Section.CALLS)
LANES = st.tuples(*(st.lists(st.integers(1, 60), max_size=8) for _ in WEIGHTS))


def _lanes(sizes: tuple[list[int], ...]) -> list[Lane]:
    return [
        Lane(
            section,
            weights,
            iter([line((number, place), place + 1, "word " * size) for place, size in enumerate(lane)]),
        )
        for number, (lane, weights, section) in enumerate(zip(sizes, WEIGHTS, SECTIONS, strict=True))
    ]


def _taken(sizes: tuple[list[int], ...], room: int) -> Taken:
    history = History([Entry(1, Message("user", "x"))])
    return walk(Taken(history, room, numbered=False), _lanes(sizes))


@given(LANES, st.integers(0, 800), st.integers(0, 400))
def test_more_room_loses_nothing(sizes: tuple[list[int], ...], room: int, more: int) -> None:
    assert _taken(sizes, room).lines.keys() <= _taken(sizes, room + more).lines.keys()


@given(LANES, st.integers(0, 800))
def test_the_room_is_never_passed(sizes: tuple[list[int], ...], room: int) -> None:
    taken = _taken(sizes, room)
    assert taken.left >= 0
    assert taken.has_left_out == (len(taken.lines) < sum(map(len, sizes)))


@given(LANES)
def test_with_room_for_all_everything_is_there(sizes: tuple[list[int], ...]) -> None:
    assert len(_taken(sizes, 10_000).lines) == sum(map(len, sizes))


def test_the_first_lane_ends_the_first_round() -> None:
    taken = _taken(([40, 40], [], [40], [1]), 70)
    assert (3, 0) not in taken.lines


def test_a_lane_may_be_limited() -> None:
    history = History([Entry(1, Message("user", "x"))])
    pieces = [line((place,), place + 1, "word " * 20) for place in range(9)]
    lanes = [Lane(Section.WORDS, (1, 1, 1), iter(pieces), Limit(40))]
    taken = walk(Taken(history, 1_000, numbered=False), lanes)
    assert len(taken.lines) == 2


def test_a_line_gives_way_to_its_message() -> None:
    history = History(Entry(seq, Message("user", "word " * 30)) for seq in (1, 2))
    taken = Taken(history, 500, numbered=True)
    taken.take(Section.WORDS, line(("said", 2, -1), 2, "word " * 10))
    left = taken.left
    assert taken.take(None, Piece(("step", 2), 2, "", 0, range(2, 3), 64)) is not None
    assert taken.lines == {}
    assert left - taken.left < history.run_tokens(2, 2)
    assert taken.take(Section.WORDS, line(("said", 2, -1), 2, "word " * 12)) is not None
    assert taken.lines == {}


def test_a_pure_function_of_the_log() -> None:
    messages = [Message("user" if n % 2 else "assistant", f"Message {n} says this. " * 20) for n in range(1, 60)]
    history = History(Entry(seq, message) for seq, message in enumerate(messages, 1))
    composer = Composer(history, SummarizeSettings(), kept=((59, 59),))
    [view, again] = [composer.view(1_500, Prose())[0] for _ in range(2)]
    assert view == again
    [summary] = [item for item in view.items if isinstance(item, Summary)]
    assert summary.ledger == {}
    assert "### What the user said" in summary.text
