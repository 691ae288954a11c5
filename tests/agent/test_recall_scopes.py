"""What recall lists of a log: rules, decisions, errors, files, the uses of a file, a turn."""

from __future__ import annotations

import json

import pytest

from nca.agent.recall_scopes import lines_of_turn, listed, turn_in
from nca.messages import Entry, Message, ToolCall


def entries(*messages: Message) -> list[Entry]:
    return [Entry(seq, message) for seq, message in enumerate(messages, 1)]


def called(id: str, name: str, result: str, **arguments: object) -> tuple[Message, Message]:
    call = ToolCall(id, name, json.dumps(arguments))
    return Message("assistant", None, (call,)), Message("tool", result, tool_call_id=id, name=name)


def test_rules_and_decisions_are_sentences_with_their_message() -> None:
    log = entries(
        Message("user", "Hello. Never edit the vendor folder. How are you?"),
        Message("assistant", "I decided to use SQLite because it is one file. Fine."),
    )
    assert listed(log, "rules") == [(1, "Hello. Never edit the vendor folder. How are you?")]
    assert [seq for seq, text in listed(log, "decisions") if "SQLite" in text] == [2]


def test_an_error_is_listed_until_the_same_call_succeeds() -> None:
    failing = called("1", "shell", "FAILED tests/a.py::test_b\n[exit code 1]", command="pytest tests/a.py")
    other = called("2", "shell", "x.c:1: error: no semicolon\nerror: build failed", command="make")
    fixed = called("3", "shell", "1 passed", command="pytest tests/a.py")
    ((seq, text), *more) = listed(entries(*failing, *other), "errors")
    assert seq == 2
    assert text == "shell pytest tests/a.py: FAILED tests/a.py::test_b"
    assert [seq for seq, _ in more] == [4]
    assert [seq for seq, _ in listed(entries(*failing, *other, *fixed), "errors")] == [4]


def test_a_file_that_speaks_of_errors_is_no_error() -> None:
    assert listed(entries(*called("1", "read_file", "Traceback (most recent call last)", path="a.log")), "errors") == []


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
    assert (turn_in("turn 12"), turn_in("turn"), turn_in("rules")) == (12, 0, 0)
    with pytest.raises(ValueError, match="no such scope"):
        listed([], "everything")
