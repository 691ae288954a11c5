"""/redo: take the last /undo or /rewind back, chat and files."""

from __future__ import annotations

from nca.errors import UsageError
from nca.terminal.commands.command import App, Command
from nca.terminal.commands.going_back import asked, restoring, tell
from nca.terminal.commands.rewind import NOTHING, say_done


class RedoCommand(Command):
    name = "redo"
    usage = "/redo"
    about = "Take the last /undo or /rewind back; again for the one before"
    further = "/rewind goes to any message."

    async def run(self, app: App, argument: str) -> None:
        rewinds = app.conversation.rewinds
        plan = await rewinds.plan_forward()
        if plan is None:
            raise UsageError(
                "There is nothing to go forward to.",
                advice="After a new message, /rewind has the other branch; /context redo is for compactions.",
            )
        tell(app, plan)
        choice = await asked(app, plan)
        if choice is None:
            app.output.notice(NOTHING)
            return
        outcome = await restoring(app, lambda watch: rewinds.go_forward(plan, choice, watch))
        if outcome is not None:
            say_done(app, "Went forward again", outcome, plan, "/undo takes the last turn back.")


COMMAND = RedoCommand()
