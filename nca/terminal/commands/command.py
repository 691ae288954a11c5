"""Slash commands: their base class, what they see of the chat, the list of all, and how a typed name finds one.

A new command is a subclass of `Command` in a module of this folder, its description in help.toml, and its name in
`nca.terminal.render.event_lines.GROUPS`.
"""

from __future__ import annotations

import difflib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from traceback import extract_tb
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

import msgspec

from nca.errors import NcaError, ProgramFault, UsageError
from nca.humanize import natural
from nca.terminal import commands
from nca.terminal.interrupts import Leave, Stopped
from nca.terminal.render.event_lines import NAMES
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
    can_walk  a list may open on the screen now
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

    @property
    def can_walk(self) -> bool: ...

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
    number = natural(written)
    if number is not None and 1 <= number <= most:
        return number
    valid = f"Valid: {'1' if most == 1 else f'1 to {most}'}; /{command} shows them." if most else "The list is empty."
    if written.isdecimal():
        raise UsageError(f"There is no number {one_line(written, 20)}.", advice=valid)
    if written:
        raise takes_no(f"{command} remove", written, valid)
    raise UsageError(f"/{command} remove needs a number.", advice=valid)


def _fault(error: Exception) -> ProgramFault:
    place = extract_tb(error.__traceback__)[-1]
    where = f"{Path(place.filename).name}, line {place.lineno}"
    return ProgramFault(
        f"This is a fault of nca ({where}): {type(error).__name__}: {error}",
        advice="Please report this line. The session is saved, and the chat goes on.",
    )


class Command(ABC):
    """One slash command. How it is written and what it does is in help.toml, below its name.

    shows  when it changes nothing: without an argument ("alone"), or in any case
    """

    name: str
    shows: Literal["never", "alone", "always"] = "never"

    def __init__(self) -> None:
        described = texts().commands[self.name]
        self.aliases, self.usage = described.aliases, described.usage
        self.about, self.further = described.about, described.further

    async def call(self, app: App, argument: str) -> None:
        """Run it, unless it takes no argument and got one. A fault of it ends neither the chat nor a turn beside it."""
        if argument and self.usage == f"/{self.name}":
            raise takes_no(self.name, argument, self.further)
        try:
            await self.run(app, argument)
        except (NcaError, Leave, Stopped, EOFError, BrokenPipeError):
            raise
        except Exception as error:
            raise _fault(error) from error

    @abstractmethod
    async def run(self, app: App, argument: str) -> None:
        """Run it. `argument` is the text after the name, stripped. Raises NcaError with one clear line."""

    def needs_person(self, app: App, argument: str) -> str:
        """The effect that only a person may ask for, such as "starts a program"; "" if a pipe may ask as well.

        Anybody may have written piped text.
        """
        return ""

    def only_shows(self, argument: str) -> bool:
        """Whether it changes nothing: then it is answered while nca works (`nca.terminal.meanwhile`)."""
        return self.shows == "always" or (self.shows == "alone" and not argument)

    def complete(self, app: App, argument: str) -> Iterable[Suggestion]:
        """Suggestions for the argument while it is being typed."""
        return ()


SHORTEST_BEGINNING = 3
"""Letters that are enough to name a command, if only one begins with them."""


class Description(msgspec.Struct, frozen=True):
    """What help.toml says of a command: how it is written, a line for each way; and one line of help.

    further  for a command without an argument: what to do in place of giving one
    """

    usage: str
    about: str
    aliases: tuple[str, ...] = ()
    further: str = ""


class HelpTexts(msgspec.Struct, frozen=True):
    """What help.toml holds: prose that no prompt needs before the first slash."""

    typing: dict[str, str]
    commands: dict[str, Description]
    short: dict[str, tuple[str, ...]]
    keys: dict[str, str]
    topics: dict[str, str]
    ideas: dict[str, str]
    examples: dict[str, dict[str, str]]
    foreign: dict[str, str]


@cache
def texts() -> HelpTexts:
    return msgspec.toml.decode(Path(__file__).with_name("help.toml").read_bytes(), type=HelpTexts)


@cache
def foreign_names() -> dict[str, str]:
    """Names in Claude Code, aider and others, and words that a person would try; and what they find here."""
    return {name: advice for names, advice in texts().foreign.items() for name in names.split()}


@cache
def all_commands() -> tuple[Command, ...]:
    """In the order of /help. They are loaded with the first call; by then the prompt is on the screen."""
    for module in iter_modules(commands.__path__, f"{commands.__name__}."):
        import_module(module.name)
    known = {command.name: command for command in Command.__subclasses__()}
    return tuple(known[name]() for name in NAMES)


def find_command(name: str) -> Command | None:
    """The command with this name or alias, without the slash and in any case, or the only one that begins with it."""
    if (known := find_whole(name)) is not None:
        return known
    begun = short_for(name)
    return _by_name()[begun[0]] if len(begun) == 1 else None


def find_whole(name: str) -> Command | None:
    """The command with this name or alias, without the slash and in any case."""
    return _by_name().get(name.lower())


def short_for(name: str, own: Iterable[str] = ()) -> Sequence[str]:
    """The commands that a beginning of three letters or more may mean, nca's and the person's `own`."""
    return () if len(name) < SHORTEST_BEGINNING or name.lower() in foreign_names() else _begun(name, own)


def _begun(name: str, own: Iterable[str]) -> Sequence[str]:
    word = name.lower()
    ours = (command.name for known, command in _by_name().items() if known.startswith(word))
    return list(dict.fromkeys([*ours, *(one for one in own if word and one.lower().startswith(word))]))


def named(line: str) -> tuple[str, str]:
    """The name in a command's line, and what follows it."""
    name, *rest = ("", line[1:]) if line[1:2].isspace() else line[1:].split(maxsplit=1) or [""]
    return name, "".join(rest)


ALL_SHOWN = "/help shows all commands."


def unknown(name: str, own: Iterable[str] = (), otherwise: str = ALL_SHOWN) -> UsageError:
    """The error for a command that does not exist, nor is among the person's `own`."""
    advice = advice_for(name, own, otherwise)
    return UsageError(f"There is no command /{one_line(name, 60)}; nothing was sent.", advice=advice)


_MOST_NAMED = 4


def advice_for(name: str, own: Iterable[str] = (), otherwise: str = ALL_SHOWN) -> str:
    """The suggestion for such a command; `otherwise`, if none is near."""
    if (word := name.lower()) in foreign_names():
        return foreign_names()[word]
    # Others name a command by its folder or plugin too, as `git:commit`: the last part is what it is called here.
    meant = next(filter(None, (_begun(one, own) for one in (word, word.rpartition(":")[2]) if one)), ())
    if not 1 <= len(meant) <= _MOST_NAMED:
        near = nearest(word, [*_by_name(), *own])
        meant = [_by_name()[near].name if near in _by_name() else near] if near else ()
    *others, last = (f"/{one_line(one, 60)}" for one in meant) if meant else ("",)
    return f"Did you mean {' or '.join(filter(None, (', '.join(others), last)))}?" if last else otherwise


@cache
def _by_name() -> dict[str, Command]:
    return {name: command for command in all_commands() for name in (command.name, *command.aliases)}
