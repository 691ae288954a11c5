"""A conversation over a scripted model with what it says caught in two texts, for tests of commands and drawing."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nca.agent.conversation import Conversation
from nca.config.layers import defaults
from nca.models.catalog import ModelFacts
from nca.sessions.store import Store
from nca.terminal.commands import CommandContext, find_command
from nca.terminal.render.plain import PlainDraw
from nca.testing.scripted import ScriptedModel


@dataclass
class Stage:
    """`said` is what a command answered, `asides` what was said beside it."""

    context: CommandContext
    answers: io.StringIO
    asides: io.StringIO

    @property
    def conversation(self) -> Conversation:
        return self.context.conversation

    async def command(self, line: str) -> str:
        """Run a slash command; its answer and its notices."""
        name, _, argument = line.removeprefix("/").partition(" ")
        command = find_command(name)
        assert command is not None
        self.take()
        await command.run(self.context, argument.strip())
        return self.take()

    def take(self) -> str:
        said = self.answers.getvalue() + self.asides.getvalue()
        for file in (self.answers, self.asides):
            file.seek(0)
            file.truncate()
        return said


@contextmanager
def a_stage(
    directory: Path, replies: Sequence[Any] = (), *, window_tokens: int = 10_000, **settings: Any
) -> Iterator[Stage]:
    loaded = defaults()
    for name, value in settings.items():
        loaded = loaded.with_value(name.replace("__", "."), value, "the test")
    facts = ModelFacts(
        name="scripted/model", provider="scripted", window_source="the script", window_tokens=window_tokens
    )
    answers, asides = io.StringIO(), io.StringIO()
    output = PlainDraw(answers, asides, {})
    with Store.open(None) as store:
        conversation = Conversation.open(
            loaded,
            store=store,
            model=ScriptedModel(replies, facts=facts),
            directory=directory,
            listener=output.on_event,
        )
        yield Stage(CommandContext(conversation, output, store=store), answers, asides)
