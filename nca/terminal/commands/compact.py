"""/compact: make room now."""

from __future__ import annotations

from collections.abc import Iterable

from nca.terminal.commands.command import CommandContext, Suggestion


class CompactCommand:
    name = "compact"
    aliases = ()
    usage = "/compact\n/compact FOCUS"
    about = "Make room now; FOCUS says what matters, as in /compact the parser bug"

    async def run(self, context: CommandContext, argument: str) -> None:
        await compact(context, argument)

    def complete(self, context: CommandContext, argument: str) -> Iterable[Suggestion]:
        return ()


async def compact(context: CommandContext, focus: str) -> None:
    """The conversation's events say how it went, as they do for every other compaction."""
    await context.conversation.compact(focus)
