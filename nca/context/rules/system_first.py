"""System messages come first; a later one is sent right after the leading ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from nca.context.rules.rule import Span
from nca.messages import Message


class SystemFirst:
    def spans(self, messages: Sequence[Message]) -> Iterable[Span]:
        return ()

    def repair(self, messages: list[Message]) -> list[Message]:
        system = [message for message in messages if message.role == "system"]
        if messages[: len(system)] == system:
            return messages
        return system + [message for message in messages if message.role != "system"]
