"""Slash commands: their base class, what they see of the chat, the list of all, and how a typed name finds one.

A new command is a subclass of `Command` in a module of this folder, and its name in `GROUPS`.
"""

from __future__ import annotations

import difflib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, NamedTuple, Protocol

from nca.errors import UsageError
from nca.terminal import commands
from nca.terminal.render.sanitize import one_line

if TYPE_CHECKING:
    from nca.agent.compaction_diff import Preview
    from nca.agent.conversation import Conversation
    from nca.terminal.reader import Reader
    from nca.terminal.render.output import Output
    from nca.terminal.session_switcher import SessionSwitcher
    from nca.words import Words


class App(Protocol):
    """The chat, as commands see it; `ChatApp` implements it.

    models    names that `/model` suggests
    sessions  switches the chat to another session
    preview   the compaction that waits for the person to accept it
    argument  that of the command that runs, with who said each part of it
    """

    @property
    def conversation(self) -> Conversation: ...

    @property
    def output(self) -> Output: ...

    @property
    def reader(self) -> Reader: ...

    @property
    def sessions(self) -> SessionSwitcher: ...

    @property
    def models(self) -> Sequence[str]: ...

    @property
    def preview(self) -> Preview | None: ...

    @property
    def argument(self) -> Words: ...

    def hold_preview(self, preview: Preview | None) -> None: ...

    def put_in_prompt(self, said: Words, *, is_new: bool = False) -> None: ...


NEAR_RATIO = 0.65
"""How alike (difflib) a mistyped word and a known one are: `mpc` is mcp, while `foo` is not tool."""


class Suggestion(NamedTuple):
    """One completion of a command's argument: `text` replaces the last word."""

    text: str
    about: str = ""


def beginning_with(typed: str, words: Iterable[tuple[str, str]]) -> list[Suggestion]:
    """The words, with their meanings, that begin with what is typed."""
    return [Suggestion(word, about) for word, about in words if word.startswith(typed)]


def nearest(typed: str, known: Iterable[str]) -> str:
    """The known word that was probably meant; "" if none is near."""
    return next(iter(difflib.get_close_matches(typed.lower(), list(known), n=1, cutoff=NEAR_RATIO)), "")


def takes_no(command: str, written: str, advice: str) -> UsageError:
    """The error for an argument that a command does not have; `advice` says what is valid."""
    return UsageError(f"/{command} takes no {one_line(written, 40)}.", advice=advice)


def number_to_remove(command: str, written: str, most: int) -> int:
    """The number of an entry in the command's list of `most`. Raises UsageError."""
    if written.isdecimal() and len(written) < 10 and 1 <= int(written) <= most:
        return int(written)
    valid = f"Valid: 1 to {most}; /{command} shows them." if most else "There is none."
    if written:
        raise takes_no(f"{command} remove", written, valid)
    raise UsageError(f"/{command} remove needs a number.", advice=valid)


class Command(ABC):
    """One slash command. `usage` shows how it is written, `about` is one line of help.

    further  for a command without an argument: what to do in place of giving one
    """

    name: str
    aliases: tuple[str, ...] = ()
    usage: str
    about: str
    further = ""

    async def call(self, app: App, argument: str) -> None:
        """Run it, unless it takes no argument and got one."""
        if argument and self.usage == f"/{self.name}":
            raise takes_no(self.name, argument, self.further)
        await self.run(app, argument)

    @abstractmethod
    async def run(self, app: App, argument: str) -> None:
        """Run it. `argument` is the text after the name, stripped. Raises NcaError with one clear line."""

    def needs_person(self, app: App, argument: str) -> str:
        """The effect that only a person may ask for, such as "starts a program"; "" if a pipe may ask as well.

        Anybody may have written piped text.
        """
        return ""

    def complete(self, app: App, argument: str) -> Iterable[Suggestion]:
        """Suggestions for the argument while it is being typed."""
        return ()


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
_FORK = "/rewind goes back to before a message, on any branch; in a shell, nca sessions fork ID copies a session."
_REASONING = "/effort high lets the model reason more; /show thoughts prints its reasoning."
_SETUP = "!nca doctor checks the installation, !nca --version prints its version."
_KEPT = "Every session is saved automatically; /sessions finds it, /export writes it to a file."
_INSTRUCTIONS = "AGENTS.md in the project is read at the start; /memory TEXT saves a note."

