"""Giving out the room: a prefix of one order."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from nca.config.schema import SummarizeSettings
from nca.context.history import History
from nca.context.record.answers import said_by_model
from nca.context.record.compose import Composer, Prose
from nca.context.record.past import Past
from nca.context.record.piece import Section, fixed
from nca.context.record.steps import shown
from nca.context.record.text import GAPS, PREFACE
from nca.context.record.walk import Lane, Limit, Taken, Walk
from nca.context.summary import HEADER
from nca.context.tokens import text_tokens
from nca.context.view import Stub, Summary, Verbatim
from nca.messages import Entry, Message, ToolCall

WEIGHTS = ((0.7, 0, 0), (0, 0.7, 0), (0.3, 0.3, 0.5), (0, 0, 0.5))
SECTIONS = (Section.WORDS, Section.ANSWERS, Section.EFFECTS, Section.CALLS)
LANES = st.tuples(*(st.lists(st.integers(1, 60), max_size=8) for _ in WEIGHTS))


def _lanes(sizes: tuple[list[int], ...]) -> list[Lane]:
    return [
        Lane(
            section,
            weights,
            iter([fixed((number, place), place + 1, "word " * size) for place, size in enumerate(lane)]),
        )
        for number, (lane, weights, section) in enumerate(zip(sizes, WEIGHTS, SECTIONS, strict=True))
    ]


def _taken(sizes: tuple[list[int], ...], room: int) -> Taken:
    return Walk(_nothing(room), _lanes(sizes)).on()


def _nothing(room: int) -> Taken:
    return Taken(_past(History([Entry(1, Message("user", "x"))])), room)


@given(LANES, st.integers(0, 800), st.integers(0, 400))
def test_more_room_loses_nothing(sizes: tuple[list[int], ...], room: int, more: int) -> None:
    assert _taken(sizes, room).lines.keys() <= _taken(sizes, room + more).lines.keys()


@given(LANES, st.integers(0, 800), st.lists(st.integers(0, 200), max_size=4))
def test_a_walk_that_goes_on_takes_what_one_in_all_of_the_room_takes(
    sizes: tuple[list[int], ...], room: int, more: list[int]
) -> None:
    walk = Walk(_nothing(room), _lanes(sizes))
    walk.on()
    for part in more:
        room += part
        taken, whole = walk.on(part), _taken(sizes, room)
        assert (list(taken.lines), taken.left) == (list(whole.lines), whole.left)
        assert taken.has_left_out == whole.has_left_out


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
    pieces = [fixed((place,), place + 1, "word " * 20) for place in range(9)]
    lanes = [Lane(Section.WORDS, (1, 1, 1), iter(pieces), Limit(40))]
    taken = Walk(Taken(_past(history), 1_000), lanes).on()
    assert len(taken.lines) == 2


def test_a_line_gives_way_to_its_message_which_has_all_that_it_had() -> None:
    text = " ".join(f"word{n}" for n in range(400))
    history = History(Entry(seq, Message("assistant", text)) for seq in (1, 2))
    taken = Taken(_past(history), 2_000)
    line = said_by_model("answer", 2, text)
    taken.take(Section.ANSWERS, line.piece(500))
    told = taken.lines["answer", 2][1].text
    left = taken.left
    itself = shown(taken.past, range(2, 3))
    assert taken.take(None, itself.piece(64)) is not None
    assert taken.lines == {}
    stub = taken.stub(2, taken.levels[2])
    assert stub is not None
    assert set(told.split()) <= set(stub.text.split())
    assert left - taken.left < history.run_tokens(2, 2)
    assert taken.take(Section.ANSWERS, line.piece(900)) is not None
    assert taken.lines == {}
    assert taken.levels[2] == 900


def test_of_the_last_piece_there_is_as_much_as_there_is_room_for() -> None:
    text = " ".join(f"word{n}" for n in range(900))
    history = History([Entry(1, Message("assistant", text))])
    lane = Lane(Section.ANSWERS, (1, 0, 1), iter([said_by_model("answer", 1, text).piece(5_000)]))
    taken = Walk(Taken(_past(history), 300), [lane]).on()
    assert taken.has_left_out
    assert taken.left < 30


def test_messages_that_cannot_be_cut_wait_until_they_are_small_beside_the_rest() -> None:
    call = ToolCall("a", "write_file", json.dumps({"content": "word " * 400}))
    messages = [Message("assistant", None, (call,)), Message("tool", "ok", tool_call_id="a", name="write_file")]
    history = History(Entry(seq, message) for seq, message in enumerate(messages, 1))
    past = _past(history)
    lines = [fixed((place,), 0, "word " * 20) for place in range(9)]
    lanes = [
        Lane(Section.CALLS, (0, 0, 1), iter(lines)),
        Lane(None, (0, 0, 9), iter([shown(past, range(1, 3)).piece(64)]), waits=True),
    ]
    assert Walk(Taken(past, 300), lanes).on().lines.keys() == {(place,) for place in range(9)}


def _past(history: History) -> Past:
    return Past(history, ((1, history.head),), numbered=False)


def test_in_a_small_room_the_persons_words_and_the_answer_that_ends_the_log_stay() -> None:
    rule, answer = "Never push to main.", "The tests pass now, all of them. " + "Each of them was run twice. " * 99
    messages = [
        *(Message("user", rule), Message("assistant", "I will not push.")),
        *(Message("user", "Run the tests."), Message("assistant", answer)),
    ]
    history = History(Entry(seq, message) for seq, message in enumerate(messages, 1))
    composer = Composer(history, SummarizeSettings(), kept=((3, 3),))
    had = set[str]()
    for room in range(150, 1_500, 10):
        view, left = composer.view(room, Prose())
        text = " ".join(item.text for item in view.items if isinstance(item, Summary | Stub))
        text += answer if view.tail <= 4 or Verbatim(3, 4) in view.items else ""
        found = {words for words in (rule, answer[:32]) if words in text}
        assert found >= had, room
        assert rule in found
        assert left is None or left < 100, room
        had = found
    assert answer[:32] in had


@given(st.lists(st.integers(1, 8), min_size=1, max_size=40), st.booleans())
def test_a_larger_record_has_all_that_a_smaller_one_has_with_its_note_and_without(
    sizes: list[int], is_numbered: bool
) -> None:
    words = [f"rule{place} " + "holds always " * size for place, size in enumerate(sizes)]
    history = History(Entry(seq, Message("user", text)) for seq, text in enumerate(words, 1))
    composer = Composer(history, SummarizeSettings(), numbered=is_numbered)
    had = set[str]()
    for room in range(20, 600, 11):
        record = composer.record(((1, history.head),), room, Prose())
        found = {text.partition(" ")[0] for text in words if text[:12] in record}
        assert found >= had, room
        had = found


@given(st.lists(st.integers(1, 60), min_size=2, max_size=40), st.booleans(), st.integers(600, 3_000))
def test_a_record_that_lacks_words_of_the_person_says_so(sizes: list[int], is_numbered: bool, room: int) -> None:
    """Else an older line would count although missing words have taken it back."""
    words = [f"rule{place} " + "holds always " * size for place, size in enumerate(sizes)]
    history = History(Entry(seq, Message("user", text)) for seq, text in enumerate(words, 1))
    record = Composer(history, SummarizeSettings(), numbered=is_numbered).record(((1, history.head),), room, Prose())
    is_lacking = not all(text[:12] in record for text in words)
    assert (GAPS in record) != (PREFACE in record)
    assert (GAPS in record) == (is_lacking or "[…]" in record)
    # And so does the record that is made of it.
    later = [Message("user", record, source="nca"), Message("user", "One more.")]
    again = Composer(History(Entry(seq, one) for seq, one in enumerate(later, 1)), SummarizeSettings(), numbered=False)
    assert (GAPS in again.record(((1, 2),), 9_000, Prose())) == (GAPS in record)


def test_names_that_can_be_read_in_a_message_that_stays_are_not_named_beside_it() -> None:
    pasted = " ".join(f"parse_line_{n}" for n in range(60))
    said = [Message("user", "Look at parse_line_7 and read_all_lines."), Message("assistant", "I have looked at both.")]
    messages = [*said * 4, Message("user", pasted)]
    history = History(Entry(seq, message) for seq, message in enumerate(messages, 1))
    view, _ = Composer(history, SummarizeSettings(), kept=((9, 9),)).view(4_000, Prose())
    assert not [item for item in view.items if isinstance(item, Summary) and "parse_line_1" in item.text]


@given(st.lists(st.integers(30, 300), min_size=1, max_size=4), st.integers(1, 6), st.integers(60, 900))
def test_new_results_are_whole_while_they_need_less_than_a_third_of_the_room(
    sizes: list[int], turns: int, answer_words: int
) -> None:
    answer = " ".join(f"fact{n}" for n in range(answer_words))
    talk = [Message("user", "Go on."), Message("assistant", answer)] * turns
    calls = tuple(ToolCall(f"c{n}", "read_file", json.dumps({"path": f"{n}.txt"})) for n in range(len(sizes)))
    results = [
        Message("tool", "\n".join(f"row{n} of it" for n in range(size)), tool_call_id=f"c{place}", name="read_file")
        for place, size in enumerate(sizes)
    ]
    step = [Message("assistant", None, calls), *results]
    history = History(Entry(seq, message) for seq, message in enumerate([*talk, Message("user", "Read."), *step], 1))
    first, head = history.head - len(results), history.head
    room = 3 * history.run_tokens(first, head) + 300
    composer = Composer(history, SummarizeSettings(), kept=((first - 1, first - 1),), unseen=((first, head),))
    view, _ = composer.view(room, Prose())
    assert not [item for item in view.items if isinstance(item, Stub) and item.seq >= first]


def test_the_prose_of_an_earlier_record_takes_a_third_of_the_room_at_most() -> None:
    earlier = f"{HEADER}\n" + " ".join(f"prose{n}" for n in range(2_000))
    words = " ".join(f"word{n}" for n in range(400))
    messages = [Message("user", earlier, source="nca"), *[Message("user", words), Message("assistant", words)] * 9]
    history = History(Entry(seq, message) for seq, message in enumerate(messages, 1))
    room = 1_500
    view, _ = Composer(history, SummarizeSettings(), kept=((history.head, history.head),)).view(room, Prose())
    [text] = [item.text for item in view.items if isinstance(item, Summary)]
    prose = " ".join(word for word in text.split() if word.startswith("prose"))
    assert 0.9 * room / 3 < text_tokens(prose) <= room / 3


def test_a_pure_function_of_the_log() -> None:
    messages = [Message("user" if n % 2 else "assistant", f"Message {n} says this. " * 20) for n in range(1, 60)]
    history = History(Entry(seq, message) for seq, message in enumerate(messages, 1))
    composer = Composer(history, SummarizeSettings(), kept=((59, 59),))
    [view, again] = [composer.view(1_500, Prose())[0] for _ in range(2)]
    assert view == again
    [summary] = [item for item in view.items if isinstance(item, Summary)]
    assert "### What the user said" in summary.text
