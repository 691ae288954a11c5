"""The session that is killed: streaming, tools, compaction, undo, pins, preview, import, fork, archive, export.

Each step is a method. What a person would see is told the moment they would see it (`tests.soak.facts`).
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

from nca.agent.conversation import Conversation
from nca.config.loaded import defaults
from nca.errors import UsageError
from nca.events import ContextCompaction, Event, RequestStarted, TextDelta, ToolFinished
from nca.messages import Message, ToolCall
from nca.models.catalog import ModelFacts
from nca.models.model import Delta, ModelRequest, OnDelta, Reply
from nca.sessions.session import Session
from nca.sessions.store import Store
from nca.testing.scripted import ScriptedModel
from nca.tools.tool import Permission, ToolOutcome, TypedTool
from nca.tools.toolbox import Toolbox
from nca.transcripts.archives import archive, archived, restore
from nca.transcripts.export_formats import write_private
from nca.transcripts.session_file import read_session, to_json
from tests.soak.facts import (
    Added,
    Began,
    Deleted,
    Done,
    Logged,
    Ran,
    Seen,
    Stands,
    Written,
    digest_of,
    digest_of_all,
    prose,
    tell,
)

MODEL = ModelFacts(name="scripted/soak", provider="scripted", window_tokens=12_000)
SETTINGS = {"agent.permission": "auto", "context.idle_threshold": 0.5}
SUMMARY = "### 1. Goal and intent\nThe user tries what happens when the program is killed.\n### 9. Next step\nGo on."
ANSWER_CHARS = 5_000
"""More than the 4 KiB after which a partial answer is kept."""
LARGE_CHARS = 12_000
"""More than may enter the view of a tool's output."""
EFFECTS = "effects.log"
EXPORT = "export.json"
COPIES = ("imported", "forked")
STEPS = (
    *("answer", "tools", "large_output", "compact", "undo", "redo", "until_compacted", "background", "preview"),
    *("pin", "unpin", "expand", "rename", "clear", "undo", "import_", "fork", "archive", "restore", "export", "delete"),
)


def wants_summary(request: ModelRequest) -> bool:
    return "<transcript>" in str(request.messages[-1]["content"])


def worked_on(store: Store) -> str | None:
    """The session that goes on: the one used last that is no copy."""
    return next((info.id for info in store.list(None) if info.name not in COPIES and info.messages), None)


def standing(session: Session) -> Stands:
    views = 1 + len(session.views.compactions())
    return Stands(
        session.info.id, views, session.views.current_id, session.info.name, tuple(sorted(session.views.pins()))
    )


class Effect(TypedTool):
    """Something that must not happen twice: a line in a file."""

    name: ClassVar[str] = "effect"
    permission: ClassVar[Permission] = "execute"

    def __init__(self, home: Path) -> None:
        self._file = home / EFFECTS

    async def call(self, id: str, chars: int) -> ToolOutcome:
        """Write the id down."""
        handle = os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.write(handle, f"{id}\n".encode())
        os.close(handle)
        if id.endswith("deadly"):
            os.kill(os.getpid(), signal.SIGKILL)
        return ToolOutcome(prose(id, chars))


class PacedModel:
    """A scripted model that takes a moment for each piece."""

    def __init__(self, model: ScriptedModel, pause_seconds: float) -> None:
        self._model = model
        self._pause_seconds = pause_seconds
        self.facts = model.facts

    async def ask(self, request: ModelRequest, on_delta: OnDelta) -> Reply:
        def paced(delta: Delta) -> None:
            time.sleep(self._pause_seconds)
            on_delta(delta)

        return await self._model.ask(request, paced if self._pause_seconds else on_delta)

    async def close(self) -> None:
        await self._model.close()


