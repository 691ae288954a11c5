"""Calls: effects, failures by their mark alone, and older calls."""

from __future__ import annotations

import json
from dataclasses import replace
from string import ascii_lowercase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nca.config.schema import SummarizeSettings
from nca.context.admission import SAVED
from nca.context.file_reads import CUT_OFF, CUT_OFF_BY_USER
from nca.context.history import History
from nca.context.named import names_in
from nca.context.record.called import Called, asked, long_arguments
from nca.context.record.calls import (
    CAME,
    call_text,
    effects,
    ended_effects,
    failed,
    files,
    longer_effects,
    older,
    turn,
)
from nca.context.record.compose import Composer, Prose
from nca.context.record.past import Past, RecordLine
from nca.context.record.piece import Section
from nca.messages import Entry, Message, ToolCall
from tests.context.samples import call, calling, some, user


def _called(number: int, name: str, text: str, *, is_error: bool = False, **arguments: object) -> list[Message]:
    call = ToolCall(f"c{number}", name, json.dumps(arguments))
    result = Message("tool", text, tool_call_id=call.id, name=name, is_error=is_error)
    return [Message("assistant", None, (call,)), result]


def _past(*messages: Message, changed: tuple[tuple[int, str, str], ...] = ()) -> Past:
    history = History(Entry(seq, message) for seq, message in enumerate(messages, 1))
    return Past(history, ((1, history.head),), changed=changed)


def test_a_green_run_that_names_errors_has_not_failed() -> None:
    run = _called(1, "shell", "test_error_handling PASSED\nFAILED is a word here\n3 passed", command="pytest")
    assert list(failed(_past(*run))) == []


def test_what_failed_is_there_until_the_same_call_is_made_again() -> None:
    broken = _called(1, "shell", "E  assert 1 == 2\n[exit code 1]", is_error=True, command="pytest")
    other = _called(2, "shell", "ok", command="ls")
    [piece] = failed(_past(*broken, *other))
    assert piece.text.startswith("shell pytest → ")
    assert "assert 1 == 2" in piece.text
    again = _called(3, "shell", "1 passed", command="pytest")
    assert list(failed(_past(*broken, *other, *again))) == []


@pytest.mark.parametrize("note", [CUT_OFF, f"3 seats left\n{CUT_OFF_BY_USER}\n[The whole output is in a.log]"])
def test_a_call_that_was_cut_off_has_not_failed_and_may_have_changed_something(note: str) -> None:
    booked = _called(1, "book_reservation", note, is_error=True, user="ana")
    written = _called(2, "write_file", note, is_error=True, path="a.py", content="x")
    ran = _called(3, "shell", note, is_error=True, command="make deploy")
    past = _past(*booked, *written, *ran, Message("user", "Go on."))
    assert list(failed(past)) == list(files(past)) == []
    [brief] = effects(past)
    assert brief.text.startswith("book_reservation user=ana → ")
    assert any(mark in brief.text for mark in (CUT_OFF, CUT_OFF_BY_USER)), "nothing says that it was done"
    lines = [piece.text for piece in older(past)]
    assert len(lines) == 2
    assert not any("failed" in line for line in lines)


def test_of_a_change_what_is_there_now_comes_first() -> None:
    before, after = "old " * 100, "new " * 100
    _, result = change = _called(1, "edit_file", "1 replacement", path="a.py", old_text=before, new_text=after)
    called = Called(1, 0, change[0].tool_calls[0], result, 2)
    assert "old" not in call_text(called, 100).removeprefix("edit_file a.py")


def test_bookings_are_effects_and_look_ups_are_not() -> None:
    answer = (
        '{"id": "HK8T2P", "user": "ana", "paid": "card 7447", "insured": "no", "class": "economy", "status": "booked"}'
    )
    booked = _called(1, "book_reservation", answer, user="ana", flights=["LH441", "LH12"])
    looked = _called(2, "get_reservation", '{"id": "HK8T2P"}', id="HK8T2P")
    ran = _called(3, "shell", "done", command="make")
    written = _called(4, "write_file", "Wrote a.py.", path="src/a.py", content="x = 1")
    past = _past(*booked, *looked, *ran, *written)
    [brief], [short], [longer] = effects(past), ended_effects(past), longer_effects(past)
    assert brief.subject.seq == short.subject.seq == longer.subject.seq == 1
    assert brief.text == "book_reservation user=ana flights=LH441,LH12 → […]"
    assert short.text.startswith("book_reservation user=ana flights=LH441,LH12 → id:HK8T2P")
    assert brief.tokens < short.tokens < longer.tokens
    assert "status:booked" in longer.text
    assert "user:ana" not in longer.text
    assert [(piece.subject.seq, piece.text) for piece in files(past)] == [(7, "src/a.py: write_file")]
    assert list(older(past)) == [], "they are of this turn"


