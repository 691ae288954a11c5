"""/resume: continue another session in the same chat."""

from __future__ import annotations

from collections.abc import Iterable

from nca.terminal.commands.command import App, Command, Suggestion
from nca.terminal.commands.sessions import choose, suggestions


class ResumeCommand(Command):
    name = "resume"
    usage = "/resume\n/resume ID or NAME"
    about = "Continue an earlier session; without ID, choose one"

    async def run(self, app: App, argument: str) -> None:
        if not argument:
            await choose(app)
            return
        await app.sessions.resume(argument)

    def complete(self, app: App, argument: str) -> Iterable[Suggestion]:
        return suggestions(app, argument) if " " not in argument else ()


COMMAND = ResumeCommand()
