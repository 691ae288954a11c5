"""A step that still waits for results is untouchable, with everything after it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from nca.context.rules.rule import Span
from nca.messages import Message


def open_step_spans(messages: Sequence[Message]) -> Iterable[Span]:
    """The step that waits for results, to the end of the log. A request closes it (`tool_pairs`), the log does not."""
    position = open_step(messages)
    return () if position is None else ((position, len(messages) - 1),)


def open_step(messages: Sequence[Message]) -> int | None:
    """The position of the last assistant message where calls of it wait for results, else None."""
    for position in range(len(messages) - 1, -1, -1):
        message = messages[position]
        if message.role == "assistant":
            answered = [later.tool_call_id for later in messages[position + 1 :] if later.role == "tool"]
            waiting = [call.id for call in message.tool_calls]
            return position if any(waiting.count(call) > answered.count(call) for call in waiting) else None
    return None


def unseen_step(messages: Sequence[Message]) -> int | None:
    """The position of the last assistant message where its results are all in and nothing followed them yet.

    The model has asked for them and has not seen them: hidden now, it could only ask again.
    """
    for position in range(len(messages) - 1, -1, -1):
        message = messages[position]
        if message.role == "assistant":
            return position if message.tool_calls and open_step(messages) is None else None
        if message.role == "user" and not message.is_synthetic:
            return None
    return None
