"""Slash commands: one module each. They are loaded when the first one is asked for; by then the prompt stands."""

from __future__ import annotations

from functools import cache

from nca.terminal.commands.command import Command, CommandContext, Leave, Suggestion

__all__ = ["Command", "CommandContext", "Leave", "Suggestion", "all_commands", "find_command", "nearest_command"]

SHORTEST_BEGINNING = 3


def all_commands() -> tuple[Command, ...]:
    """In the order of /help."""
    from nca.terminal.commands.registry import COMMANDS

    return COMMANDS


def find_command(name: str) -> Command | None:
    """The command of this name or alias, written without the slash, in any case; or the only one that begins so."""
    from nca.terminal.commands.foreign_names import ELSEWHERE

    word = name.lower()
    if word in _by_name() or word in ELSEWHERE or len(word) < SHORTEST_BEGINNING:
        return _by_name().get(word)
    begun = {id(command): command for known, command in _by_name().items() if known.startswith(word)}
    return next(iter(begun.values())) if len(begun) == 1 else None


def nearest_command(name: str) -> str | None:
    """The name that a mistyped one most probably means."""
    import difflib

    word, known = name.lower(), _by_name()
    beginning = [command for command in known if word and command.startswith(word)]
    near = beginning or difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    return known[near[0]].name if near else None


@cache
def _by_name() -> dict[str, Command]:
    return {name: command for command in all_commands() for name in (command.name, *command.aliases)}
