"""/memory: notes for later sessions, in the project's `.nca/memory.json`."""

from __future__ import annotations

from rich.text import Text

from nca.terminal.commands.command import App, Command
from nca.terminal.render.humanize import local_time
from nca.terminal.render.sanitize import one_line
from nca.terminal.render.sessions import place

MAX_SHOWN_CHARS = 300
"""Of one note; one on a whole session is longer."""


class MemoryCommand(Command):
    name = "memory"
    aliases = ("notes",)
    usage = "/memory\n/memory TEXT"
    about = "Notes for later sessions; /memory TEXT adds one"

    def needs_person(self, app: App, argument: str) -> str:
        return "adds a note that later sessions follow" if argument else ""

    async def run(self, app: App, argument: str) -> None:
        if argument.strip():
            kept = app.conversation.memory.note(argument)
            app.output.show(f"Noted in {place(str(app.conversation.memory.file))} ({len(kept)} in all).")
            return
        notes = app.conversation.memory.notes()
        if not notes:
            app.output.show("No notes yet; /memory TEXT adds one.")
            return
        lines = (f"{local_time(note.at)}  {one_line(note.text, MAX_SHOWN_CHARS)}" for note in notes)
        app.output.show(Text("\n".join(lines)))


COMMAND = MemoryCommand()
