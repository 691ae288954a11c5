"""Commands that show stored text send the terminal nothing but text."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from nca.agent.conversation import Conversation
from nca.config.layers import defaults
from nca.errors import NcaError
from nca.messages import AttachmentPart, Message, TextPart, ToolCall, clean_text
from nca.models.catalog import ModelFacts
from nca.sessions.store import Store
from nca.terminal.app import ChatApp
from nca.terminal.commands.command import all_commands
from nca.terminal.input.toolbar import ToolbarStatus, toolbar
from nca.terminal.interrupts import Interrupts
from nca.terminal.render.event_lines import error_line
from nca.terminal.render.plain import PlainDraw
from nca.testing.scripted import ScriptedModel
from tests.terminal.payloads import PAYLOADS, forbidden
from tests.terminal.stage import ScriptedReader

STORED = [clean_text(payload) for payload in PAYLOADS]


def exchange(payload: str) -> list[Message]:
    arguments = json.dumps({"path": payload, payload: f"{payload}\n{payload}"})
    return [
        Message("user", (TextPart(f"find a{payload}b"), AttachmentPart(f"a{payload}", payload, 10))),
        Message(
            "assistant", f"Looking.{payload}", (ToolCall(f"c{payload}", f"t{payload}", arguments),), reasoning=payload
        ),
        Message("tool", f"out {payload}\n{payload}", tool_call_id=f"c{payload}", name=f"t{payload}", is_error=True),
        Message("assistant", f"# {payload}\n```{payload}\n{payload}\n```", reasoning=f"I think {payload}"),
    ]


class Stage:
    """A conversation whose log is full of them; `said` is everything that commands have written since."""

    def __init__(self, store: Store, directory: Path) -> None:
        self.written = io.StringIO()
        output = PlainDraw(self.written, self.written, {"COLUMNS": "120"})
        name = clean_text("".join(PAYLOADS))
        facts = ModelFacts(name=f"m/{name}", provider="m", window_source=name, window_tokens=10_000_000, note=name)
        for payload in STORED:
            with store.create(directory=f"/{payload}", model=f"m{payload}", name=f"n{payload}") as other:
                other.log.append([Message("user", f"title {payload}")])
        with store.create(directory=str(directory), model=facts.name) as session:
            session.log.append([message for payload in STORED for message in exchange(payload)])
            wanted = session.info.id
        self.conversation = Conversation.open(
            defaults(),
            store=store,
            model=ScriptedModel([], facts=facts),
            directory=directory,
            session=wanted,
            listener=output.on_event,
        )
        self.app = ChatApp(self.conversation, output, ScriptedReader(), Interrupts(), models=STORED)

    async def run(self, name: str, argument: str) -> None:
        command = next(command for command in all_commands() if command.name == name)
        try:
            await command.call(self.app, argument)
        except NcaError as error:
            self.app.output.error(*error_line(error))


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with Store.open(None) as store:
        yield Stage(store, tmp_path_factory.mktemp("project"))


LINES = [
    *("context", "context show", "context search find", "context history", "context pin", "context pin last"),
    *(
        "config",
        "config terminal",
        "model",
        "permissions",
        "tools",
        "mcp",
        "sessions",
        "memory",
        "cost",
        "help",
        "show",
    ),
    *("show thoughts", "resume", "export", "rewind", "changes"),
]


@pytest.mark.parametrize("line", LINES)
async def test_a_command(stage: Stage, line: str) -> None:
    await stage.run(line.partition(" ")[0], line.partition(" ")[2])
    assert forbidden(stage.written.getvalue()) == []


async def test_every_message_and_every_call(stage: Stage) -> None:
    for number in range(1, len(STORED) + 1):
        await stage.run("show", str(number))
        await stage.run("context", f"show {4 * number - 2}")
    written = stage.written.getvalue()
    assert written.count("Failed (message") >= len(STORED)
    assert forbidden(written) == []


FORMS = [
    *(
        "config %",
        "config model.name %",
        "config context.target_ratio %",
        "config terminal.theme %",
        "show %",
        "copy %",
    ),
    *("context %", "context show %", "context search %", "context pin %", "context undo %", "permissions %"),
    *(
        "permissions allow %",
        "mcp %",
        "mcp restart %",
        "mcp login %",
        "help %",
        "sessions %",
        "resume %",
        "memory %",
        "tools %",
    ),
    *("cost %", "model %", "rename %", "export %/%", "rewind %", "rewind 1 %", "changes %"),
]


@pytest.mark.parametrize("form", FORMS)
async def test_what_is_typed_wrong_is_said_back(stage: Stage, form: str) -> None:
    """Each form has its share of the payloads, which together are all of them."""
    for payload in PAYLOADS[FORMS.index(form) % 12 :: 12]:
        name, _, argument = form.replace("%", payload).partition(" ")
        await stage.run(name, argument)
    assert forbidden(stage.written.getvalue()) == []


def test_what_completion_shows(stage: Stage) -> None:
    from nca.terminal.completion import PromptCompleter

    completer = PromptCompleter(stage.app, NoFiles())  # type: ignore[arg-type]  # finds whatever is asked for
    shown = []
    for text in (
        *(f"/{command.name} " for command in all_commands()),
        "/context show ",
        "/config model.name ",
        "/",
        "@a",
    ):
        for completion in completer.get_completions(Document(text), CompleteEvent()):
            shown += [completion.display_text, completion.display_meta_text]
    assert len(shown) > 100
    assert forbidden("\n".join(shown)) == []


class NoFiles:
    """Files whose names are payloads."""

    def find(self, text: str, wait_seconds: float) -> list[str]:
        return PAYLOADS


def test_the_toolbar() -> None:
    for payload in PAYLOADS:
        parts = toolbar(ToolbarStatus(f"m{payload}", 0.5, 1, 2, session=f"s{payload}", activity=payload), 200)
        assert forbidden("".join(part for _, part in parts)) == []
