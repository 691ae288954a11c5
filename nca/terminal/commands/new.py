"""/new: a fresh session in the same chat; the one before is kept."""

from __future__ import annotations

from collections.abc import Iterable

from nca.errors import UsageError
from nca.terminal.commands.command import CommandContext, Suggestion


class NewCommand:
    name = "new"
    aliases = ()
    usage = "/new\n/new NAME"
    about = "Begin a new session; this one is kept (/resume)"

    async def run(self, context: CommandContext, argument: str) -> None:
        if context.exchange is None:
            raise UsageError("The session of this chat cannot be changed.", advice="nca loop begins a new one.")
        await context.exchange.start(argument)

    def complete(self, context: CommandContext, argument: str) -> Iterable[Suggestion]:
        return ()
