"""/rename: name the session; commands find it by that name."""

from __future__ import annotations

from nca.errors import UsageError
from nca.terminal.commands.command import App, Command
from nca.terminal.render.sanitize import one_line


class RenameCommand(Command):
    name = "rename"
    usage = "/rename NAME"
    about = "Name this session, for /resume and the list"

    async def run(self, app: App, argument: str) -> None:
        if not argument:
            raise UsageError("/rename needs a name, as in /rename the parser bug.")
        app.conversation.session.rename(argument)
        app.output.notice(f"This session is now “{one_line(app.conversation.session.info.name)}”.")


COMMAND = RenameCommand()
