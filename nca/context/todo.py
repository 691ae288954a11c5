"""Find the newest todo list in a log. Its call holds the whole list, so that call stays in view."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from nca.context.file_reads import arguments_of
from nca.messages import Entry

T = TypeVar("T")

NAME = "todo"
PARTS = ("doing", "open", "done")


def newest_list(entries: Sequence[Entry]) -> tuple[int, dict[str, Any]] | None:
    """The seq of the newest call that wrote the list, and its arguments; None if there is none.

    A call that failed, has no result or only asked for the list does not count.
    """
    answered: set[str] = set()
    for entry in reversed(entries):
        message = entry.message
        if message.role == "tool" and message.name == NAME and not message.is_error:
            answered.add(message.tool_call_id)
        elif answered and message.tool_calls:
            for call in reversed(message.tool_calls):
                if call.name == NAME and call.id in answered:
                    arguments = arguments_of(call)
                    if any(arguments.get(part) is not None for part in PARTS):
                        return entry.seq, arguments
    return None


def marked(arguments: Mapping[str, Any], done: T, doing: T, waiting: T) -> list[tuple[T, str]]:
    """Each step of a list with its mark: those that are done, the one that is worked on, those that wait.

    A blank step is none, and neither is what a foreign program may have written in place of texts.
    """
    parts = ((done, arguments.get("done")), (doing, [arguments.get("doing")]), (waiting, arguments.get("open")))
    steps = ((mark, step) for mark, given in parts for step in (given if isinstance(given, list) else ()))
    return [(mark, str(step).strip()) for mark, step in steps if isinstance(step, str | int) and str(step).strip()]


def steps_of(arguments: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """The steps of a list that are done, and those that are left: first the one that is worked on."""
    steps = marked(arguments, True, False, False)
    return [step for is_done, step in steps if is_done], [step for is_done, step in steps if not is_done]


def as_text(arguments: Mapping[str, Any]) -> str:
    """A list with a box for each step, ticked if it is done."""
    return "\n".join(f"- [{mark}] {step}" for mark, step in marked(arguments, "x", " ", " "))


def is_open(arguments: Mapping[str, Any]) -> bool:
    """Whether something on a list is left to do."""
    return bool(steps_of(arguments)[1])
