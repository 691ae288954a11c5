"""All slash commands, and how a typed name finds one.

A new command is a subclass of `Command` in a module of this folder, and its name in `GROUPS`.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from nca.terminal import commands
from nca.terminal.commands.command import Command, nearest

GROUPS = {
    "Context": ("context", "compact", "memory"),
    "Back and forth": ("rewind", "undo", "redo", "changes"),
    "Answers and screen": ("btw", "effort", "show", "copy", "editor", "clear", "help", "exit"),
    "Sessions": ("sessions", "resume", "new", "rename", "export"),
    "Model, tools, settings": ("model", "permissions", "tools", "jobs", "mcp", "config", "cost"),
}
"""The names, under the headings of /help and in its order."""

NAMES = tuple(name for names in GROUPS.values() for name in names)

SHORTEST_BEGINNING = 3
"""Letters that are enough to name a command, if only one begins with them."""

_REWIND = "/rewind goes back to before a message, /undo takes back the last turn; both chat and files."
_MODE = "/permissions shows the mode; /permissions plan, accept-edits, auto or ask changes it."
_USAGE = "/context shows what fills the window, /cost the tokens and cost, /model the model."
_FILE = "@path in a message adds a file, a folder's listing or an image."
_SHELL = "!command runs it and shares its output, as in !git diff."
_NEW = "/new starts a new session; /context clear empties the context of this one."
_KEPT = "Every session is saved automatically; /sessions finds it, /export writes it to a file."
_INSTRUCTIONS = "AGENTS.md in the project is read at the start; /memory TEXT saves a note."

FOREIGN_NAMES = {
    **dict.fromkeys(("revert", "restore", "back", "checkpoint"), _REWIND),
    **dict.fromkeys(("plan", "ask", "auto", "mode", "approvals", "yolo"), _MODE),
    **dict.fromkeys(("status", "tokens", "stats"), _USAGE),
    **dict.fromkeys(("add", "read", "file", "files"), _FILE),
    **dict.fromkeys(("run", "bash", "shell", "commit", "git", "test"), _SHELL),
    **dict.fromkeys(("diff", "review"), "/changes shows what this session changed; !git diff what git knows."),
    **dict.fromkeys(("reset", "restart"), _NEW),
    **dict.fromkeys(("save", "load", "chat"), _KEPT),
    **dict.fromkeys(("init", "rules", "agents"), _INSTRUCTIONS),
    **{word: f"Use /context {word}." for word in ("pin", "unpin", "expand", "collapse")},
    **dict.fromkeys(
        ("search", "find", "grep"), "/context search TEXT searches this session, /sessions search TEXT all."
    ),
    "history": "/context history lists the compactions, /sessions earlier sessions; Ctrl-R searches what you sent.",
    "continue": "/resume continues an earlier session.",
    "vim": "/config terminal.keys vi turns on vi keys.",
    "theme": "/config terminal.theme dark or light.",
}
"""Names in Claude Code, aider and others, and words that a person would try."""


@cache
def all_commands() -> tuple[Command, ...]:
    """In the order of /help. They are loaded with the first call; by then the prompt is on the screen."""
    for module in iter_modules(commands.__path__, f"{commands.__name__}."):
        import_module(module.name)
    known = {command.name: command for command in Command.__subclasses__()}
    return tuple(known[name]() for name in NAMES)


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
