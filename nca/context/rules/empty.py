"""No message may be empty: providers refuse it or invent a text."""

from __future__ import annotations

import msgspec

from nca.messages import Message, TextPart

NO_OUTPUT = "(no output)"


def without_empty(messages: list[Message]) -> list[Message]:
    """Empty messages are left out; a result must stay, so it says that it is empty; empty text parts go."""
    if all(is_full(message) for message in messages):
        return messages
    kept = []
    for message in messages:
        if is_full(message):
            kept.append(message)
        elif message.role == "tool":
            kept.append(msgspec.structs.replace(message, content=NO_OUTPUT))
        elif message.tool_calls:
            kept.append(msgspec.structs.replace(message, content=_full_parts(message)))
        elif (parts := _full_parts(message)) is not None:
            kept.append(msgspec.structs.replace(message, content=parts))
    return kept


def is_full(message: Message) -> bool:
    """Whether a message says something, or calls a tool without a word."""
    content = message.content
    if isinstance(content, str):
        return bool(content.strip()) or (bool(message.tool_calls) and not content)
    if content is None:
        return bool(message.tool_calls)
    return bool(content) and all(not isinstance(part, TextPart) or part.text.strip() for part in content)


def _full_parts(message: Message) -> object:
    if not isinstance(message.content, tuple):
        return None
    return tuple(p for p in message.content if not isinstance(p, TextPart) or p.text.strip()) or None
