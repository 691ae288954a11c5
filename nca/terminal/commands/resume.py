"""/resume: go on with another session, in the same chat."""

from __future__ import annotations

from collections.abc import Iterable

from nca.errors import UsageError
from nca.terminal.commands.command import CommandContext, Suggestion
from nca.terminal.commands.sessions import choose, suggestions


class ResumeCommand:
    name = "resume"
    aliases = ()
    usage = "/resume\n/resume ID or NAME"
    about = "Go on with an earlier session; without ID, choose one"

    async def run(self, context: CommandContext, argument: str) -> None:
        if not argument:
            await choose(context)
            return
        if context.exchange is None:
            raise UsageError("The session of this chat cannot be changed.", advice="nca loop --resume opens another.")
        await context.exchange.resume(argument)

    def complete(self, context: CommandContext, argument: str) -> Iterable[Suggestion]:
        return suggestions(context, argument) if " " not in argument else ()
