"""Reminders (seed 4's SystemInjector): which are due, and how they come along with the person's message.

A reminder enters the log as a part of the newest user message, at the moment at which that message enters, so the log
stays append-only and what was sent once is sent again byte for byte.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from nca.config.tables import Injection
from nca.context.policy import reminder_is_reached
from nca.messages import Message, TextPart, clean_text


class Reminders:
    """Which thresholds have been crossed and are not armed again yet; everything else is in what one asks with."""

    def __init__(self, crossed: Sequence[Injection] = ()) -> None:
        self.crossed = frozenset(crossed)

    def observe(self, injections: Sequence[Injection], *, used_tokens: int, usage_ratio: float) -> None:
        """Arm again what lies above the present usage; call it after a compaction, and at any other time."""
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
    """The person's message with reminders behind it; the same message where there are none."""
    if not texts:
        return message
    content = message.content
    own = content if isinstance(content, tuple) else (TextPart(content or ""),)
    added = tuple(TextPart(f"<reminder>\n{clean_text(text).strip()}\n</reminder>", is_synthetic=True) for text in texts)
    return msgspec.structs.replace(message, content=(*own, *added))


def told(injections: Sequence[Injection], shown: Sequence[Message]) -> tuple[Injection, ...]:
    """The injections whose reminder stands in messages that are still shown: where a resumed session goes on."""
    texts = {
        part.text
        for message in shown
        if isinstance(message.content, tuple)
        for part in message.content
        if isinstance(part, TextPart) and part.is_synthetic
    }
    return tuple(one for one in injections if f"<reminder>\n{clean_text(one.text).strip()}\n</reminder>" in texts)
