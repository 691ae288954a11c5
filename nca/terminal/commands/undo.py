"""/undo: take back the last turn, chat and files."""

from __future__ import annotations

from nca.errors import UsageError
from nca.terminal.commands.command import App, Command
from nca.terminal.commands.going_back import asked, restoring, tell
from nca.terminal.commands.rewind import NOTHING, say_done
from nca.terminal.input.line_kind import line_of
from nca.terminal.panels.context import in_effect
from nca.terminal.render.humanize import counted
from nca.terminal.render.rewinds import excerpt


class UndoCommand(Command):
    name = "undo"
    usage = "/undo"
    about = "Take back your last message with its answer and file changes; again for the one before"
    further = "/rewind goes back further."

    async def run(self, app: App, argument: str) -> None:
        rewinds = app.conversation.rewinds
        turn = rewinds.last_turn()
        if turn is None:
            is_new = next(iter(rewinds.points()), None) is None
            advice = "" if is_new else "/redo goes forward, /rewind to another branch."
            raise UsageError("There is nothing to take back.", advice=advice)
        history = app.conversation.context.history
        compactions = len(in_effect(history()))
        plan = await rewinds.plan(turn)
        tell(app, plan)
        choice = await asked(app, plan)
        if choice is None:
            app.output.notice(NOTHING)
            return
        outcome = await restoring(app, lambda watch: rewinds.go_back(turn, plan, "both", choice, watch))
        taken = [f"{excerpt(turn)} {'and its answer' if turn.last > turn.seq else '(no answer)'}"]
        if gone := compactions - len(in_effect(history())):
            taken.append(f"{counted(gone, 'compaction')} since")
        say_done(app, f"Took back {', '.join(taken)}", outcome, plan)
        app.put_in_prompt(line_of(turn.said))


COMMAND = UndoCommand()
