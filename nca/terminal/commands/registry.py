"""All slash commands, and how a typed name finds one.

A new command is a module in this folder that defines `COMMAND`, and its name in `GROUPS`.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module

from nca.terminal.commands.command import Command, nearest
from nca.terminal.commands.foreign_names import FOREIGN_NAMES

GROUPS = {
    "Context": ("context", "compact", "memory"),
    "Back and forth": ("rewind", "undo", "redo", "changes"),
    "Answers and screen": ("btw", "effort", "show", "copy", "editor", "clear", "help", "exit"),
    "Sessions": ("sessions", "resume", "new", "rename", "export"),
    "Model, tools, settings": ("model", "permissions", "tools", "jobs", "mcp", "config", "cost"),
}
"""The modules, under the headings of /help and in its order."""

NAMES = tuple(name for names in GROUPS.values() for name in names)

SHORTEST_BEGINNING = 3
"""Letters that are enough to name a command, if only one begins with them."""


@cache
def all_commands() -> tuple[Command, ...]:
    """In the order of /help. They are loaded with the first call; by then the prompt is on the screen."""
    return tuple(import_module(f"nca.terminal.commands.{name}").COMMAND for name in NAMES)


def find_command(name: str) -> Command | None:
    """The command with this name or alias, without the slash and in any case, or the only one that begins with it."""
    word = name.lower()
    if word in _by_name() or word in FOREIGN_NAMES or len(word) < SHORTEST_BEGINNING:
        return _by_name().get(word)
    begun = {command for known, command in _by_name().items() if known.startswith(word)}
    return begun.pop() if len(begun) == 1 else None


def advice_for(name: str) -> str:
    """What to type instead of a command that does not exist."""
    word, known = name.lower(), _by_name()
    if word in FOREIGN_NAMES:
        return FOREIGN_NAMES[word]
    beginning = [command for command in known if word and command.startswith(word)]
    near = beginning[0] if beginning else nearest(word, known)
    return f"Did you mean /{known[near].name}?" if near else "/help shows all commands."


@cache
def _by_name() -> dict[str, Command]:
    return {name: command for command in all_commands() for name in (command.name, *command.aliases)}
