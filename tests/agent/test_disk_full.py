"""A disk that fills up at any moment of a turn: one clear line, nothing lost, and the session continues later."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from nca.agent.approvals import Nobody
from nca.agent.conversation import Conversation
from nca.agent.partial import SAVED_SECONDS
from nca.agent.user_input import NOT_SENT
from nca.config.loaded import defaults
from nca.context.admission import SAVED
from nca.context.history import History
from nca.errors import StoreError
from nca.events import ErrorRaised, Event, Notice, TextDelta, TurnFinished
from nca.messages import Message, ToolCall
from nca.models.catalog import ModelFacts
from nca.models.model import Delta, ModelRequest, OnDelta, Reply
from nca.sessions.store import Store
from nca.testing.scripted import ScriptedModel
from nca.tools.tool import TypedTool
from nca.words import Words, words
from tests.context.promises import misplaced, refused
from tests.sessions.samples import sqlite_of

FACTS = ModelFacts(name="scripted/m", provider="scripted", window_tokens=16_000)
PAGES = 12
"""More than a turn takes."""
PLENTY = 1_000_000


def answer(request: ModelRequest) -> Message | str:
    last = request.messages[-1]
    if "<transcript>" in str(last["content"]):
        return "### 1. Goal and intent\nTo fill the disk.\n### 9. Next step\nGo on."
    if last["role"] == "user" and "look" in str(last["content"]):
        return Message("assistant", None, (ToolCall("c1", "read_file", json.dumps({"path": "a.txt"})),))
    return "word " * 2_000


@pytest.mark.parametrize("room", range(PAGES))
async def test_a_disk_that_is_full_in_the_middle_of_a_turn(tmp_path: Path, room: int) -> None:
    (tmp_path / "a.txt").write_text("something\n" * 500)
    events: list[Event] = []
    path = tmp_path / "s.db"
    with Store.open(path) as store:
        connection = sqlite_of(store).connection
        model = ScriptedModel([answer] * 200, facts=FACTS)
        conversation = Conversation.open(
            defaults(), store=store, model=model, directory=tmp_path, listener=events.append
        )
        await conversation.send("Hello.")
        before = list(conversation.context.entries)
        connection.pragma("max_page_count", connection.pragma("page_count") + room)
        finished = await conversation.send("Please look.")
        errors = [event.message for event in events if isinstance(event, ErrorRaised)]
        if finished.reason == "failed":
            assert errors
            assert all("Disk full" in error and "\n" not in error for error in errors)
        else:
            assert room > 0
        assert conversation.session.log.entries() == list(conversation.context.entries)
        with pytest.raises(StoreError, match="Disk full"):
            conversation.session.log.append([Message("user", "x" * 200_000)])
        connection.pragma("max_page_count", PLENTY)
        assert (await conversation.send("Please look.")).reason == "answered"
        assert (await conversation.context.compact()).compacted
        log = list(conversation.context.entries)
        session = conversation.session.info.id
        await conversation.close()
    assert log[: len(before)] == before
    with Store.open(path) as store, store.open_session(session) as opened:
        assert store.notes == ()
        assert opened.log.entries() == log
        history = History(opened.log.entries(), opened.views.current(), opened.views.pins())
        assert refused(history) == []
        assert misplaced([entry.message for entry in log], history.view) == []


async def test_what_a_person_says_goes_nowhere_before_it_is_on_disk(tmp_path: Path) -> None:
    events: list[Event] = []
    with Store.open(tmp_path / "s.db") as store:
        connection = sqlite_of(store).connection
        model = ScriptedModel([answer] * 5, facts=FACTS)
        conversation = Conversation.open(
            defaults(), store=store, model=model, directory=tmp_path, listener=events.append
        )
        await conversation.send("Hello.")
        before = conversation.context.entries
        connection.pragma("max_page_count", connection.pragma("page_count"))
        assert (await conversation.send("x" * 20_000)).reason == "failed"
        [error] = [event for event in events if isinstance(event, ErrorRaised)]
        assert "bytes free on" in error.message
        assert "Free some space" in error.advice
        assert conversation.context.entries == before
        assert len(model.requests) == 1
        connection.pragma("max_page_count", PLENTY)
        assert (await conversation.send("x" * 20_000)).reason == "answered"
        await conversation.close()


@pytest.mark.parametrize("how", ["send", "run_turn"])
async def test_a_turn_that_is_stopped_on_a_full_disk_ends_as_stopped(tmp_path: Path, how: str) -> None:
    events: list[Event] = []
    with Store.open(tmp_path / "s.db") as store:
        connection = sqlite_of(store).connection
        conversation = Conversation.open(
            defaults(), store=store, model=Talking(), directory=tmp_path, listener=events.append
        )
        turn = asyncio.create_task(getattr(conversation, how)("Go on."))
        while not any(isinstance(event, TextDelta) for event in events):
            await asyncio.sleep(0)
        connection.pragma("max_page_count", connection.pragma("page_count"))
        turn.cancel()
        if how == "send":
            with pytest.raises(asyncio.CancelledError):
                await turn
        else:
            assert (await turn).reason == "interrupted"
        assert [event.message[:9] for event in events if isinstance(event, ErrorRaised)] == ["Disk full"]
        assert isinstance(events[-1], TurnFinished)
        assert (events[-1].reason, events[-1].exit_code) == ("interrupted", 130)
        connection.pragma("max_page_count", PLENTY)
        await conversation.close()


class Talking:
    """Says more than a page of the database, and then nothing."""

    facts = FACTS

    async def ask(self, request: ModelRequest, on_delta: OnDelta) -> Reply:
        on_delta(Delta(text="word " * 40_000))
        await asyncio.Event().wait()
        raise AssertionError("nobody stopped it")

    async def close(self) -> None:
        """Nothing is open."""


async def test_a_result_whose_whole_text_cannot_be_saved_is_cut_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "outputs").write_text("There is no room for a folder.")
    with Store.open(tmp_path / "s.db") as store:
        large = Message("assistant", tool_calls=(ToolCall("c1", "large", "{}"),))
        conversation = Conversation.open(
            defaults(),
            store=store,
            model=ScriptedModel([large, "Done."], facts=FACTS),
            directory=tmp_path,
            tools=[Large()],
        )
        assert (await conversation.send("Go on.")).reason == "answered"
        result = conversation.context.entries[2].message
        assert result.text.startswith("word word")
        assert (result.is_error, SAVED in result.text) == (False, False)
        await conversation.close()


class Large(TypedTool):
    name = "large"
    permission = "read"

    async def call(self) -> str:
        """Answer with more than a result may have."""
        return "word " * 200_000


class Typist(Nobody):
    """Types ahead once, and fills the disk."""

    def __init__(self, typed: str) -> None:
        self.typed, self.fill = [words(typed)], list[Callable[[], None]]()

    def typed_ahead(self) -> list[Words]:
        for fill in self.fill:
            fill()
        typed, self.typed = self.typed, []
        return typed


async def test_what_was_typed_ahead_and_finds_no_room_is_told_and_what_waited_waits_on(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("something\n")
    events: list[Event] = []
    typed = "x" * 20_000
    with Store.open(tmp_path / "s.db") as store:
        connection, person = sqlite_of(store).connection, Typist(typed)
        model = ScriptedModel([answer] * 5, facts=FACTS)
        conversation = Conversation.open(
            defaults(), store=store, model=model, directory=tmp_path, person=person, listener=events.append
        )

        def fill() -> None:
            conversation.user_input.share_output("! make", "It works.")
            connection.pragma("max_page_count", connection.pragma("page_count"))

        person.fill.append(fill)
        assert (await conversation.send("Please look.")).reason == "failed"
        assert [event.message for event in events if isinstance(event, Notice)][-1] == f"{NOT_SENT}. It was: {typed}"
        assert typed not in str([entry.message for entry in conversation.context.entries])
        assert conversation.user_input.waiting == ["! make"]
        connection.pragma("max_page_count", PLENTY)
        await conversation.close()


async def test_a_compaction_that_finds_no_room_changes_nothing(tmp_path: Path) -> None:
    with Store.open(tmp_path / "s.db") as store:
        connection = sqlite_of(store).connection
        model = ScriptedModel([answer] * 200, facts=FACTS)
        conversation = Conversation.open(defaults(), store=store, model=model, directory=tmp_path)
        for _ in range(2):
            await conversation.send("Hello.")
        view, sent = conversation.context.view, conversation.context.effective_history()
        connection.pragma("max_page_count", connection.pragma("page_count"))
        full = 0
        for _ in range(40):
            try:
                await conversation.context.compact()
                conversation.context.undo()
            except StoreError as error:
                full += "Disk full" in error.message
        assert full > 10
        assert (conversation.context.view, conversation.context.effective_history()) == (view, sent)
        assert conversation.session.views.current() == view
        connection.pragma("max_page_count", PLENTY)
        assert (await conversation.context.compact()).compacted
        await conversation.close()


async def test_an_answer_that_found_no_room_is_not_saved_behind_what_was_said_since(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with Store.open(path) as store:
        connection = sqlite_of(store).connection
        model = ScriptedModel([answer] * 5, facts=FACTS)
        conversation = Conversation.open(defaults(), store=store, model=model, directory=tmp_path)
        await conversation.send("Hello.")
        connection.pragma("max_page_count", connection.pragma("page_count"))
        assert (await conversation.send("Hello again.")).reason == "failed"
        assert len(model.requests) == 2
        connection.pragma("max_page_count", PLENTY)
        assert (await conversation.send("And now?")).reason == "answered"
        await asyncio.sleep(SAVED_SECONDS + 0.5)
        log, session = list(conversation.context.entries), conversation.session.info.id
        await conversation.close()
    with Store.open(path) as store, store.open_session(session) as opened:
        assert opened.log.entries() == log


async def test_a_disk_that_fills_up_while_an_answer_comes_is_told_once(tmp_path: Path) -> None:
    """The answer so far cannot be saved, which ends the turn, and then it cannot be kept either."""
    events: list[Event] = []
    with Store.open(tmp_path / "s.db") as store:
        connection = sqlite_of(store).connection
        conversation = Conversation.open(
            defaults(), store=store, model=Talking(), directory=tmp_path, listener=events.append
        )
        said = conversation.send("Go on.")
        conversation.subscribe(
            lambda event: (
                connection.pragma("max_page_count", connection.pragma("page_count"))
                if isinstance(event, TextDelta)
                else None
            )
        )
        assert (await said).reason == "failed"
        assert [event.message[:9] for event in events if isinstance(event, ErrorRaised)] == ["Disk full"]
        connection.pragma("max_page_count", PLENTY)
        await conversation.close()
