"""/compact: compact now, everything or only the messages from or before a number."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from nca.context.view import Range
from nca.errors import UsageError
from nca.terminal.commands.command import App, Command, Suggestion, beginning_with
from nca.terminal.commands.context_preview import preview
from nca.terminal.interrupts import IS_SAID
from nca.terminal.render.sanitize import one_line

PREVIEW = "--preview"
_PLACES = {"from": True, "before": False}
"""The word before a message number, and whether it means the later messages."""


class CompactCommand(Command):
    name = "compact"
    usage = "\n".join(
        (
            "/compact",
            "/compact FOCUS",
            "/compact from NUMBER [FOCUS]",
            "/compact before NUMBER [FOCUS]",
            "/compact --preview",
        )
    )
    about = (
        "Compact now; FOCUS says what matters; from NUMBER or before NUMBER compacts only that part; "
        "--preview shows first what would go"
    )

    async def run(self, app: App, argument: str) -> None:
        await compact_or_preview(app, argument)

    def complete(self, app: App, argument: str) -> Iterable[Suggestion]:
        words = {"from": "message N and everything after it", "before": "everything before message N"}
        words[PREVIEW] = "show first what would go"
        return beginning_with(argument, words.items()) if argument else ()


async def compact_or_preview(app: App, argument: str) -> None:
    """Compact, or show what that would do. Raises UsageError for an option that does not exist."""
    words = argument.split()
    # Behind its first word, a focus may name an option of some other program.
    if words and words[0].startswith("--") and words[0] != PREVIEW:
        raise UsageError(
            f"/compact takes no {one_line(words[0], 40)}.", advice=f"Valid: {PREVIEW}, or a focus in words."
        )
    if PREVIEW not in words:
        await compact(app, argument)
    else:
        words.remove(PREVIEW)
        await preview(app, *chosen(app, " ".join(words)))


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
