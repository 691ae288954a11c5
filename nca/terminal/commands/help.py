"""/help: what can be typed, on one screen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text

from nca.errors import UsageError
from nca.terminal.commands.command import Command, CommandContext, Suggestion
from nca.terminal.tables import new_table

if TYPE_CHECKING:
    from rich.table import Table

_TYPING = (
    ("Enter", "send"),
    ("Alt-Enter, Ctrl-J, \\ at the end", "a new line"),
    ("@path", "bring a file in"),
    ("//text", "send /text"),
    ("!command", "run it in a shell and bring what it says along; !!command keeps it from the model"),
    ("Up, Down, Ctrl-R", "what was sent before"),
    ("Ctrl-X Ctrl-E", "write in your editor"),
    ("Ctrl-C", "stop the answer, keep what came; at the prompt: empty the line"),
    ("Ctrl-D", "leave; nca loop --continue goes on"),
)


class HelpCommand:
    name = "help"
    aliases = ("?", "h")
    usage = "/help [COMMAND]"
    about = "What can be typed"

    def __init__(self, others: Sequence[Command]) -> None:
        self._others = others

    async def run(self, context: CommandContext, argument: str) -> None:
        if argument:
            context.output.show(self._one(argument.lstrip("/").lower()))
            return
        context.output.show(Group(self._commands(), Text(""), _rows(_TYPING)))

    def complete(self, context: CommandContext, argument: str) -> Iterable[Suggestion]:
        return [Suggestion(other.name, other.about) for other in self._others if other.name.startswith(argument)]

    def _commands(self) -> Table:
        return _rows([(other.usage.split("\n")[0], other.about) for other in self._others] + [("/exit", "Leave")])

    def _one(self, name: str) -> Group:
        for other in self._others:
            if name in (other.name, *other.aliases):
                lines = [Text(line, style="accent") for line in other.usage.split("\n")]
                return Group(Text(other.about + "."), *lines)
        raise UsageError(f"There is no command /{name}.", advice="/help shows all.")


def _rows(rows: Iterable[tuple[str, str]]) -> Table:
    table = new_table()
    table.add_column(overflow="fold")
    table.add_column(overflow="fold")
    for left, right in rows:
        table.add_row(Text(left, style="accent"), Text(right))
    return table
