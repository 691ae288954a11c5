"""What a call repeats: the law by itself, and over recorded sessions whose failures are repeated."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import pytest

from nca.context.file_reads import NOT_RUN, only_reads
from nca.context.repeats import MOST_ROUNDS_COMPACTED, NUDGE, Repeats
from nca.messages import Message, ToolCall
from nca.wire import message_from_dict

SESSIONS = Path(__file__).parents[1] / "data" / "sessions"
PERSON = Message("user", "Go on")


def step(
    name: str, arguments: dict[str, object], result: str = "same", *, fails: bool = False, asks: bool = False
) -> list[Message]:
    call = ToolCall("c", name, json.dumps(arguments))
    answer = Message("tool", result, tool_call_id="c", is_error=fails or asks, asks_to_read=asks)
    return [Message("assistant", tool_calls=(call,)), answer]


def is_said(*steps: Sequence[Message], of: Sequence[Message], marks_refusals: bool = True) -> bool:
    """Whether the call of a step is said to have failed, when these steps went before."""
    repeats = Repeats(marks_refusals=marks_refusals)
    for message in (one for made in steps for one in made):
        repeats.note(message)
    repeats.note(of[0])
    return repeats.failed_before(of[0].tool_calls[0]) is not None


TEST = step("Bash", {"command": "make test", "description": "Run the tests"}, fails=True)
READ = step("Read", {"file_path": "a.py"})
EDIT = step("Edit", {"file_path": "a.py", "old_string": "x", "new_string": "y"})


def test_a_failure_is_said_until_something_may_have_changed() -> None:
    again = step("Bash", {"description": "Once more", "command": "make test"})
    assert is_said(TEST, of=again)
    assert is_said(TEST, READ, READ, of=again)
    assert is_said(TEST, [Message("user", "[a hook says: go on]", source="nca")], of=again)
    assert is_said(TEST, step("Edit", {"file_path": "a.py"}, "no such text", fails=True), of=again)
    assert not is_said(READ, of=READ)
    assert not is_said(TEST, EDIT, of=again)
    assert not is_said(TEST, [PERSON], of=again)
    assert not is_said(TEST, step("Bash", {"command": "ls"}), of=again)
    assert not is_said(TEST, step("Bash", {"command": "make test"}), of=again)
    assert not is_said(TEST, of=step("Bash", {"command": "make tests"}))
    # A command that failed may have changed something; a call that did not run neither did nor failed.
    assert not is_said(TEST, step("Bash", {"command": "make install"}, fails=True), of=again)
    assert is_said(TEST, step("Bash", {"command": "ls"}, f"{NOT_RUN} the person said no]", fails=True), of=again)
    assert not is_said(step("Bash", {"command": "make test"}, f"{NOT_RUN} the person said no]", fails=True), of=again)
    assert not is_said([TEST[0], msgspec.structs.replace(TEST[1], source="nca")], of=again)
    assert not is_said(step("Agent", {"description": "a"}, fails=True), of=step("Agent", {"description": "b"}))


def test_an_edit_that_waits_for_a_look_at_the_file_may_work_after_it() -> None:
    unread = step("Edit", {"file_path": "/w/a.py", "old_string": "x"}, "a.py ist unbekannt", asks=True)
    wrong = step("Edit", {"file_path": "/w/a.py", "old_string": "x"}, "no line is similar; read it again", fails=True)
    assert is_said(unread, step("Read", {"file_path": "/w/b.py"}), of=unread)
    assert is_said(unread, step("Read", {"file_path": "/w/a.py"}, "no such file", fails=True), of=unread)
    assert not is_said(unread, READ, of=unread)
    assert is_said(wrong, READ, of=wrong)
    assert is_said(unread, READ, wrong, READ, of=wrong)


def test_where_refusals_are_not_marked_any_failed_edit_may_wait_for_a_look() -> None:
    failed = step("Edit", {"file_path": "/w/a.py", "old_string": "x"}, "File has not been read yet", fails=True)
    assert is_said(failed, step("Read", {"file_path": "/w/b.py"}), of=failed, marks_refusals=False)
    assert not is_said(failed, READ, of=failed, marks_refusals=False)
    assert is_said(TEST, READ, of=TEST, marks_refusals=False)


def test_what_runs_on_may_change_anything_later() -> None:
    for arguments in ({"command": "npm run dev &"}, {"command": "serve", "run_in_background": True}):
        assert not is_said(step("Bash", dict(arguments)), TEST, READ, of=TEST)
    assert is_said(step("Bash", {"command": "make 2>&1 && echo a >&2"}), TEST, READ, of=TEST)


def test_an_open_call_ahead_of_this_one_counts_as_a_change() -> None:
    edit, test = ToolCall("1", "Edit", '{"file_path": "a"}'), ToolCall("2", "Bash", TEST[0].tool_calls[0].arguments)
    for order, said in (((edit, test), False), ((test, edit), True)):
        # Some programs write a message for each call.
        for answers in ([order], [(call,) for call in order]):
            repeats = Repeats()
            for message in (*TEST, *(Message("assistant", tool_calls=calls) for calls in answers)):
                repeats.note(message)
            assert (repeats.failed_before(test) is not None) is said


@pytest.mark.parametrize(("steps_in_a_view", "noticed_at"), [(400, 9), (2, 9), (7, 9)])
def test_two_hundred_steps_in_a_circle_are_noticed(steps_in_a_view: int, noticed_at: int) -> None:
    """With two steps in a view: 99 compactions."""
    repeats = Repeats()
    nudged, stuck = [], 0
    for number in range(200):
        for message in step("Read", {"file_path": f"{number % 3}.py"}, f"read in 0.{number} s"):
            repeats.note(message, view_id=number // steps_in_a_view)
        nudged += [number + 1] if repeats.round.nudge else []
        stuck = stuck or (number + 1) * repeats.round.is_stuck
    assert nudged[0] == noticed_at
    assert stuck == (12 if steps_in_a_view == 400 else 3 * (MOST_ROUNDS_COMPACTED + 1))


def test_files_read_again_after_each_compaction_are_no_circle_while_something_comes_of_it() -> None:
    repeats = Repeats()
    for number in range(100):
        for made in (READ, step("Edit", {"file_path": "a.py", "new_string": str(number)})):
            for message in made:
                repeats.note(message, view_id=number)
            assert repeats.round.rounds <= 2


def test_a_circle_in_which_the_calls_are_grouped_in_other_ways_is_one() -> None:
    repeats = Repeats()
    one, two = ToolCall("1", "Read", '{"path": "a"}'), ToolCall("2", "Read", '{"path": "b"}')
    said = []
    for calls in ((one, two), (one,), (two,), (two, one)):
        repeats.note(Message("assistant", tool_calls=calls))
        for call in calls:
            repeats.note(Message("tool", call.arguments, tool_call_id=call.id))
        said.append(repeats.round.nudge)
    assert said == ["", "", "", NUDGE]


def test_repeated_failures_of_recorded_sessions_are_said() -> None:
    """Each recorded failure is repeated at once, after reading, after a change and after a word of the person."""
    due = said = false = silent = 0
    for path in sorted(SESSIONS.glob("*.jsonl")):
        messages = [message_from_dict(json.loads(line)) for line in path.read_bytes().splitlines()]
        due_here, said_here, false_here = _as_recorded(messages)
        assert false_here == 0, path.name
        due, said = due + due_here, said + said_here
        for end, failing in _failures(messages):
            before = messages[:end]
            # A service that the session left running, with nohup, may change what the next call finds.
            is_quiet = not any("nohup " in call.arguments for call in _since_the_person(before))
            for between, is_due in (([], is_quiet), (READ * 3, is_quiet), (EDIT, False), ([PERSON], False)):
                is_told = is_said(before, between, of=failing)
                due, said = due + is_due, said + (is_due and is_told)
                false, silent = false + (is_told and not is_due), silent + (not is_due)
    figures = f"repeated failures: {due}, said before they run: {said}; said of {silent} others: {false}"
    sys.stdout.write(f"{figures}\n")
    assert due > 50
    assert said >= 0.95 * due
    assert false <= 0.01 * (said + false)


def _failures(messages: Sequence[Message]) -> Iterator[tuple[int, list[Message]]]:
    """Where the result of a call that ran and failed ends, and a step of this call alone."""
    calls: dict[str, ToolCall] = {}
    for place, result in enumerate(messages, 1):
        calls |= {call.id: call for call in result.tool_calls}
        if result.is_error and not result.text.startswith(NOT_RUN):
            yield place, [Message("assistant", tool_calls=(calls[result.tool_call_id],)), result]


def _since_the_person(messages: Sequence[Message]) -> list[ToolCall]:
    newest = max(place for place, message in enumerate(messages) if message.role == "user")
    return [call for message in messages[newest:] for call in message.tool_calls]


def _as_recorded(messages: Sequence[Message]) -> tuple[int, int, int]:
    """Calls that failed again with nothing but reading between; those said; those said that then did not fail.

    Judged by comparing each call with all before it, back to the person's word or a change.
    """
    repeats, due, said, false = Repeats(), 0, 0, 0
    results = {message.tool_call_id: message for message in messages if message.role == "tool"}
    made: list[tuple[ToolCall, bool]] = []
    for message in messages:
        repeats.note(message)
        if message.role == "user":
            made = []
        if message.role == "assistant" and len(message.tool_calls) == 1:
            call = message.tool_calls[0]
            has_failed = call.id in results and results[call.id].is_error
            is_told = repeats.failed_before(call) is not None
            same = [one for one, failed in made if failed and (one.name, one.arguments) == (call.name, call.arguments)]
            due += bool(same) and has_failed
            said += bool(same) and has_failed and is_told
            false += is_told and not has_failed
            made = [*(made if only_reads(call) else []), (call, has_failed)]
    return due, said, false
