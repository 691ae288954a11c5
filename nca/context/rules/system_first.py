"""System messages come first; a later one is sent right after the leading ones."""

from __future__ import annotations

from nca.messages import Message


def with_system_first(messages: list[Message]) -> list[Message]:
    """System messages move to the beginning."""
    system = [message for message in messages if message.role == "system"]
    if messages[: len(system)] == system:
        return messages
    return system + [message for message in messages if message.role != "system"]
