"""/help: list the commands and keys, and explain one command with examples."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from nca.errors import UsageError
from nca.terminal.commands.command import App, Command, Suggestion, beginning_with, nearest
from nca.terminal.commands.help_topics import EXAMPLES, IDEAS, KEYS, SHORT, TOGETHER, TOPICS, TYPING
from nca.terminal.commands.registry import advice_for, all_commands
from nca.terminal.render.sanitize import one_line
from nca.terminal.render.tables import new_table

if TYPE_CHECKING:
    from rich.table import Table

TWO_COLUMNS_FROM = 72
"""Columns of a window from which on two commands have room side by side."""
_FIRST_CLAUSE = re.compile(r"[^;:,.(]+")


class HelpCommand(Command):
    name = "help"
    aliases = ("?", "h")
    usage = "/help\n/help COMMAND\n/help keys\n/help ideas"
    about = "Show what you can type; COMMAND in detail"

    async def run(self, app: App, argument: str) -> None:
        match argument.lstrip("/").lower():
            case "":
                app.output.show(self._overview(shutil.get_terminal_size().columns))
            case "keys":
                app.output.show(_rows(KEYS))
            case "ideas":
                app.output.show(Group(*_ideas()))
            case name:
                app.output.show(self._one(name))

    def complete(self, app: App, argument: str) -> Iterable[Suggestion]:
        known = [(other.name, other.about) for other in all_commands() if other is not self] + list(TOPICS.items())
        return beginning_with(argument, known)

    def _overview(self, width: int) -> Group:
        """Groups of commands, then typing; 20 rows in a window of 80 columns."""
        more = "/help COMMAND has examples · /help keys · /help ideas: log, undo, gauge"
        return Group(self._commands(width), _rows(TYPING), Text(more, style="quiet"))

    def _commands(self, width: int) -> Table:
        """Two commands side by side where there is room."""
        across = 2 if width >= TWO_COLUMNS_FROM else 1
        cells = list(_cells(all_commands(), TOGETHER if across == 2 else {}))
        table = new_table(gap=1)
        for _ in range(across):
            table.add_column(no_wrap=True)
            table.add_column()
        height = -(-len(cells) // across)
        for row in range(height):
            table.add_row(*(part for place in range(row, len(cells), height) for part in cells[place]))
        return table

    def _one(self, name: str) -> Group:
        for other in all_commands():
            if name in (other.name, *other.aliases):
                return Group(*_detail(other))
        topic = nearest(name, TOPICS)
        advice = f"Did you mean /help {topic}?" if topic else advice_for(name)
        raise UsageError(f"There is no command /{one_line(name, 40)}.", advice=advice)


def _cells(commands: Iterable[Command], together: Mapping[tuple[str, str], str]) -> Iterator[tuple[Text, Text]]:
    """Names, and what they do: a command's first clause, or what two commands do that share a cell."""
    shared = {first: (f"/{first} /{second}", about) for (first, second), about in together.items()}
    for command in commands:
        clause = _FIRST_CLAUSE.match(command.about)
        about = SHORT.get(command.name, clause[0].strip() if clause else "")
        names, about = shared.get(command.name, (f"/{command.name}", about))
        if command.name not in {second for _, second in together}:
            yield Text(names, style="accent"), Text(about, no_wrap=True, overflow="ellipsis")


def _detail(command: Command) -> Iterator[RenderableType]:
    yield Text(command.about + ".")
    usage = [line.partition("  (") for line in command.usage.split("\n")]
    yield _rows((line, about.removesuffix(")")) for line, _, about in usage)
    if command.aliases:
        yield Text("Also: " + ", ".join(f"/{alias}" for alias in command.aliases), style="quiet")
    if command.name in EXAMPLES:
        yield Text("Examples:", style="quiet")
        yield _rows(EXAMPLES[command.name])


def _ideas() -> Iterator[Text]:
    for title, text in IDEAS:
        yield Text.assemble((title, "bold"), f"  {text}")


def _rows(rows: Iterable[tuple[str, str]]) -> Table:
    table = new_table()
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for left, right in rows:
        table.add_row(Text(left, style="accent"), Text(right))
    return table


COMMAND = HelpCommand()
