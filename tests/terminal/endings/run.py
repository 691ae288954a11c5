"""One chat, brought to a moment, ended there, and looked at afterwards."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from nca.testing.provider import Provider
from tests.terminal.endings.chat import POLL_SECONDS, Chat, Event, Hang, Start
from tests.terminal.endings.kept import lost
from tests.terminal.endings.script import MODEL, QUESTION, answer
from tests.testing.fault_runs import write_talk
from tests.testing.forks import Forks

EXIT_CODES: dict[Event, tuple[int, ...]] = {
    "key": (130,),
    "SIGINT": (130,),
    "SIGTERM": (143,),
    "SIGHUP": (129,),
    "SIGQUIT": (131,),
    # The kernel sends SIGHUP; what is read and written meanwhile fails, which is an end of its own.
    "closing": (129, 0, 141),
}
LIMIT_SECONDS = 2.0
"""Within this the prompt is to be back or the program to have ended. It is measured, and no assertion."""


@dataclass(frozen=True, slots=True)
class Place:
    """What all runs have in common: a talk that fills most of a window, and the process that forks."""

    folder: Path
    session: str
    forks: Forks

    @classmethod
    def make(cls, folder: Path, forks: Forks) -> Self:
        # The first order waits until everything is imported.
        forks.run("--version", home=folder / "first", cwd=folder)
        return cls(folder, write_talk(folder / "talk"), forks)

    def home(self, name: str) -> Path:
        home = self.folder / name
        (home / "work").mkdir(parents=True)
        shutil.copytree(self.folder / "talk" / "nca", home / "nca")
        return home


@dataclass
class Run:
    """One chat with one event in it.

    other_codes   exit codes that are as right as the event's own
    problems      what was wrong afterwards, one line each
    seconds       from the event to the prompt or the end
    outcome       which of the two it was
    """

    place: Place
    name: str
    event: Event
    begin: Start = Start()  # noqa: RUF009  # frozen
    other_codes: tuple[int, ...] = ()
    problems: list[str] = field(default_factory=list)
    seconds: float = 0.0
    outcome: str = ""
    raw: bytes = b""

    def turn(self, seconds: float) -> Self:
        """The event comes so long after the message was sent."""

        def work(chat: Chat) -> None:
            self._type(chat, f"{QUESTION}\r")
            started = time.monotonic()
            while time.monotonic() - started < seconds:
                chat.read_for(min(POLL_SECONDS, seconds))
                chat.answer_question()

        return self._run(work)

    def start(self, seconds: float) -> Self:
        """The event comes so long after the program was started."""
        return self._run(lambda chat: chat.read_for(seconds))

    def typed(self, keys: str, seconds: float) -> Self:
        """The event comes so long after these keys, typed into the first prompt: a command, an editor, the exit."""

        def work(chat: Chat) -> None:
            self._type(chat, keys)
            chat.read_for(seconds)

        return self._run(work)

    def _type(self, chat: Chat, keys: str) -> None:
        chat.until(chat.is_open, "a first prompt")
        chat.type(keys)
        # A signal may overtake what was typed; then it is the prompt's.
        chat.until(lambda: chat.has_ended() or chat.has_read(), "somebody who reads the keys")

    def _run(self, work: Callable[[Chat], None]) -> Self:
        home = self.place.home(self.name)
        faults = {MODEL: answer}
        with Provider(faults=faults) as provider, Chat(self.begin, self.place.forks, home, provider) as chat:
            try:
                work(chat)
                self._end(chat)
            except Hang as hang:
                self.problems.append(f"there never came {hang}")
            self.raw = chat.raw
            self.problems += provider.violations
            provider.violations.clear()
            self.problems += chat.left_over()
            if chat.has_ended():
                self.problems += lost(home, self.begin.session, provider, chat.raw)
        if not self.problems:
            shutil.rmtree(home)
        return self

    def _end(self, chat: Chat) -> None:
        """The event, and what must come of it."""
        happened = time.monotonic()
        chat.happen(self.event)
        if self.event in ("key", "SIGINT"):
            self.seconds = chat.until_settled() - happened
        else:
            chat.until(chat.has_ended, "the end")
            self.seconds = time.monotonic() - happened
        if chat.has_ended():
            self.outcome = f"exit {chat.exit_code}"
            right = (*EXIT_CODES[self.event], *self.other_codes)
        else:
            self.outcome = "prompt"
            right = (0,)
            chat.go_on()
        if chat.exit_code not in right:
            self.problems.append(f"the exit code is {chat.exit_code}")
        self.problems += chat.unrestored()