def test_a_line_has_whole_arguments_and_whole_fields_that_the_call_has_not_said() -> None:
    answer = json.dumps({"id": "R7", "user": "ana_li_3668", "seat": "", "legs": [{"from": "JFK"}], "price": 120})
    made = _called(1, "book", answer, id="R7", legs=["a" * 30, "b" * 30], cabin="economy")
    past = _past(*made)
    assert next(effects(past)).text == "book id=R7 […] cabin=economy → […]"
    assert next(ended_effects(past)).text == "book id=R7 […] cabin=economy → user:ana_li_3668 legs:from:JFK price:120"


@some
@given(
    st.dictionaries(st.sampled_from(ascii_lowercase), st.integers(0, 3).map(str), max_size=8),
    st.lists(st.booleans(), min_size=2, max_size=60),
    st.permutations(("id", "state", "at", "kind")),
)
def test_how_each_of_many_calls_ended_can_be_told(same: dict[str, str], went: list[bool], order: list[str]) -> None:
    """Whatever else the results of a tool say, and in whatever order: a state that differs is in the line."""
    messages: list[Message] = []
    for number, is_done in enumerate(went):
        said = {
            "id": f"ch_{number:05}",
            "state": "done" if is_done else "declined",
            "at": f"12:{number:02}:07",
            "kind": "x",
        }
        result = {**same, **{name: said[name] for name in order}}
        messages += _called(number, "charge", json.dumps(result), order=f"O-{number}")
    states = set(went)
    for piece, is_done in zip(ended_effects(_past(*messages)), reversed(went), strict=True):
        assert (f"state:{'done' if is_done else 'declined'}" in piece.text) or len(states) == 1
        assert "id:ch_" in piece.text


@pytest.mark.parametrize("text", ['["no object"]', '{"a": ', '{"a":' * 900 + "1" + "}" * 900])
def test_what_is_no_object_of_fields_stands_as_it_is(text: str) -> None:
    made = _called(1, "book", text, id="R8")
    assert next(ended_effects(_past(*made))).text.startswith(f"book id=R8 → {text[:5]}")


def test_a_reference_behind_a_long_text_or_within_objects_is_in_the_line() -> None:
    answer = {
        "note": "It is made on the next business day. " * 8,
        "data": {"transfer": {"state": "SETTLED", "id": "TX4C2"}},
    }
    past = _past(*_called(1, "create_transfer", json.dumps(answer), to="Ana"))
    assert next(ended_effects(past)).text == "create_transfer to=Ana → […] state:SETTLED id:TX4C2"


def test_a_call_that_the_conversation_left_without_a_result_may_have_changed_something() -> None:
    refund = calling(call("c1", "refund_payment", invoice="INV-7"))
    begun = _past(user("Refund it."), refund)
    assert list(effects(begun)) == []
    left = _past(user("Refund it."), refund, user("And the next one?"))
    assert next(effects(left)).text == "refund_payment invoice=INV-7 → no result came: its outcome is unknown"


def test_no_heading_says_of_a_call_that_failed_that_it_changed_something() -> None:
    """Most programs' transcripts have no mark for a tool that failed. What it did nobody knows, so its line stays."""
    charged = _called(1, "charge_card", "Error: gateway timeout", order="O-1")
    unwritten = _called(2, "edit_file", "Error: the text is not in the file", path="a.py")
    marked = _called(3, "charge_card", "gateway timeout", is_error=True, order="O-2")
    past = _past(*charged, *unwritten, *marked)
    assert list(files(past)) == list(failed(past)) == []
    told = {(piece.subject.section, piece.text) for piece in ended_effects(past)}
    assert told == {
        (Section.TURN, "charge_card order=O-1 → Error: gateway timeout"),
        (Section.FAILED, "charge_card order=O-2 → gateway timeout"),
    }
    later = _past(*charged, user("And now?"))
    assert [piece.subject.section for piece in effects(later)] == [Section.CALLS]


