"""/compact: compact now, everything or only the messages from or before a number."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from nca.context.view import Range
from nca.terminal.commands.command import App, Command, Suggestion, beginning_with
from nca.terminal.interrupts import IS_SAID

_PLACES = {"from": True, "before": False}
"""The word before a message number, and whether it means the later messages."""


class CompactCommand(Command):
    name = "compact"
    usage = "/compact\n/compact FOCUS\n/compact from NUMBER [FOCUS]\n/compact before NUMBER [FOCUS]"
    about = "Compact now; FOCUS says what matters; from NUMBER or before NUMBER compacts only that part"

    async def run(self, app: App, argument: str) -> None:
        await compact(app, argument)

    def complete(self, app: App, argument: str) -> Iterable[Suggestion]:
        words = {"from": "message N and everything after it", "before": "everything before message N"}
        return beginning_with(argument, words.items()) if argument else ()


async def compact(app: App, argument: str) -> None:
    """Compact. The conversation's events report the result, as for every compaction, and also that it was stopped."""
    focus, only = chosen(app, argument)
    try:
        await app.conversation.context.compact(focus, only)
    except asyncio.CancelledError:
        raise asyncio.CancelledError(IS_SAID) from None


def chosen(app: App, argument: str) -> tuple[str, Range | None]:
    """The focus and the only messages to summarize: `from 12 the parser`, `before 12`.

    Without a number after it, the word belongs to the focus. Raises UsageError for a message that does not exist.
    """
    word, _, rest = argument.partition(" ")
    number, _, focus = rest.strip().partition(" ")
    if word.lower() not in _PLACES or not number.isdecimal():
        return argument, None
    return focus.strip(), app.conversation.context.part(int(number), is_later=_PLACES[word.lower()])


COMMAND = CompactCommand()
