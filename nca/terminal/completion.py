"""Completions in the prompt: slash commands, their arguments, and files after an @.

MCP servers add their prompts after `/mcp:` and their resources after `@SERVER:`, but only those that they have listed
already: typing starts no server and waits for none. Names that cannot be typed are left out.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from prompt_toolkit.application import get_app
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from rich.cells import cell_len

from nca.terminal.commands.command import Command, all_commands
from nca.terminal.commands.help import in_short
from nca.terminal.input.display import end_cut
from nca.terminal.input.file_finder import MAX_SUGGESTIONS, TAB_SECONDS, FileFinder, mention_before
from nca.terminal.input.line_kind import is_command
from nca.terminal.input.prompt_text import Offer, Offering
from nca.terminal.render.sanitize import one_line

ABOUT_CHARS = 80
_MCP = "mcp"
_BESIDE_ABOUT_CELLS = 20
"""Cells of a menu's row beside the text: the name of a command, blanks and the bar at the edge."""

_EDGE_CELLS = 5
"""Of a menu's row: a blank around each of its two columns, and the bar at the edge."""

if TYPE_CHECKING:
    from nca.terminal.reader import Chat
    from nca.tools.mcp.servers import Servers


class PromptCompleter(Completer):
    """Completions for the text before the cursor. `offer` is told of each."""

    def __init__(self, chat: Chat, files: FileFinder, offer: Offering = lambda _: None) -> None:
        self._completions = chat
        self._files = files
        self._offer = offer

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """For Tab: at once, with the files that are found within `TAB_SECONDS`."""
        mention = _mention_before(document)
        return self._found(document, mention, self._files.find(mention, TAB_SECONDS) if mention is not None else ())

    async def get_completions_async(
        self, document: Document, complete_event: CompleteEvent
    ) -> AsyncGenerator[Completion, None]:
        """For typing: files follow when they are found."""
        mention = _mention_before(document)
        paths = await self._files.find_soon(mention) if mention is not None else ()
        for completion in self._found(document, mention, paths):
            yield completion

    def _found(self, document: Document, mention: str | None, paths: Iterable[str]) -> Iterator[Completion]:
        text, end = document.text_before_cursor, document.cursor_position
        commands = self._commands(text) if is_command(text) else ()
        for one in _cut(list(commands if mention is None else self._mentions(document, mention, paths))):
            self._offer(Offer(document.text, end + one.start_position, end, one.text))
            yield one

    def _mentions(self, document: Document, mention: str, paths: Iterable[str]) -> Iterator[Completion]:
        yield from resource_completions(self._completions.conversation.servers, mention)
        blank = "" if document.text_after_cursor[:1].isspace() else " "
        for path in paths:
            end = "" if path.endswith("/") else blank
            yield Completion(path + end, start_position=-len(mention), display=one_line(path.strip('"')))

    def _commands(self, text: str) -> Iterator[Completion]:
        name, blank, argument = text[1:].partition(" ")
        if not blank:
            yield from _command_names(name)
            for prompt in self._completions.prompts.values():
                if prompt.name.startswith(name):
                    about = " · ".join(filter(None, (prompt.hint, prompt.about)))
                    yield _suggestion(f"{prompt.name} ", len(name), about, shown=f"/{prompt.name}")
            yield from prompt_completions(self._completions.conversation.servers, text)
            return
        argument = argument.lstrip(" ")
        last = argument.rpartition(" ")[2]
        for suggested, about in self._completions.suggestions(name, argument):
            yield Completion(suggested, -len(last), display=one_line(suggested), display_meta=one_line(about))


def _cut(found: Sequence[Completion]) -> Iterator[Completion]:
    """The completions as a row of the menu has room for them: the menu itself would cut with three dots."""
    columns = get_app().output.get_size().columns - _EDGE_CELLS
    widest = max((cell_len(one.display_text) for one in found), default=0)
    for one in found:
        shown, about = end_cut(one.display_text, columns), end_cut(one.display_meta_text, columns - widest)
        yield Completion(one.text, one.start_position, display=shown, display_meta=about)


def _mention_before(document: Document) -> str | None:
    text = document.text_before_cursor
    return None if is_command(text) else mention_before(text)


def _command_names(typed: str) -> Iterator[Completion]:
    """Commands with a name that begins with the typed text, then by alias, then those with its letters in order."""
    word = typed.lower()
    room = get_app().output.get_size().columns - _BESIDE_ABOUT_CELLS
    found: list[tuple[int, str, Command]] = []
    for command in all_commands():
        alias = next((alias for alias in command.aliases if alias.startswith(word)), "")
        if command.name.startswith(word):
            found.append((0, "", command))
        elif alias:
            found.append((1, alias, command))
        elif _has_letters(command.name, word):
            found.append((2, "", command))
    for _, alias, command in sorted(found, key=lambda one: one[0]):
        shown = f"/{command.name} ({alias})" if alias else f"/{command.name}"
        text = f"{command.name} " if _takes_argument(command) else command.name
        about = command.about if len(command.about) <= room else in_short(command.name, command.about)[0]
        yield Completion(text, -len(typed), display=shown, display_meta=one_line(about))


def _takes_argument(command: Command) -> bool:
    return any(" " in line.partition("  ")[0] for line in command.usage.split("\n"))


def _has_letters(name: str, word: str) -> bool:
    letters = iter(name)
    return all(letter in letters for letter in word)


def prompt_completions(servers: Servers, text: str) -> Iterator[Completion]:
    """For a line that begins with `/mcp`: each prompt with its arguments and description."""
    name = text[1:]
    if not name.lower().startswith(_MCP) or " " in name:
        return
    for full, wanted, about in servers.prompts():
        if full.startswith(name):
            shown = " · ".join(filter(None, (wanted, about)))
            yield _suggestion(f"{full} " if wanted else full, len(name), shown, shown=f"/{full}")


def resource_completions(servers: Servers, mention: str) -> Iterator[Completion]:
    """For the text after an @: the servers that have resources, and after `SERVER:` each resource.

    A resource is found by the beginning of its URI and by any part of its URI or name.
    """
    # Imported here: the first prompt does not need them.
    from nca.humanize import counted
    from nca.tools.mcp.servers import can_be_typed

    named, colon, wanted = mention.partition(":")
    for one in servers.connections:
        resources = [each for each in one.listing.resources if can_be_typed(each.uri)]
        if resources and not colon and one.server.name.startswith(named):
            yield _suggestion(f"{one.server.name}:", len(mention), counted(len(resources), "resource"))
        if not colon or one.server.name != named:
            continue
        word = wanted.lower()
        found = [each for each in resources if word in each.uri.lower() or word in each.name.lower()]
        found.sort(key=lambda each: not each.uri.startswith(wanted))
        for each in islice(found, MAX_SUGGESTIONS):
            about = each.description or each.title or each.name
            yield _suggestion(f"{named}:{each.uri}", len(mention), about)


def _suggestion(text: str, replaced_chars: int, about: str, shown: str = "") -> Completion:
    meta = one_line(about, ABOUT_CHARS)
    return Completion(text, -replaced_chars, display=one_line(shown or text), display_meta=meta)
