"""/undo: take back the last turn, chat and files."""

from __future__ import annotations

from nca.agent.rewinding import Point
from nca.errors import UsageError
from nca.terminal.commands.command import App, Command
from nca.terminal.commands.rewind import say_done
from nca.terminal.input.line_kind import line_of
from nca.terminal.panels.context import in_effect
from nca.terminal.render.humanize import counted
from nca.terminal.render.rewinds import excerpt
from nca.terminal.render.sanitize import one_line


class UndoCommand(Command):
    name = "undo"
    usage = "/undo"
    about = "Take back your last message and all that came of it, files too; again for the one before"

    async def run(self, app: App, argument: str) -> None:
        if argument:
            raise UsageError(f"/undo takes no {one_line(argument, 40)}.", advice="/rewind goes back further.")
        rewinds = app.conversation.rewinds
        turn = rewinds.last_turn()
        if not turn:
            is_new = next(iter(rewinds.points()), None) is None
            advice = "" if is_new else "/redo goes forward, /rewind to another branch."
            raise UsageError("There is nothing to take back.", advice=advice)
        history = app.conversation.context.history
        compactions = len(in_effect(history()))
        outcome = await rewinds.go_back(turn[0], await rewinds.plan(turn[0]), "both")
        taken = [_named(one) for one in turn]
        if gone := compactions - len(in_effect(history())):
            taken.append(f"{counted(gone, 'compaction')} since")
        say_done(app, f"Took back {', '.join(taken)}", outcome)
        app.put_in_prompt(line_of(turn[0].said))


def _named(point: Point) -> str:
    return f"{excerpt(point)} {'and its answer' if point.last > point.seq else '(no answer)'}"


COMMAND = UndoCommand()
