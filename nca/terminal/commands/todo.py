"""/todo: the list of steps that the model keeps with its tool, as it is now."""

from __future__ import annotations

from rich.console import Group
from rich.text import Text

from nca.context.todo import marked, steps_of
from nca.terminal.commands.command import App, Command
from nca.terminal.render.layout import BehindMark
from nca.terminal.render.sanitize import one_line

_MOST_CHARS = 2_000
_SYMBOLS, _WORDS = ("✓", "›", "·"), ("done:", "now:", "open:")


class TodoCommand(Command):
    name = "todo"
    aliases = ("todos", "tasks")
    usage = "/todo"
    about = "Show the model's list of steps: done, in progress and open"
    further = "The model keeps the list; say in a message what to change."

    def only_shows(self, argument: str) -> bool:
        return True

    async def run(self, app: App, argument: str) -> None:
        found = app.conversation.context.todo
        steps = marked(found.arguments, *(_SYMBOLS if app.reader.can_walk else _WORDS)) if found else []
        if not found or not steps:
            app.output.show("The model keeps no list of steps. It begins one, with its tool todo, for a longer task.")
            return
        done, left = steps_of(found.arguments)
        which = "Plan" if found.is_in_work or not left else f"Plan of message {found.seq}"
        lines = [
            BehindMark(
                Text(f"{mark} {one_line(step, _MOST_CHARS)}", "quiet" if number < len(done) else ""), len(mark) + 1
            )
            for number, (mark, step) in enumerate(steps)
        ]
        app.output.show(Group(Text(f"{which}: {len(done)} of {len(steps)} done"), *lines))