def test_each_call_has_one_line() -> None:
    past = _past(user("Book it."), *_called(1, "book_flight", "booked", flight="LH1"))
    (of_turn,), (of_effects,) = turn(past), ended_effects(past)
    assert of_turn.subject.key == of_effects.subject.key
    assert of_turn.subject.section == of_effects.subject.section == Section.EFFECTS


def test_all_effects_can_be_told_before_anything_has_a_longer_form() -> None:
    """40 bookings among 120 answers: each has a line, and one line each is less than a tenth of the room."""
    messages = [Message("user", "Book these flights, please.", source="typed")]
    for number in range(120):
        if number % 3 == 0:
            messages += _called(number, "book_flight", f'{{"id": "B{number:03}"}}', flight=f"LH{number:03}", seats=2)
        messages.append(Message("assistant", f"Answer {number}: " + "this was looked at with care. " * 40))
        messages.append(Message("user", f"Go on with number {number}.", source="typed"))
    history = History(Entry(seq, message) for seq, message in enumerate(messages, 1))
    record = Composer(history, SummarizeSettings()).record([(1, history.head)], 9_000, Prose())
    assert [number for number in range(0, 120, 3) if f"flight=LH{number:03}" not in record] == []


def test_a_file_that_was_written_is_among_the_changed_files_once() -> None:
    made = _called(1, "write_file", "Wrote a.py.", path="a.py", content="x = 1")
    refused = _called(2, "write_file", "no such directory", is_error=True, path="b/b.py", content="x = 1")
    looked = _called(3, "read_file", "x = 1", path="a.py")
    past = _past(*made, *refused, *looked, Message("user", "And now?", source="typed"))
    assert [piece.subject.seq for piece in files(past)] == [1]
    assert {piece.subject.seq for piece in older(past)} == {1, 3, 5}


def test_a_call_that_failed_is_told_once() -> None:
    broken = _called(
        1, "shell", "\n".join(f"E  line {n} of what went wrong" for n in range(60)), is_error=True, command="make"
    )
    talk = [Message("assistant", "It fails."), Message("user", "And now?", source="typed")]
    messages = [Message("user", "Run make.", source="typed"), *broken, *talk]
    history = History(Entry(seq, message) for seq, message in enumerate(messages, 1))
    for room in (400, 800):
        text = Composer(history, SummarizeSettings()).record([(1, 4)], room, Prose())
        assert text.count("shell make") == 1
        assert text.index("### Calls with errors") < text.index("shell make")


def test_a_file_stands_with_its_newest_change_whoever_made_it() -> None:
    made = _called(1, "write_file", "Wrote a.py.", path="a.py", content="x = 1")
    ran = _called(2, "shell", "done", command="make")
    again = _called(3, "write_file", "Wrote b.py.", path="b.py", content="x = 1")
    changed = (1, "a.py"), (3, "out.db"), (3, "a.py"), (5, "b.py")
    past = _past(*made, *ran, *again, changed=tuple((seq, path, "changed") for seq, path in changed))
    lines = [(piece.subject.seq, piece.text) for piece in files(past)]
    assert lines == [(5, "b.py: write_file"), (3, "out.db: changed"), (3, "a.py: changed")]


def test_the_record_of_files_names_what_commands_changed() -> None:
    past = _past(
        *_called(1, "shell", "done", command="make"),
        changed=((2, "out/report.md", "changed"), (2, "old.md", "deleted")),
    )
    told = [(piece.subject.seq, piece.text) for piece in files(past)]
    assert told == [(2, "out/report.md: changed"), (2, "old.md: deleted")]


def test_a_change_that_failed_is_no_effect() -> None:
    assert list(files(_past(*_called(1, "edit_file", "No match.", is_error=True, path="a.py", new_text="x")))) == []


