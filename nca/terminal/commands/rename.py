"""/rename: a name for the session, by which every command finds it too."""

from __future__ import annotations

from collections.abc import Iterable

from nca.errors import UsageError
from nca.terminal.commands.command import CommandContext, Suggestion
from nca.terminal.render.sanitize import one_line


class RenameCommand:
    name = "rename"
    aliases = ()
    usage = "/rename NAME"
    about = "Give this session a name, for /resume and the list"

    async def run(self, context: CommandContext, argument: str) -> None:
        if not argument:
            raise UsageError("/rename needs a name, as in /rename the parser bug.")
        context.conversation.session.rename(argument)
        context.output.notice(f"This session is now “{one_line(context.conversation.session.info.name)}”.")

    def complete(self, context: CommandContext, argument: str) -> Iterable[Suggestion]:
        return ()
