"""The base class of slash commands, and the part of the chat that they work with."""

from __future__ import annotations

import difflib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from nca.errors import UsageError
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

    def put_in_prompt(self, said: Words) -> None: ...


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
    """The known word that was probably meant; "" where none is near."""
    return next(iter(difflib.get_close_matches(typed.lower(), list(known), n=1, cutoff=NEAR_RATIO)), "")


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
            raise UsageError(f"/{self.name} takes no {one_line(argument, 40)}.", advice=self.further)
        await self.run(app, argument)

    @abstractmethod
    async def run(self, app: App, argument: str) -> None:
        """Run it. `argument` is the text after the name, stripped. Raises NcaError with one clear line."""

    def needs_person(self, app: App, argument: str) -> str:
        """What this call does that only a person may ask for, such as "starts a program"; "" where a pipe may too.

        Anybody may have written what comes down a pipe.
        """
        return ""

    def complete(self, app: App, argument: str) -> Iterable[Suggestion]:
        """Suggestions for the argument while it is being typed."""
        return ()
