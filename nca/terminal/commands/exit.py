"""/exit: leave the chat."""

from __future__ import annotations

from nca.terminal.commands.command import App, Command
from nca.terminal.interrupts import Leave


class ExitCommand(Command):
    name = "exit"
    aliases = ("quit", "q")
    usage = "/exit"
    about = "Leave; nca loop --continue continues the session"

    async def run(self, app: App, argument: str) -> None:
        raise Leave(0)


COMMAND = ExitCommand()
