"""System messages come first, then the user. For some providers the assistant speaks between tool and user."""

from __future__ import annotations

from itertools import pairwise

import msgspec

from nca.messages import Message

BEGINNING = "[The conversation begins here]"
INTERRUPTED = "[interrupted]"


def with_system_first(messages: list[Message]) -> list[Message]:
    """System messages move to the beginning."""
    system = [message for message in messages if message.role == "system"]
    if messages[: len(system)] == system:
        return messages
    return system + [message for message in messages if message.role != "system"]


def with_user_first(messages: list[Message]) -> list[Message]:
    """A conversation that begins otherwise gets a user message in front."""
    start = next((i for i, message in enumerate(messages) if message.role != "system"), len(messages))
    if start < len(messages) and messages[start].role == "user":
        return messages
    return [*messages[:start], Message("user", BEGINNING, source="nca"), *messages[start:]]


def with_one_assistant(messages: list[Message]) -> list[Message]:
    """Consecutive messages of the assistant become one."""
    if not any(_runs_on(one, two) for one, two in pairwise(messages)):
        return messages
    joined: list[Message] = []
    for message in messages:
        if joined and _runs_on(joined[-1], message):
            text = "\n\n".join(part for part in (joined[-1].text, message.text) if part)
            joined[-1] = msgspec.structs.replace(message, content=text or None)
        else:
            joined.append(message)
    return joined


def _runs_on(one: Message, two: Message) -> bool:
    return one.role == two.role == "assistant" and not one.tool_calls


def with_assistant_after_tool(messages: list[Message]) -> list[Message]:
    """For providers that refuse a user message directly after tool results (Mistral, code 3230)."""
    filled: list[Message] = []
    for message in messages:
        if message.role == "user" and filled and filled[-1].role == "tool":
            filled.append(Message("assistant", INTERRUPTED, source="nca"))
        filled.append(message)
    return filled
