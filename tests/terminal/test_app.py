"""The chat's loop: what ends it, and what does not."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

from nca.agent.conversation import Conversation
from nca.config.layers import defaults
from nca.errors import StoreError
from nca.messages import Message
from nca.models.model import ModelRequest
from nca.terminal.app import ChatApp
from nca.terminal.panels.list_panel import ListPanel
from nca.testing.scripted import ScriptedModel
from nca.words import Words, text_of, words
from tests.sessions.samples import sqlite_of
from tests.terminal.stage import ScriptedReader, a_stage


class Lines(ScriptedReader):
    """A person who types these lines, and leaves. `given`: what each prompt began with."""

    def __init__(self, *lines: str) -> None:
        super().__init__()
        self.given: list[str] = []
        self._lines = list(lines)

    async def read(self, conversation: Conversation, default: Words = ()) -> Words:
        self.given.append(text_of(default))
        if not self._lines:
            raise EOFError
        return words(self._lines.pop(0))


async def test_a_refusal_of_the_session_is_shown_and_the_chat_goes_on(tmp_path: Path) -> None:
    """After a turn that a kill cut off, a message ended the chat, and the next lines ran in the shell."""
    with a_stage(tmp_path, store_path=tmp_path / "store.db") as stage:
        with stage.conversation.store.create(directory=str(tmp_path), model="scripted/model") as session:
            session.log.append([Message("user", "A question that nobody answered")])
        reading = Conversation.open(
            defaults(),
            store=stage.conversation.store,
            model=ScriptedModel([]),
            directory=tmp_path,
            session=session.info.id,
            read_only=True,
            listener=stage.app.output.on_event,
        )
        reader = Lines("And now?", f"!touch {tmp_path}/made", "!!echo only here")
        app = ChatApp(reading, stage.app.output, reader, stage.app.interrupts)
        assert await app.run() == 0
        said = stage.take()
        assert said.count("This session is open for reading only") == 2
        assert "only here\n" in said
        assert reader.given == ["", "And now?", f"!touch {tmp_path}/made", ""]
        assert not (tmp_path / "made").exists()


async def test_a_disk_that_fills_up_while_an_answer_comes_is_one_error_in_the_chat(tmp_path: Path) -> None:
    """It was said three times: for the answer so far, for what was to be kept of it, and for the message taken back."""

    def fill(request: ModelRequest) -> str:
        connection = sqlite_of(stage.conversation.store).connection
        connection.pragma("max_page_count", connection.pragma("page_count"))
        with contextlib.suppress(StoreError):
            while True:
                other.rewinds.append_beside([Message("user", "No row has room left.")])
        return "word " * 40_000

    with a_stage(tmp_path, [fill], store_path=tmp_path / "store.db") as stage:
        other = stage.conversation.store.create(directory="/", model="scripted/model")
        reader = Lines("Go on.")
        app = ChatApp(stage.conversation, stage.app.output, reader, stage.app.interrupts)
        assert await app.run() == 0
        assert stage.take().count("Free some space.") == 1
        assert reader.given == ["", "Go on."]


class Faulty(Lines):
    """A panel of this reader has a fault of the program."""

    def __init__(self, *lines: str) -> None:
        super().__init__(*lines)
        self.can_walk = True

    async def walk(self, panel: ListPanel[Any, Any]) -> Any:
        raise KeyError("kept\x1b[31m")


async def test_a_fault_of_one_command_is_a_line_and_the_chat_goes_on(tmp_path: Path) -> None:
    with a_stage(tmp_path) as stage:
        reader = Faulty("/config", "!!echo here")
        app = ChatApp(stage.conversation, stage.app.output, reader, stage.app.interrupts)
        assert await app.run() == 0
        said = stage.take()
        assert "This is a fault of nca (test_app.py, line " in said
        assert "KeyError: 'kept" in said
        assert "\x1b[31m" not in said
        assert "here\n" in said


class Gone(Faulty):
    """A person whose terminal is closed while a panel is open."""

    async def walk(self, panel: ListPanel[Any, Any]) -> Any:
        raise EOFError


async def test_the_end_of_the_input_within_a_command_is_no_fault(tmp_path: Path) -> None:
    with a_stage(tmp_path) as stage:
        app = ChatApp(stage.conversation, stage.app.output, Gone("/config", "!!echo here"), stage.app.interrupts)
        assert await app.run() == 0
        said = stage.take()
        assert "fault" not in said
        assert "here" not in said