class Program:
    """One process's work in `home`; `run` makes its names unlike those of other runs."""

    def __init__(self, home: Path, run: str, pause_seconds: float, on_open: Callable[[], None]) -> None:
        self._home = home
        self._run = run
        self._on_open = on_open
        self._pause_seconds = pause_seconds
        self._names = 0
        self._told = 0
        self._seen = 0
        self._script: list[Message | str] = []
        self._is_deadly = False

    def work(self, steps: Sequence[str]) -> None:
        asyncio.run(self._work(steps))

    async def _work(self, steps: Sequence[str]) -> None:
        tell(Began("open"))
        with Store.open(self._home / "data" / "sessions.db") as store:
            self._store = store
            self._conversation = Conversation.open(
                defaults().with_values(SETTINGS, "the test"),
                store=store,
                model=PacedModel(ScriptedModel([self._reply] * 1_000, facts=MODEL), pause_seconds=self._pause_seconds),
                directory=self._home,
                session=worked_on(store),
                listener=self._hear,
                toolbox=Toolbox([Effect(self._home)]),
                prepares=True,
            )
            self._id = self._conversation.session.info.id
            self._tell_all()
            tell(Done())
            self._on_open()
            for step in steps:
                await getattr(self, step)()
            tell(Began("close", self._id))
            await self._conversation.close()
            tell(Done() if self._told else Deleted(self._id))

    # The steps

    async def answer(self) -> None:
        await self._send([self._text(ANSWER_CHARS)])

    async def tools(self) -> None:
        await self._send([self._calls(2), self._calls(1), self._text(300)])

    async def large_output(self) -> None:
        await self._send([self._calls(1, LARGE_CHARS), self._text(300)])

    async def die_in_a_tool(self) -> None:
        """One call is done, one has had its effect, one has not begun."""
        calls = self._calls(3)
        deadly = json.dumps({"id": f"{calls.tool_calls[1].id}-deadly", "chars": 10})
        script = (calls.tool_calls[0], ToolCall(calls.tool_calls[1].id, "effect", deadly), calls.tool_calls[2])
        await self._send([Message("assistant", None, script)])

    async def die_while_streaming(self) -> None:
        self._is_deadly = True
        await self._send([self._text(2 * ANSWER_CHARS)])

    async def until_compacted(self) -> None:
        """Turns until the threshold is crossed and compaction has happened before a request."""
        before = len(self._conversation.context.history())
        while len(self._conversation.context.history()) == before:
            await self._send([self._text(ANSWER_CHARS)])

    async def background(self) -> None:
        """Prepared after a turn, put in force before the next one."""
        while not self._is_preparing():
            await self._send([self._text(ANSWER_CHARS)])
        while self._is_preparing():
            await asyncio.sleep(0)
        await self._send([self._text(300)])

    def _is_preparing(self) -> bool:
        return self._conversation.context.is_preparing

    async def compact(self) -> None:
        await self._send([self._text(ANSWER_CHARS)])
        tell(Began("view", self._id))
        await self._conversation.context.compact()
        self._tell_all()

    async def undo(self) -> None:
        tell(Began("view", self._id))
        self._conversation.context.undo()
        self._tell_all()

    async def redo(self) -> None:
        tell(Began("view", self._id))
        self._conversation.context.redo()
        self._tell_all()

    async def clear(self) -> None:
        tell(Began("view", self._id))
        self._conversation.context.clear()
        self._tell_all()

    async def preview(self) -> None:
        await self._send([self._text(ANSWER_CHARS)])
        tell(Began("view", self._id))
        preview = await self._conversation.context.preview()
        with suppress(UsageError):  # nothing is saved by it
            await self._conversation.context.accept(preview)
        self._tell_all()

    async def pin(self) -> None:
        """The newest message that is none yet; one that is hidden is shown again, too."""
        await self._send([self._text(100)])
        pinned = {pin.seq for pin in self._conversation.context.pins()}
        seq = next(seq for seq in range(self._told, 0, -1) if seq not in pinned)
        tell(Began("view", self._id))
        with suppress(UsageError):  # no room for it
            self._conversation.context.pin(seq)
        self._tell_all()

    async def unpin(self) -> None:
        tell(Began("view", self._id))
        for pin in self._conversation.context.pins()[:1]:
            self._conversation.context.unpin(pin.seq)
        self._tell_all()

    async def expand(self) -> None:
        if not self._told:
            return
        tell(Began("view", self._id))
        with suppress(UsageError):  # no room for it
            self._conversation.context.expand("1")
        self._tell_all()

    async def rename(self) -> None:
        tell(Began("view", self._id))
        self._conversation.session.rename(f"name {self._name()}")
        self._tell_all()

    async def import_(self) -> None:
        rows = [{"role": "user", "content": prose(self._name(), 200)}]
        rows += [{"role": "assistant", "content": prose(self._name(), 200)}, rows[0]]
        copy = read_session(json.dumps(rows).encode(), "a file", directory=str(self._home), name="imported")
        digest = digest_of_all(entry.message for entry in copy.entries)
        tell(Began("add", expected=digest))
        tell(Added(self._store.add(copy).id, digest))

    async def fork(self) -> None:
        digest = digest_of_all(entry.message for entry in self._conversation.context.entries)
        tell(Began("add", expected=digest))
        tell(Added(self._store.fork(self._id, name="forked").id, digest))

    async def archive(self) -> None:
        for info in self._store.list():
            if info.name in COPIES:
                tell(Began("archive", info.id))
                archive(self._store, info.id)
                tell(Done())
                return

    async def restore(self) -> None:
        for one in archived(self._store):
            assert one.info is not None
            tell(Began("restore", one.info.id))
            restore(self._store, one.info.id)
            tell(Done())

    async def delete(self) -> None:
        for info in self._store.list():
            if info.name in COPIES:
                tell(Began("delete", info.id))
                self._store.delete(info.id)
                tell(Deleted(info.id))
                return

    async def export(self) -> None:
        """Twice: a new file, then another in its place."""
        for ending in (b"", b"\n"):
            data = to_json(self._store.copy_of(self._id)) + ending
            digest = hashlib.sha256(data).hexdigest()
            tell(Began("write", expected=digest))
            write_private(self._home / EXPORT, data, overwrites=True)
            tell(Written(EXPORT, digest))

    # What the model says, and what is told of it

    async def _send(self, script: list[Message | str]) -> None:
        self._script = script
        tell(Began("turn", self._id))
        finished = await self._conversation.send(prose(self._name(), 200))
        assert finished.reason == "answered", finished
        self._tell_all()

    def _reply(self, request: ModelRequest) -> Message | str:
        return SUMMARY if wants_summary(request) else self._script.pop(0)

    def _calls(self, count: int, chars: int = 200) -> Message:
        names = [self._name() for _ in range(count)]
        calls = (ToolCall(name, "effect", json.dumps({"id": name, "chars": chars})) for name in names)
        return Message("assistant", None, tuple(calls))

    def _text(self, chars: int) -> str:
        return prose(self._name(), chars)

    def _name(self) -> str:
        self._names += 1
        return f"{self._run}-{self._names}"

    def _hear(self, event: Event) -> None:
        match event:
            case RequestStarted():
                self._seen = 0
            case TextDelta(text=text):
                self._seen += len(text)
                tell(Seen(self._id, self._seen))
                if self._is_deadly and self._seen > 2 * ANSWER_CHARS - 20:
                    os.kill(os.getpid(), signal.SIGKILL)
            case ToolFinished(call_id=call):
                tell(Ran(call))
            case ContextCompaction(phase="completed"):
                self._tell_view()
        if hasattr(self, "_conversation"):
            self._tell_log()

    def _tell_all(self) -> None:
        self._tell_log()
        self._tell_view()
        tell(Done())

    def _tell_log(self) -> None:
        for entry in self._conversation.context.entries[self._told :]:
            tell(Logged(self._id, entry.seq, digest_of(entry.message)))
            self._told = entry.seq

    def _tell_view(self) -> None:
        tell(standing(self._conversation.session))
