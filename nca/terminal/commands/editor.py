"""/editor: write the next message in the editor of one's own."""

from __future__ import annotations

from collections.abc import Iterable

from nca.errors import UsageError
from nca.terminal.commands.command import CommandContext, Suggestion
from nca.terminal.input.editor import edited


class EditorCommand:
    name = "editor"
    aliases = ("edit",)
    usage = "/editor\n/editor TEXT"
    about = "Write in your editor ($EDITOR); the text then stands in the prompt"

    async def run(self, context: CommandContext, argument: str) -> None:
        text = (await edited(argument, context.lend_terminal)).rstrip("\n")
        if not text.strip():
            raise UsageError("The editor left no text; nothing was sent.")
        # Not sent by itself: to close an editor is not to send.
        context.put_in_prompt(text)

    def complete(self, context: CommandContext, argument: str) -> Iterable[Suggestion]:
        return ()
