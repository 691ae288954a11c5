"""What the prompt suggests: slash commands, their arguments, and files behind an @."""

from __future__ import annotations

from collections.abc import Iterable

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from nca.errors import NcaError
from nca.terminal.commands import COMMANDS, CommandContext, find_command
from nca.terminal.mentions import FileFinder, mention_before
from nca.terminal.sanitize import one_line


class PromptCompleter(Completer):
    """Completions for the text before the cursor."""

    def __init__(self, context: CommandContext, files: FileFinder) -> None:
        self._context = context
        self._files = files

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        text = document.text_before_cursor
        if is_command(text):
            yield from self._commands(text)
        elif (mention := mention_before(text)) is not None:
            for path in self._files.find(mention):
                yield Completion(path, start_position=-len(mention), display=one_line(path))

    def _commands(self, text: str) -> Iterable[Completion]:
        name, blank, argument = text[1:].partition(" ")
        if not blank:
            for command in COMMANDS:
                if command.name.startswith(name.lower()):
                    yield Completion(
                        command.name, -len(name), display=f"/{command.name}", display_meta=one_line(command.about)
                    )
            return
        command_named = find_command(name)
        if command_named is None:
            return
        argument = argument.lstrip(" ")
        last = argument.rpartition(" ")[2]
        try:
            suggestions = list(command_named.complete(self._context, argument))
        except NcaError:
            return
        for suggestion in suggestions:
            yield Completion(
                suggestion.text, -len(last), display=one_line(suggestion.text), display_meta=one_line(suggestion.about)
            )


def is_command(text: str) -> bool:
    """Whether a text is a slash command: `/` and a letter on the first line; `//text` is a message."""
    return text.startswith("/") and not text.startswith("//") and "\n" not in text


def may_complete(text: str) -> bool:
    """Whether completions should open by themselves while a person types."""
    return is_command(text) or mention_before(text) is not None
