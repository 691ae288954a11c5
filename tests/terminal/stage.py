"""A chat over a scripted model whose output is captured, for tests of commands and drawing."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from nca.agent.conversation import Conversation
from nca.config.claude_permissions import HeldRule
from nca.config.layers import defaults
from nca.config.loaded import LoadedSettings
from nca.models.catalog import ModelFacts
from nca.sessions.store import Store
from nca.terminal.app import ChatApp
from nca.terminal.commands.command import find_command
from nca.terminal.input.display import TypedLines
from nca.terminal.interrupts import Interrupts
from nca.terminal.panels.list_panel import ListPanel
from nca.terminal.panels.session_loader import KeyChoice
from nca.terminal.reader import Reader
from nca.terminal.render.plain import PlainDraw
from nca.testing.scripted import ScriptedModel
from nca.words import Words, words


class ScriptedReader(Reader):
    """A person with prepared answers; without any, nobody can be asked. `picks`: what they choose in lists."""

    is_interactive = True

    def __init__(self, answers: Sequence[str] = (), picks: Sequence[Any] = ()) -> None:
        self.can_choose, self.can_walk = bool(answers), bool(picks)
        self.questions: list[str] = []
        self.keys: Sequence[KeyChoice] = ()
        """Of the last question."""
        self._answers, self._picks = list(answers), list(picks)

    async def read(self, conversation: Conversation, default: Words = ()) -> Words:
        raise EOFError

    def interrupt(self) -> bool:
        return True

    async def choose(self, question: str, keys: Sequence[KeyChoice]) -> str:
        self.questions.append(question)
        self.keys = keys
        return self._answers.pop(0)

    async def walk(self, panel: ListPanel[Any, Any]) -> Any:
        return self._picks.pop(0)


class Typed:
    """What a person has typed ahead."""

    def __init__(self, text: str) -> None:
        self.text = text

    def typed_ahead_lines(self, *, is_turn: bool) -> TypedLines:
        return TypedLines((), (self.text,) if self.text else (), 0, len(self.text))

    def labelled(self, text: str) -> str:
        return text


@dataclass
class Stage:
    """`answers` is what a command answered, `asides` what was said beside it."""

    app: ChatApp
    answers: io.StringIO
    asides: io.StringIO

    @property
    def conversation(self) -> Conversation:
        return self.app.conversation

    async def command(self, line: str) -> str:
        """Run a slash command; its answer and its notices."""
        name, _, argument = line.removeprefix("/").partition(" ")
        command = find_command(name)
        assert command is not None
        self.take()
        self.app.argument = words(argument.strip())
        await command.call(self.app, argument.strip())
        return self.take()

    def take(self) -> str:
        said = self.answers.getvalue() + self.asides.getvalue()
        for file in (self.answers, self.asides):
            file.seek(0)
            file.truncate()
        return said

    def on_a_screen(self) -> Stage:
        """The same chat for a person who sees pictures and columns; the output is captured as lines all the same."""
        return self.with_reader(ScriptedReader(picks=[None] * 9))

    def with_reader(self, reader: Reader) -> Stage:
        """The same chat with another person."""
        app = ChatApp(self.conversation, self.app.output, reader, self.app.interrupts)
        return Stage(app, self.answers, self.asides)


@contextmanager
def a_stage(
    directory: Path,
    replies: Sequence[Any] = (),
    *,
    window_tokens: int = 10_000,
    models: Sequence[str] = (),
    held: tuple[HeldRule, ...] = (),
    base: LoadedSettings | None = None,
    store_path: Path | None = None,
    session: str | None = None,
    **settings: Any,
) -> Iterator[Stage]:
    loaded = replace(base or defaults(), held=held)
    for name, value in settings.items():
        loaded = loaded.with_value(name.replace("__", "."), value, "the test")
    facts = ModelFacts(
        name="scripted/model", provider="scripted", window_source="the script", window_tokens=window_tokens
    )
    answers, asides = io.StringIO(), io.StringIO()
    output, reader = PlainDraw(answers, asides, {}), ScriptedReader()
    with Store.open(store_path) as store:
        conversation = Conversation.open(
            loaded,
            store=store,
            model=ScriptedModel(replies, facts=facts),
            directory=directory,
            session=session,
            listener=output.on_event,
            sees_all_sessions=True,
            person=reader,
        )
        yield Stage(ChatApp(conversation, output, reader, Interrupts(), models=models), answers, asides)
