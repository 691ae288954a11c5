"""/new: start a new session in the same chat."""

from __future__ import annotations

from nca.terminal.commands.command import App, Command


class NewCommand(Command):
    name = "new"
    usage = "/new\n/new NAME"
    about = "Start a new session; this one is kept (/resume)"

    async def run(self, app: App, argument: str) -> None:
        await app.sessions.start(argument)


COMMAND = NewCommand()
