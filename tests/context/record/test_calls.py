"""Calls: effects, failures by their mark alone, and older calls."""

from __future__ import annotations

import json

from nca.context.history import History
from nca.context.record.calls import effects, failed, reads, runs, told, turn
from nca.context.record.past import Past, asked
from nca.messages import Entry, Message, ToolCall


def _called(number: int, name: str, text: str, *, is_error: bool = False, **arguments: object) -> list[Message]:
    call = ToolCall(f"c{number}", name, json.dumps(arguments))
    result = Message("tool", text, tool_call_id=call.id, name=name, is_error=is_error)
    return [Message("assistant", None, (call,)), result]


def _past(*messages: Message, changed: tuple[tuple[int, str], ...] = ()) -> Past:
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


def test_bookings_are_effects_and_look_ups_are_not() -> None:
    booked = _called(1, "book_reservation", '{"id": "HK8T2P"}', user="ana", flights=["LH441", "LH12"])
    looked = _called(2, "get_reservation", '{"id": "HK8T2P"}', id="HK8T2P")
    ran = _called(3, "shell", "done", command="make")
    written = _called(4, "write_file", "Wrote a.py.", path="src/a.py", content="x = 1")
    pieces = list(effects(_past(*booked, *looked, *ran, *written)))
    assert [piece.subject.seq for piece in pieces] == [7, 1]
    assert pieces[0].text == "src/a.py: write_file"
    assert "LH441,LH12" in pieces[1].text
    assert "HK8T2P" in pieces[1].text


def test_the_record_of_files_names_what_commands_changed() -> None:
    past = _past(*_called(1, "shell", "done", command="make"), changed=((2, "out/report.md"),))
    assert [(piece.subject.seq, piece.text) for piece in effects(past)] == [(2, "out/report.md: changed")]


def test_a_change_that_failed_is_no_effect() -> None:
    assert list(effects(_past(*_called(1, "edit_file", "No match.", is_error=True, path="a.py", new_text="x")))) == []


def test_calls_of_this_turn_and_older_ones() -> None:
    past = _past(
        *_called(1, "shell", "built", command="make"),
        *_called(2, "read_file", "x = 1", path="a.py"),
        Message("user", "And now?", source="typed"),
        *_called(3, "grep", "a.py:1: x", pattern="x"),
    )
    assert {piece.subject.seq for piece in turn(past)} == {6}
    assert {piece.subject.seq for piece in runs(past)} == {1}
    assert {piece.subject.seq for piece in reads(past)} == {3}


def test_a_line_has_what_was_asked_and_the_ends_of_what_came() -> None:
    [call, result] = _called(
        1, "shell", "\n".join(["first", *["a line of many words"] * 99, "last"]), command="make all"
    )
    called = next(iter(_past(call, result).calls))
    assert told(called).startswith("shell make all → first | a line")
    assert told(called).endswith("| last")
    assert "\n" not in told(called)
    assert told(called._replace(result=None)) == "shell make all → no result yet"
    empty = _called(2, "grep", "", pattern="x")
    assert told(next(iter(_past(*empty).calls))) == "grep x → nothing"


def test_long_content_says_less_than_short_arguments() -> None:
    call = ToolCall("c", "edit_file", json.dumps({"path": "a.py", "new_text": "y" * 500, "count": 2}))
    assert asked(call) == "edit_file a.py count=2"
