"""/editor: write the next message in an editor."""

from __future__ import annotations

from nca.errors import UsageError
from nca.terminal.commands.command import App, Command
from nca.terminal.input.editor import edited_words
from nca.words import part_of, text_of


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


COMMAND = EditorCommand()
