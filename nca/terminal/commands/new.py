"""/new: a fresh session in the same chat; the one before is kept."""

from __future__ import annotations

from nca.terminal.commands.command import App, Command


class NewCommand(Command):
    name = "new"
    usage = "/new\n/new NAME"
    about = "Begin a new session; this one is kept (/resume)"

    async def run(self, app: App, argument: str) -> None:
        await app.sessions.start(argument)


COMMAND = NewCommand()
