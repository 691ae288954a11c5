"""Answers: lists keep every item, and the newest version of a text stands for all."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nca.context.history import History
from nca.context.record.answers import answers, latest, lists
from nca.context.record.past import Past
from nca.messages import Entry, Message, ToolCall

PLAN = "Here is the plan:\n\n" + "\n".join(
    f"{n}. Step {n} changes the module number {n} and its tests" for n in range(1, 9)
)
DRAFT = "\n".join(f"Line {n} of the invitation says something that is long enough." for n in range(12))


def _past(*texts: str) -> Past:
    messages = [message for text in texts for message in (Message("user", "Go on."), Message("assistant", text))]
    history = History(Entry(seq, message) for seq, message in enumerate([*messages, Message("user", "And now?")], 1))
    return Past(history, ((1, history.head),))


def test_an_older_version_is_replaced_by_the_newest() -> None:
    pieces = list(answers(_past(DRAFT, "Something else.", DRAFT.replace("Line 3", "The third line"))))
    first = {piece.subject.seq: piece.text for piece in reversed(pieces)}
    assert first[2] == "replaced by (6)"
    assert first[6].startswith("Line 0")
    assert first[4] == "Something else."


@given(lines=st.integers(6, 40), kept=st.integers(3, 40), is_end=st.booleans())
def test_a_part_of_an_answer_does_not_replace_it(lines: int, kept: int, is_end: bool) -> None:
    """What a shorter text leaves out nobody took back: "and only the first half, to print?"."""
    whole = [f"{n}. May: the concert in the hall of city number {n}" for n in range(lines)]
    part = whole[-kept:] if is_end else whole[:kept]
    first = {piece.subject.seq: piece.text for piece in answers(_past("\n".join(whole), "\n".join(part)))}
    assert first[2].startswith("replaced by") is (len(part) >= 0.75 * lines)


def test_a_todo_list_that_the_model_left_open_is_a_list() -> None:
    steps = '{"done": ["read"], "doing": "mend", "open": ["test"]}'
    listed = Message("assistant", None, (ToolCall("t", "todo", steps),))
    result = Message("tool", "[1 of 3 done]", tool_call_id="t", name="todo")
    said = [Message("user", "Go on."), listed, result, Message("assistant", PLAN), Message("user", "And now?")]
    history = History(Entry(seq, message) for seq, message in enumerate(said, 1))
    pieces = {piece.subject.seq: piece.text for piece in lists(Past(history, ((1, history.head),)))}
    assert pieces.keys() == {2, 4}
    assert pieces[2] == "- [x] read\n- [ ] mend\n- [ ] test"
    cleared = Past(history, ((4, history.head),))
    assert {piece.subject.seq for piece in lists(cleared)} == {4}, "nothing is told of what is no part of it"


def test_answers_that_share_a_phrase_are_no_versions() -> None:
    said = "I looked it up in the configuration. The limit of {} is {} requests a second. Nothing else is set for it."
    pieces = list(answers(_past(*(said.format(name, n) for n, name in enumerate(("orders", "billing", "mail"))))))
    assert [piece.text for piece in pieces if piece.text.startswith("replaced")] == []


def test_of_many_versions_one_line_is_told() -> None:
    texts = [DRAFT.replace("Line 3", f"The line {n}") for n in range(9)]
    pieces = list(answers(_past(*texts)))
    assert [piece.subject.seq for piece in pieces if piece.text.startswith("replaced")] == [16]


def test_where_nobody_can_look_up_a_number_none_is_named() -> None:
    past = _past(DRAFT, DRAFT)
    past.numbered = False
    assert {piece.subject.seq for piece in answers(past)} == {4}


def test_a_plan_keeps_its_place_behind_later_answers() -> None:
    past = _past(PLAN, "Done with step 1.", "Done with step 2.")
    assert {piece.subject.seq for piece in lists(past)} == {2}


def test_the_answer_that_the_newest_message_answers_has_a_place_of_its_own() -> None:
    pieces = list(latest(_past("Old.", PLAN)))
    assert {piece.subject.seq for piece in pieces} == {4}
    assert pieces[-1].text == PLAN


def test_an_answer_that_a_model_has_named_stays_beside_it() -> None:
    past = _past(PLAN, "Old.", "Done.")
    past.important = frozenset({2})
    pieces = list(latest(past))
    assert {piece.subject.seq for piece in pieces} == {2, 6}
    assert max((piece for piece in pieces if piece.subject.seq == 2), key=lambda one: one.level).text == PLAN