def test_a_call_that_was_refused_has_not_failed_and_done_nothing() -> None:
    """By its result alone: another program's messages have no marks."""
    no = "[not run: the person said no]"
    broken = _called(1, "shell", "E  assert 1 == 2", is_error=True, command="pytest")
    for is_error in (True, False):
        refused = [
            *_called(2, "write_file", no, is_error=is_error, path="a.py", content="x = 1"),
            *_called(3, "book_flight", no, is_error=is_error, flight="LH441"),
            *_called(4, "shell", no, is_error=is_error, command="pytest"),
        ]
        past = _past(*broken, *refused, Message("user", "And now?", source="typed"))
        assert list(files(past)) == list(effects(past)) == []
        assert [piece.subject.seq for piece in failed(past)] == [1], "a call that was not made is no repetition"
        lines = {piece.subject.seq: piece.text for piece in older(past)}
        assert lines.keys() == {1, 3, 5, 7}
        assert lines[5] == f"book_flight flight=LH441 → {no}"


def test_calls_of_this_turn_and_older_ones() -> None:
    past = _past(
        *_called(1, "shell", "built", command="make"),
        *_called(2, "read_file", "x = 1", path="a.py"),
        Message("user", "And now?", source="typed"),
        *_called(3, "grep", "a.py:1: x", pattern="x"),
    )
    assert {piece.subject.seq for piece in turn(past)} == {6}
    assert {piece.subject.seq for piece in older(past)} == {1, 3}


def test_a_line_has_what_was_asked_and_the_ends_of_what_came() -> None:
    [call, result] = _called(
        1, "shell", "\n".join(["first", *["a line of many words"] * 99, "last"]), command="make all"
    )
    called = next(iter(_past(call, result).calls))
    assert call_text(called).startswith("shell make all → first | a line")
    assert call_text(called).endswith("| last")
    assert "\n" not in call_text(called)
    assert call_text(replace(called, result=None)) == "shell make all → no result yet"
    empty = _called(2, "grep", "", pattern="x")
    assert call_text(next(iter(_past(*empty).calls))) == "grep x → nothing"


def test_long_content_says_less_than_short_arguments() -> None:
    call = ToolCall("c", "edit_file", json.dumps({"path": "a.py", "new_text": "y" * 500, "count": 2}))
    assert asked(call) == "edit_file a.py count=2"


def test_a_line_of_an_earlier_record_can_be_cut_to_any_size() -> None:
    line = RecordLine(
        Section.EFFECTS, 1, 0, "book_flight flight=LH441 seats=2" + CAME + "booked as HK8T2P " * 20 + "at last"
    )
    whole = line.whole()
    assert whole.text == line.text
    assert all(whole.subject.piece(level).tokens <= whole.tokens for level in range(1, 60, 7))


def test_a_long_command_is_told_once() -> None:
    command = "\n".join(f"print({number}, 'the value of row {number}')" for number in range(40))
    called = next(iter(_past(*_called(1, "shell", "ok", command=command, timeout=60)).calls))
    assert call_text(called).count("print(0,") == 1
    for tokens in (150, 450, 1_350):
        assert call_text(called, tokens).count("print(0,") == 1
        assert "timeout=60" in call_text(called, tokens)
    assert all(line in call_text(called, 1_350) for line in command.splitlines())


def test_a_nested_argument_is_read_as_what_it_says() -> None:
    """An escape of JSON is no letter, and the name of an argument no name that somebody said."""
    edits = [{"old_text": "\nfirst_one", "new_text": "\nsecond_one " * 30}]
    call = ToolCall("c1", "edit_file", json.dumps({"path": "src/a.py", "more_edits": edits}))
    called = frozenset({"src/a.py", "first_one", "second_one"})
    assert names_in(Message("assistant", "As in old.py.", (call,))) == (
        frozenset(called | {"old.py"}),
        frozenset(called),
    )
    assert long_arguments(call).splitlines()[1].strip() == "second_one"


def test_a_line_ends_as_the_output_did_and_not_with_the_place_of_its_file() -> None:
    """The number before the line leads to that file too."""
    output = "\n".join(map(str, range(7_000, 8_501)))
    text = (
        f"{output}\n[Output truncated from 7505 bytes to 4174 bytes]\n{SAVED}/home/me/.local/share/nca/outputs/1/5.txt]"
    )
    called = Called(1, 0, call("a", "shell", command="seq 7000 8500"), Message("tool", text, tool_call_id="a"), 2)
    for tokens in (20, 40, 200):
        assert "outputs" not in call_text(called, tokens)
        assert "8500" in call_text(called, tokens)
