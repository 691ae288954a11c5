"""/clear: an empty screen. The conversation stays as it is; /context clear is the command that empties the view."""

from __future__ import annotations

from collections.abc import Iterable

from nca.terminal.commands.command import CommandContext, Suggestion


class ClearCommand:
    name = "clear"
    aliases = ("cls",)
    usage = "/clear"
    about = "Empty the screen; the conversation stays (/context clear starts it anew)"

    async def run(self, context: CommandContext, argument: str) -> None:
        context.output.clear()

    def complete(self, context: CommandContext, argument: str) -> Iterable[Suggestion]:
        return ()
