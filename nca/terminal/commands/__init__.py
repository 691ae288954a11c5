"""Slash commands: one module each, and the list of them in the order of /help."""

from __future__ import annotations

import difflib

from nca.terminal.commands.clear import ClearCommand
from nca.terminal.commands.command import Command, CommandContext, Leave, Suggestion
from nca.terminal.commands.compact import CompactCommand
from nca.terminal.commands.config import ConfigCommand
from nca.terminal.commands.context import ContextCommand
from nca.terminal.commands.cost import CostCommand
from nca.terminal.commands.exit import ExitCommand
from nca.terminal.commands.help import HelpCommand
from nca.terminal.commands.mcp import McpCommand
from nca.terminal.commands.memory import MemoryCommand
from nca.terminal.commands.model import ModelCommand
from nca.terminal.commands.permissions import PermissionsCommand
from nca.terminal.commands.sessions import SessionsCommand

__all__ = ["COMMANDS", "Command", "CommandContext", "Leave", "Suggestion", "find_command", "nearest_command"]

COMMANDS: tuple[Command, ...] = (
    ContextCommand(),
    CompactCommand(),
    ConfigCommand(),
    ModelCommand(),
    PermissionsCommand(),
    McpCommand(),
    SessionsCommand(),
    MemoryCommand(),
    CostCommand(),
    ClearCommand(),
)
COMMANDS = (HelpCommand(COMMANDS), *COMMANDS, ExitCommand())

_BY_NAME = {name: command for command in COMMANDS for name in (command.name, *command.aliases)}


def find_command(name: str) -> Command | None:
    """The command of this name or alias, written without the slash, in any case."""
    return _BY_NAME.get(name.lower())


def nearest_command(name: str) -> str | None:
    """The name that a mistyped one most probably means."""
    word = name.lower()
    beginning = [known for known in _BY_NAME if word and known.startswith(word)]
    near = beginning or difflib.get_close_matches(word, _BY_NAME, n=1, cutoff=0.5)
    return _BY_NAME[near[0]].name if near else None
