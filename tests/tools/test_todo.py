"""The todo list: kept by its newest call, in view while a step is open."""

from __future__ import annotations

import json
from typing import Any

import pytest

from nca.context.history import History
from nca.context.rules.untouchable import untouchable
from nca.context.todo import is_open, newest_list, steps_of
from nca.messages import Entry, Message, ToolCall
from nca.tools.planning import MAX_CHARS, Todo
from nca.tools.tool import ToolError


async def test_a_list_is_confirmed_in_a_line_and_shown_when_asked_for() -> None:
    arguments = {"doing": "write it", "open": ["test it", " "], "done": ["read it"]}
    outcome = await Todo().run(arguments)
    assert (outcome.text, outcome.summary) == ("[1 of 3 done; now: write it]", "1 of 3 done")
    assert outcome.printed == "✓ read it\n› write it\n· test it"
    outcome = await Todo(lambda: arguments).run({})
    assert outcome.text == "- [x] read it\n- [>] write it\n- [ ] test it"
    assert (await Todo().run({})).text == "[the list is empty]"
    assert (await Todo().run({"done": ["a"]})).text == "[1 of 1 done]"
    assert Todo().summarize(arguments) == "todo write it"
    assert Todo().permission == "read"


async def test_a_person_sees_a_long_list_around_the_step_that_is_worked_on() -> None:
    outcome = await Todo().run({"doing": "c", "open": list("defgh"), "done": ["a", "b"]})
    assert outcome.printed.split("\n") == ["✓ 2 done", "› c", "· d", "· e", "· 3 more"]


async def test_a_list_is_small() -> None:
    with pytest.raises(ToolError, match="more than 2,000 characters"):
        await Todo().run({"open": ["x" * MAX_CHARS, "y"]})
    with pytest.raises(ValueError, match="argument open must be a list"):
        await Todo().run({"open": "x"})


def log(*calls: tuple[str, dict[str, Any], bool]) -> list[Entry]:
    """A question, then a step for each call."""
    messages = [Message("user", "do it")]
    for number, (name, arguments, is_error) in enumerate(calls):
        call = ToolCall(str(number), name, json.dumps(arguments))
        messages.append(Message("assistant", None, (call,)))
        messages.append(Message("tool", "x", tool_call_id=call.id, name=name, is_error=is_error))
    messages.append(Message("user", "go on"))
    return [Entry(seq, message) for seq, message in enumerate(messages, 1)]


def test_the_newest_call_that_wrote_it_holds_the_list() -> None:
    first, second = {"open": ["a"]}, {"doing": "b", "open": []}
    entries = log(
        ("todo", first, False),
        ("todo", second, False),
        ("grep", {"pattern": "x"}, False),
        ("todo", {"open": 5}, True),
        ("todo", {}, False),
    )
    assert newest_list(entries) == History(entries).newest_list == (4, second)
    assert is_open(second)
    assert untouchable(History(entries)) == {4, 12}
    assert newest_list(log(("grep", {}, False))) is None


@pytest.mark.parametrize("written", [{"open": 5}, {"done": "all"}, {"open": [None, {}, " "], "doing": " "}])
def test_what_is_no_list_of_texts_has_no_steps(written: dict[str, Any]) -> None:
    assert not is_open(written)
    assert steps_of(written) == ([], [])


def test_a_list_that_is_done_may_go() -> None:
    entries = log(("todo", {"open": ["a"]}, False), ("todo", {"done": ["a"], "open": []}, False))
    assert not is_open((newest_list(entries) or (0, {"open": "no list"}))[1])
    assert untouchable(History(entries)) == {6}
