"""What recall lists of a log: messages, answers, errors, files, the uses of a file, a turn."""

from __future__ import annotations

import json

import pytest

from nca.agent.archive import lines_of_turn, listed, turn_in
from nca.messages import Entry, Message, TextPart, ToolCall


def entries(*messages: Message) -> list[Entry]:
    return [Entry(seq, message) for seq, message in enumerate(messages, 1)]


def called(id: str, name: str, result: str, *, fails: bool = False, **arguments: object) -> tuple[Message, Message]:
    call = ToolCall(id, name, json.dumps(arguments))
    return Message("assistant", None, (call,)), Message("tool", result, tool_call_id=id, name=name, is_error=fails)


def test_messages_are_what_the_person_typed_in_any_language_and_whole() -> None:
    parts = (TextPart("  "), TextPart("Traceback\nline 2", source="piped"))
    log = entries(
        Message("user", "Hello. Never edit the vendor folder. How are you?\n"),
        Message("assistant", "Fine. You must wait."),
        Message("user", "Always remember this reminder.", source="nca"),
        Message("user", "Ich heiße Ann.", source="typed"),
        Message("user", parts),
        *called("1", "shell", "You must not use it.", command="make"),
    )
    assert listed(log, "messages") == [(1, "Hello. Never edit the vendor folder. How are you?"), (4, "Ich heiße Ann.")]


def test_answers_are_what_the_model_said_last_and_not_between_calls() -> None:
    call, result = called("1", "shell", "done", command="make")
    log = entries(
        Message("user", "Which?"),
        Message("assistant", "I decided to look first.", call.tool_calls),
        result,
        Message("assistant", "SQLite, because it is one file.\n"),
        Message("assistant", ""),
    )
    assert listed(log, "answers") == [(4, "SQLite, because it is one file.")]


def test_an_error_is_listed_until_the_same_call_succeeds() -> None:
    failing = called("1", "shell", "FAILED tests/a.py::test_b\n[exit code 1]", fails=True, command="pytest tests/a.py")
    other = called("2", "shell", "x.c:1: error: no semicolon\n", fails=True, command="make")
    fixed = called("3", "shell", "1 passed", command="pytest tests/a.py")
    ((seq, text), *more) = listed(entries(*failing, *other), "errors")
    assert seq == 2
    assert text == "shell pytest tests/a.py: FAILED tests/a.py::test_b\n[exit code 1]"
    assert more == [(4, "shell make: x.c:1: error: no semicolon")]
    assert [seq for seq, _ in listed(entries(*failing, *other, *fixed), "errors")] == [4]


@pytest.mark.parametrize("name", ["read_file", "shell"])
def test_what_only_speaks_of_errors_is_no_error(name: str) -> None:
    result = "Traceback (most recent call last)\nFAILED tests/a.py::test_b\n1 failed"
    assert listed(entries(*called("1", name, result, path="a.log", command="tail a.log")), "errors") == []


def test_of_a_long_error_its_ends_are_listed() -> None:
    result = "First line.\n" + "It goes on and on.\n" * 200 + "[exit code 1]"
    ((_, text),) = listed(entries(*called("1", "shell", result, fails=True, command="make")), "errors")
    assert len(text) < 400
    assert text.startswith("shell make: First line.")
    assert text.endswith("[exit code 1]")


def test_files_are_listed_with_what_was_done_to_them() -> None:
    log = entries(
        *called("1", "read_file", "text", path="src/a.py"),
        *called("2", "read_file", "text", path="b.py", offset=5, limit=6),
        *called("3", "edit_file", "done", path="src/a.py"),
    )
    assert listed(log, "files") == [(3, "b.py: read 1×"), (5, "src/a.py: changed 1×, read 1×")]
    assert listed(log, "a.py") == [(1, "read_file src/a.py"), (5, "edit_file src/a.py")]
    assert listed(log, "./b.py") == [(3, "read_file b.py lines 5-10")]


def test_a_turn_is_one_line_for_each_message() -> None:
    log = entries(Message("user", "Go\non"), *called("1", "shell", "done", command="make"))
    assert lines_of_turn(log) == [(1, "Go on"), (2, "shell make"), (3, "done")]


def test_scopes() -> None:
    assert (turn_in("turn 12"), turn_in("turn"), turn_in("answers")) == (12, 0, 0)
    for gone in ("everything", "rules", "decisions"):
        with pytest.raises(
            ValueError, match=f"no such scope: '{gone}'; the scopes are session, all, messages, answers"
        ):
            listed([], gone)
