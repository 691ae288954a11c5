"""/exit: leave."""

from __future__ import annotations

from collections.abc import Iterable

from nca.terminal.commands.command import CommandContext, Leave, Suggestion


class ExitCommand:
    name = "exit"
    aliases = ("quit", "q")
    usage = "/exit"
    about = "Leave; nca loop --continue goes on"

    async def run(self, context: CommandContext, argument: str) -> None:
        raise Leave(0)

    def complete(self, context: CommandContext, argument: str) -> Iterable[Suggestion]:
        return ()
