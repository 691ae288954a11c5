"""What is open on the lists that agents keep."""

from __future__ import annotations

import json
from typing import Any

import pytest

from nca.agent_hooks.handover import open_work
from nca.messages import Message, ToolCall


def made(name: str, arguments: dict[str, Any], result: str = "done", *, failed: bool = False) -> list[Message]:
    call = ToolCall(f"{name}{json.dumps(arguments)}", name, json.dumps(arguments))
    answer = Message("tool", result, tool_call_id=call.id, name=name, is_error=failed)
    return [Message("assistant", tool_calls=(call,)), answer]


ITEMS = [("write it", "completed"), ("test it", "in_progress"), ("tell\nAda", "pending")]


@pytest.mark.parametrize(
    ("name", "key", "says"),
    [
        ("TodoWrite", "todos", "content"),
        ("todowrite", "todos", "content"),
        ("write_todos", "todos", "description"),
        ("update_plan", "plan", "step"),
    ],
)
def test_the_newest_list_counts(name: str, key: str, says: str) -> None:
    old = made(name, {key: [{says: "think", "status": "in_progress"}]})
    new = made(name, {key: [{says: text, "status": status} for text, status in ITEMS]})
    failed = made(name, {key: [{says: "nothing", "status": "pending"}]}, failed=True)
    assert open_work([*old, *new, *failed]) == ["- test it (in progress)", "- tell Ada"]


def test_ncas_own_list_is_read() -> None:
    assert open_work(made("todo", {"doing": ["a"], "open": ["b"], "done": ["c"]})) == ["- a (in progress)", "- b"]


def test_tasks_are_followed_one_by_one() -> None:
    messages = [
        *made("TaskCreate", {"subject": "first", "description": "…"}, "Task #1 created successfully: first"),
        *made("TaskCreate", {"subject": "second", "description": "…"}, "Task #2 created successfully: second"),
        *made("TaskCreate", {"subject": "third", "description": "…"}, "Task #3 created successfully: third"),
        *made("TaskUpdate", {"taskId": "1", "status": "completed"}),
        *made("TaskUpdate", {"taskId": "2", "status": "in_progress", "subject": "second, better"}),
        *made("TaskUpdate", {"taskId": "3", "status": "deleted"}, failed=True),
    ]
    assert open_work(messages) == ["- second, better (in progress)", "- third"]


def test_what_no_list_holds_is_no_work() -> None:
    assert open_work([*made("TodoWrite", {"todos": "none"}), *made("Bash", {"command": "ls"})]) == []
