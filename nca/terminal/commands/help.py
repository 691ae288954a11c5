"""/help: list the commands and keys, and explain one command with examples. Its texts are in help.toml."""

from __future__ import annotations

import asyncio
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations, pairwise

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Column
from rich.text import Text

from nca.errors import UsageError
from nca.terminal.commands.command import (
    App,
    Command,
    Suggestion,
    advice_for,
    all_commands,
    beginning_with,
    find_whole,
    nearest,
    texts,
)
from nca.terminal.render.event_lines import GROUPS
from nca.terminal.render.layout import Parted, new_table
from nca.terminal.render.sanitize import one_line

COLUMN_CELLS, NAME_CELLS = 40, 13
"""Cells of a column of the grid, and those of a name in it."""
_LEAST_ABOUT = 36
"""Cells that a text beside a command needs."""
_AROUND_ROWS = 6
"""Rows of the screen for the last line, the prompt, the toolbar and what was typed."""
_Groups = Sequence[tuple[str, Sequence[Text]]]
"""Headings, and the lines below each."""


class HelpCommand(Command):
    name = "help"
    shows = "always"

    async def run(self, app: App, argument: str) -> None:
        match argument.lstrip("/").lower():
            case "":
                await self._show_all(app)
            case "keys":
                app.output.show(_rows(texts().keys))
            case "ideas":
                app.output.show(Group(*_ideas()))
            case name:
                app.output.show(self._one(name))

    def complete(self, app: App, argument: str) -> Iterable[Suggestion]:
        known = ((other.name, other.about) for other in all_commands() if other is not self)
        return beginning_with(argument, (*known, *texts().topics.items()))

    async def _show_all(self, app: App) -> None:
        from nca.agent.prompt_commands import find_prompts

        # Plain lines have one column: a screen reader reads across.
        app.output.show(self._overview(*shutil.get_terminal_size(), most_columns=3 if app.reader.can_walk else 1))
        if own := await asyncio.to_thread(find_prompts, app.conversation.directory):
            app.output.show(Parted(f"Your own: {' · '.join(f'/{one_line(name)}' for name in own)}"))

    def _overview(self, width: int, rows: int, *, most_columns: int) -> Group:
        """Groups of commands, and typing, in columns of the same grid; 22 rows in a window of 80 columns."""
        known = {command.name: command for command in all_commands()}
        groups = [(title, [line for name in names for line in _lines(known[name])]) for title, names in GROUPS.items()]
        groups.append(("Typing", [_line(*row) for row in texts().typing.items()]))
        across = max(1, min(most_columns, width // COLUMN_CELLS))
        columns = _split(groups, across)
        height = max(map(_height, columns))
        more = Parted("/help COMMAND has examples · /help keys · /help ideas: log, undo, gauge", style="quiet")
        is_roomy = height + len(columns[0]) <= rows - _AROUND_ROWS
        table = new_table(*[Column(ratio=1, no_wrap=True, overflow="ellipsis") for _ in columns], gap=1)
        table.width = width
        table.add_row(*(_column(column, is_roomy=is_roomy) for column in columns))
        return Group(table, *([Text()] if is_roomy else []), more)

    def _one(self, name: str) -> Group:
        if (command := find_whole(name)) is not None:
            return Group(*_detail(command))
        topic = nearest(name, texts().topics)
        advice = f"Did you mean /help {topic}?" if topic else advice_for(name)
        raise UsageError(f"There is no command /{one_line(name, 40)}.", advice=advice)


def _lines(command: Command) -> Iterator[Text]:
    """Its name, and the first clause of its description, or the text in help.toml."""
    for place, about in enumerate(in_short(command.name, command.about)):
        yield _line("" if place else f"/{command.name}", about)


def _line(left: str, right: str) -> Text:
    return Text.assemble((f"{left:<{NAME_CELLS}}", "accent"), right)


def _height(column: _Groups) -> int:
    return sum(1 + len(lines) for _, lines in column)


def _split(groups: _Groups, across: int) -> list[_Groups]:
    """The groups in order, in columns whose largest height is as small as possible."""
    cuts = combinations(range(1, len(groups)), min(across, len(groups)) - 1)
    splits: Iterator[list[_Groups]]
    splits = ([groups[start:end] for start, end in pairwise((0, *cut, len(groups)))] for cut in cuts)
    return min(splits, key=lambda columns: max(map(_height, columns)))


def _column(groups: _Groups, *, is_roomy: bool) -> Text:
    blocks = (Text("\n").join([Text(title, style="bold"), *lines]) for title, lines in groups)
    return Text("\n\n" if is_roomy else "\n").join(blocks)


def _detail(command: Command) -> Iterator[RenderableType]:
    yield Text(command.about + ".\n")
    usage = [line.partition("  (") for line in command.usage.split("\n")]
    yield _rows({line: about.removesuffix(")") for line, _, about in usage})
    if command.aliases:
        yield Text("\nAlso: " + ", ".join(f"/{alias}" for alias in command.aliases), style="quiet")
    if examples := texts().examples.get(command.name):
        yield Text("\nExamples", style="bold")
        yield _rows(examples)


def _ideas() -> Iterator[Text]:
    for title, text in texts().ideas.items():
        yield Text.assemble((title, "bold"), f"  {text}")


def _rows(rows: Mapping[str, str]) -> RenderableType:
    """Two columns; in a narrow window the right one stands below the left one."""
    if max(map(len, rows)) + _LEAST_ABOUT > shutil.get_terminal_size().columns:
        shown = ((Text(left, style="accent"), Padding(Text(right), (0, 0, 0, 4))) for left, right in rows.items())
        return Group(*(line for pair in shown for line in pair if isinstance(line, Text) or line.renderable))
    table = new_table(Column(no_wrap=True), Column(overflow="fold"))
    for left, right in rows.items():
        table.add_row(Text(left, style="accent"), Text(right))
    return table


_FIRST_CLAUSE = re.compile(r"[^;:,.(]+")


def in_short(name: str, about: str) -> Sequence[str]:
    """A command's description in lines for half a row: its text in help.toml, or its first clause."""
    clause = _FIRST_CLAUSE.match(about)
    return texts().short.get(name, (clause[0].strip() if clause else "",))