FOREIGN_NAMES = {
    **dict.fromkeys(("revert", "restore", "back", "checkpoint"), _REWIND),
    **dict.fromkeys(("plan", "ask", "code", "architect", "chat-mode", "auto", "mode", "yolo"), _MODE),
    **dict.fromkeys(("approvals", "allowed-tools"), "/permissions shows and removes your rules, and changes the mode."),
    **dict.fromkeys(("status", "tokens", "stats"), _USAGE),
    **dict.fromkeys(("add", "read", "read-only", "file", "files", "dir", "directory", "add-dir", "mention"), _FILE),
    **dict.fromkeys(("attach", "image", "images", "paste", "drop"), _FILE),
    **dict.fromkeys(("web", "fetch", "url"), "Write the address in your message: the model reads it with fetch_url."),
    **dict.fromkeys(
        ("map", "map-refresh"), "The model searches the files itself, with grep and glob; /tools lists all its tools."
    ),
    **dict.fromkeys(("run", "bash", "shell", "commit", "git", "test", "lint", "ls"), _SHELL),
    **dict.fromkeys(("diff", "review"), "/changes shows what this session changed; !git diff shows what git knows."),
    **dict.fromkeys(("reset", "restart", "reload"), _NEW),
    "recall": "/context search WORDS finds what was said; the model recalls on its own.",
    **dict.fromkeys(("save", "load", "chat", "share"), _KEPT),
    **dict.fromkeys(("delete", "rm"), "In a shell, nca sessions delete ID deletes a session; archive ID archives it."),
    **dict.fromkeys(("init", "rules", "agents", "instructions", "system", "prompt", "output-style"), _INSTRUCTIONS),
    **{word: f"Use /context {word}." for word in ("pin", "unpin", "expand", "collapse")},
    **dict.fromkeys(
        ("search", "find", "grep"), "/context search TEXT searches this session, /sessions search TEXT all."
    ),
    **dict.fromkeys(("tree", "fork", "branch"), _FORK),
    **dict.fromkeys(("compress", "summarize"), "/compact makes room now, keeping what you name."),
    **dict.fromkeys(("hotkeys", "keys", "shortcuts", "keybindings", "multiline-mode"), "/help keys lists all keys."),
    **dict.fromkeys(("think", "thinking", "think-tokens", "reasoning-effort", "fast"), _REASONING),
    **dict.fromkeys(("verbose", "details"), "/show prints the last tool call with its whole output."),
    **dict.fromkeys(("bashes", "ps"), "/jobs lists what runs in the background."),
    **dict.fromkeys(("stop", "cancel"), "Escape stops an answer; /jobs stop N stops a command in the background."),
    **dict.fromkeys(
        ("weak-model", "editor-model"), "/config model.summarizer NAME lets another model write the summaries."
    ),
    **dict.fromkeys(("plugin", "plugins", "extensions"), "MCP servers and skills extend nca: /mcp lists the servers."),
    "ide": "An editor starts nca acp and talks to it.",
    "sandbox": "/config tools.sandbox bwrap runs commands where they can write only in the project.",
    "scoped-models": "/model lists the models; type to search them.",
    **dict.fromkeys(("todo", "todos", "tasks"), "The model keeps a list with its tool todo; a line shows each change."),
    **dict.fromkeys(
        ("login", "logout", "auth", "connect"),
        "Set API keys in the environment, such as OPENAI_API_KEY; /model chooses a model.",
    ),
    **dict.fromkeys(("doctor", "version", "upgrade", "about", "changelog", "bug", "feedback", "report"), _SETUP),
    **dict.fromkeys(
        ("skills", "skill"), "Type a slash and a skill's name; Tab completes it. The model reads one when it needs it."
    ),
    "hooks": "/config hooks prints your hooks; a table [[hooks]] in config.toml, with event and command, adds one.",
    "statusline": "/config terminal.status sets the line below the prompt.",
    "name": "/rename NAME names this session.",
    "history": "/context history lists the compactions, /sessions earlier sessions; Ctrl-R searches what you sent.",
    "continue": "/resume continues an earlier session.",
    "vim": "/config terminal.keys vi turns on vi keys.",
    **dict.fromkeys(("theme", "themes", "color"), "/config terminal.theme dark or light."),
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
    """The suggestion for a command that does not exist."""
    word, known = name.lower(), _by_name()
    if word in FOREIGN_NAMES:
        return FOREIGN_NAMES[word]
    beginning = [command for command in known if word and command.startswith(word)]
    near = beginning[0] if beginning else nearest(word, known)
    return f"Did you mean /{known[near].name}?" if near else "/help shows all commands."


@cache
def _by_name() -> dict[str, Command]:
    return {name: command for command in all_commands() for name in (command.name, *command.aliases)}
