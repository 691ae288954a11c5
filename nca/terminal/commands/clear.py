"""/clear: clear the screen. The conversation stays; /context clear empties the context."""

from __future__ import annotations

from nca.terminal.commands.command import App, Command


class ClearCommand(Command):
    name = "clear"
    aliases = ("cls",)
    usage = "/clear"
    about = "Empty the screen; the conversation stays (/context clear starts it anew)"

    async def run(self, app: App, argument: str) -> None:
        app.output.clear()


COMMAND = ClearCommand()
