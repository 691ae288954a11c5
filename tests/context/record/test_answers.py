"""Answers: lists keep every item, and the newest version of a text stands for all."""

from __future__ import annotations

from nca.context.history import History
from nca.context.record.answers import answers, latest, outline, shortened
from nca.context.record.past import Past
from nca.messages import Entry, Message

PLAN = "Here is the plan:\n\n" + "\n".join(
    f"{n}. Step {n} changes the module number {n} and its tests" for n in range(1, 9)
)
DRAFT = "\n".join(f"Line {n} of the invitation says something that is long enough." for n in range(12))


def _past(*texts: str) -> Past:
    messages = [message for text in texts for message in (Message("user", "Go on."), Message("assistant", text))]
    history = History(Entry(seq, message) for seq, message in enumerate([*messages, Message("user", "And now?")], 1))
    return Past(history, ((1, history.head),))


def test_a_list_keeps_the_beginning_of_each_item() -> None:
    short = outline(PLAN + " and so on" * 40, 600)
    assert all(f"{n}. Step {n}" in short for n in range(1, 9))
    assert len(short) <= 700


def test_an_outline_of_too_little_is_none() -> None:
    assert outline(PLAN, 60) == ""


def test_an_answer_begins_with_its_first_sentences() -> None:
    assert shortened("One thing is clear. " * 50, 10).startswith("One thing is clear.")


def test_an_older_version_is_replaced_by_the_newest() -> None:
    pieces = list(answers(_past(DRAFT, "Something else.", DRAFT.replace("Line 3", "The third line"))))
    first = {piece.seq: piece.text for piece in reversed(pieces)}
    assert first[2].startswith("replaced by (6): ")
    assert not first[6].startswith("replaced")
    assert first[4] == "Something else."


def test_where_nobody_can_look_up_a_number_none_is_named() -> None:
    past = _past(DRAFT, DRAFT)
    past.numbered = False
    assert any(piece.text.startswith("replaced later: ") for piece in answers(past))


def test_the_answer_that_the_newest_message_answers_has_a_place_of_its_own() -> None:
    pieces = list(latest(_past("Old.", PLAN)))
    assert {piece.seq for piece in pieces} == {4}
    assert pieces[-1].text == PLAN
