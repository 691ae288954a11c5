"""What an agent's own lists say is still to do: todo lists written whole, and tasks that are kept one by one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from nca.context.file_reads import arguments_of
from nca.messages import Message, ToolCall

_LISTS = ("TodoWrite", "todowrite", "todo_write", "write_todos", "update_plan", "todo")
"""Tools of Claude Code, opencode, Qwen Code, Gemini CLI, Codex and nca. A call holds the whole list."""
_CREATE, _UPDATE = "TaskCreate", "TaskUpdate"
"""Tools of Claude Code. A call is about one task, whose number the result of the first one says."""
_NUMBER = re.compile(r"#(\w+)")
_SAYS = ("content", "step", "subject", "title", "description")
_DOING = ("in_progress", "doing")
_OVER = ("completed", "done", "cancelled", "deleted")


def keeps_lists(call: ToolCall) -> bool:
    """Whether a call only keeps such a list."""
    return call.name in (*_LISTS, _CREATE, _UPDATE)


def open_work(messages: Iterable[Message]) -> list[str]:
    """One line for each item that is not done, as of the newest call that worked; what is being done is marked."""
    waiting: dict[str, ToolCall] = {}
    whole: list[tuple[str, str]] = []
    tasks: dict[str, tuple[str, str]] = {}
    for message in messages:
        waiting |= {call.id: call for call in message.tool_calls if keeps_lists(call)}
        call = waiting.pop(message.tool_call_id, None) if message.role == "tool" and not message.is_error else None
        if call is None:
            continue
        arguments = arguments_of(call)
        if call.name in _LISTS:
            whole = _items(arguments) or whole
        elif call.name == _CREATE and (number := _NUMBER.search(message.text)):
            tasks[number[1]] = _said(arguments), "pending"
        elif (task := str(arguments.get("taskId", ""))) in tasks:
            subject, status = tasks[task]
            tasks[task] = _said(arguments) or subject, str(arguments.get("status") or status)
    return [_line(text, status) for text, status in (*whole, *tasks.values()) if text and status not in _OVER]


def _items(arguments: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The items of a list, with the status of each."""
    found: list[tuple[str, str]] = []
    for key, value in arguments.items():
        for item in value if isinstance(value, list) else ():
            if isinstance(item, dict):
                found.append((_said(item), str(item.get("status", "pending"))))
            elif isinstance(item, str) and key in ("doing", "open", "done"):
                found.append((item, key))
    return found


def _said(item: Mapping[str, Any]) -> str:
    return next(
        (" ".join(text.split()) for key in _SAYS if isinstance(text := item.get(key), str) and text.strip()), ""
    )


def _line(text: str, status: str) -> str:
    return f"- {text} (in progress)" if status in _DOING else f"- {text}"
