"""Reminders that are sent with the person's message: which are due, and how they are added (Neuron's SystemInjector).

A reminder becomes a part of the newest user message when that message enters the log. So the log stays append-only,
and what was sent once is sent again byte for byte.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from nca.config.tables import Injection
from nca.context.policy import reminder_is_reached
from nca.messages import Message, TextPart, clean_text


class Reminders:
    """Remembers which thresholds have been crossed, until the usage falls below them."""

    def __init__(self, crossed: Sequence[Injection] = ()) -> None:
        self.crossed = frozenset(crossed)

    def observe(self, injections: Sequence[Injection], *, used_tokens: int, usage_ratio: float) -> None:
        """Arm the thresholds above the present usage again. Call it after a compaction."""
        self.crossed = frozenset(
            one for one in self.crossed if one in injections and reminder_is_reached(one, used_tokens, usage_ratio)
        )

    def due(
        self, injections: Sequence[Injection], *, turn: int, used_tokens: int, usage_ratio: float
    ) -> tuple[str, ...]:
        """The texts for turn `turn` (from 1), in the settings' order; each crossing is told once.

        used_tokens, usage_ratio  of the next request, as everything else shows them
        """
        self.observe(injections, used_tokens=used_tokens, usage_ratio=usage_ratio)
        over = [one for one in injections if reminder_is_reached(one, used_tokens, usage_ratio)]
        due = [
            one
            for one in dict.fromkeys(injections)
            if (one in over and one not in self.crossed) or (one.every_turns and turn % one.every_turns == 0)
        ]
        self.crossed |= frozenset(over)
        return tuple(one.text for one in due)


def with_reminders(message: Message, texts: Sequence[str]) -> Message:
    """The person's message, followed by the reminders."""
    if not texts:
        return message
    content = message.content
    own = content if isinstance(content, tuple) else (TextPart(content or ""),)
    added = tuple(TextPart(f"<reminder>\n{clean_text(text).strip()}\n</reminder>", source="nca") for text in texts)
    return msgspec.structs.replace(message, content=(*own, *added))


def shown_injections(injections: Sequence[Injection], shown: Sequence[Message]) -> tuple[Injection, ...]:
    """The injections with a reminder in a message that is still shown, for a resumed session."""
    texts = {
        part.text
        for message in shown
        if isinstance(message.content, tuple)
        for part in message.content
        if isinstance(part, TextPart) and part.source == "nca"
    }
    return tuple(one for one in injections if f"<reminder>\n{clean_text(one.text).strip()}\n</reminder>" in texts)
