"""Short commands of the chat itself: /btw, /editor, /memory, /clear and /exit."""

from __future__ import annotations

from rich.text import Text

from nca.errors import UsageError
from nca.humanize import local_time
from nca.terminal.commands.command import App, Command
from nca.terminal.input.editor import edited_words
from nca.terminal.interrupts import Leave
from nca.terminal.render.sanitize import one_line
from nca.terminal.render.sessions import place
from nca.words import part_of, text_of


class BtwCommand(Command):
    name = "btw"
    usage = "/btw QUESTION"
    about = "Ask beside the work: an answer from what is in the context, which stays as it is"

    async def run(self, app: App, argument: str) -> None:
        await app.conversation.beside.ask(argument)
        app.output.notice("The context is as it was; question and answer are in the log.")


class EditorCommand(Command):
    name = "editor"
    aliases = ("edit",)
    usage = "/editor\n/editor TEXT"
    about = "Write a message in your editor ($EDITOR); the text is then in the prompt"

    def needs_person(self, app: App, argument: str) -> str:
        return "starts a program"

    async def run(self, app: App, argument: str) -> None:
        said = await edited_words(app.argument, app.reader.lend_terminal())
        text = text_of(said).rstrip("\n")
        if not text.strip():
            raise UsageError("The editor left no text; nothing was sent.")
        # Not sent by itself: to close an editor is not to send.
        app.put_in_prompt(part_of(said, 0, len(text)))


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


class ClearCommand(Command):
    name = "clear"
    aliases = ("cls",)
    usage = "/clear"
    about = "Empty the screen; the conversation stays (/context clear starts it anew)"

    async def run(self, app: App, argument: str) -> None:
        app.output.clear()


class ExitCommand(Command):
    name = "exit"
    aliases = ("quit", "q")
    usage = "/exit"
    about = "Leave; nca loop --continue continues the session"

    async def run(self, app: App, argument: str) -> None:
        raise Leave(0)
