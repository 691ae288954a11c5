"""Sessions to write for other agents."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from nca.context.rules.messages import is_full
from nca.context.view import Summary, View
from nca.messages import Message, ToolCall, Usage
from nca.sessions import CompactionRecord, Store
from nca.sessions.transfer import SessionCopy
from nca.wire import messages_from_list
from tests.shapes.conversions import conversations

RECORD = CompactionRecord(trigger="manual", stages=("summarize",), tokens_before=900, tokens_after=100)
TALK = (
    Message("user", "Why does it fail? Look."),
    Message(
        "assistant",
        "I look.",
        (
            ToolCall("call_1", "read_file", '{"path": "a.py"}'),
            ToolCall("call_2", "run_command", '{"command": "make test"}'),
        ),
    ),
    Message("tool", "def f():\n    return 1\n", tool_call_id="call_1", name="read_file"),
    Message("tool", "exit code 1\n1 failed", tool_call_id="call_2", name="run_command", is_error=True),
    Message("assistant", "It is f. Shall I mend it?"),
    Message("user", "Yes, mend it."),
    Message("assistant", None, (ToolCall("call_3", "edit_file", '{"path": "a.py", "new": "é\\u0301🦀"}'),)),
    Message("tool", "edited é🦀", tool_call_id="call_3", name="edit_file"),
    Message("assistant", "Mended."),
)
SUMMARIZED = 5
"""So many messages of TALK are summarized by `compacted`."""
SUMMARY = "## Conversation Summary\n- f returns 1, which is wrong."


def session(
    messages: Sequence[Message] = TALK, *, view: View | None = None, directory: Path = Path("/work")
) -> SessionCopy:
    with Store.open(None) as store:
        made = store.create(directory=str(directory), model="openai/gpt-5", name="the parser")
        made.log.append(list(messages))
        made.usage.record(1, "openai/gpt-5", Usage(700, 20, 10, 5), 0)
        if view is not None:
            made.views.commit(view, RECORD)
        return store.copy_of(made.info.id)


def compacted(
    messages: Sequence[Message] = TALK, *, upto: int = SUMMARIZED, directory: Path = Path("/work")
) -> SessionCopy:
    view = View((Summary("s1", ((1, upto),), SUMMARY),), upto + 1)
    return session(messages, view=view, directory=directory)


def real_talks() -> list[list[Message]]:
    """Conversations of real agents without their system prompts, and what is empty."""
    talks = [messages_from_list(rows) for rows in conversations()]
    return [
        [message for message in talk if message.role != "system" and (message.role == "tool" or is_full(message))]
        for talk in talks
    ]
