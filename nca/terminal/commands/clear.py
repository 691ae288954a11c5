"""/clear: an empty screen. The conversation stays as it is; /context clear is the command that empties the view."""

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
