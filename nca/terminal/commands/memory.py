"""/memory: notes that outlive the session, in the project's `.nca/memory.json`."""

from __future__ import annotations

from collections.abc import Iterable

from rich.text import Text

from nca.terminal.commands.command import CommandContext, Suggestion
from nca.terminal.render.sanitize import one_line
from nca.terminal.render.session_lines import place, when


class MemoryCommand:
    name = "memory"
    aliases = ("notes",)
    usage = "/memory\n/memory TEXT"
    about = "Notes that outlive the session; /memory TEXT adds one"

    async def run(self, context: CommandContext, argument: str) -> None:
        if argument.strip():
            kept = context.conversation.memory.note(argument)
            context.output.show(f"Noted in {place(str(context.conversation.memory.file))} ({len(kept)} in all).")
            return
        notes = context.conversation.memory.notes()
        if not notes:
            context.output.show("No notes yet; /memory TEXT adds one.")
            return
        lines = (f"{when(note.at)}  {one_line(note.text)}" for note in notes)
        context.output.show(Text("\n".join(lines)))

    def complete(self, context: CommandContext, argument: str) -> Iterable[Suggestion]:
        return ()
