"""A disk that fills up at any moment of a turn: one clear line, nothing lost, and the session continues later."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from nca.agent.conversation import Conversation
from nca.agent.turn import PARTIAL_SECONDS
from nca.config.loaded import defaults
from nca.context.history import History
from nca.errors import StoreError
from nca.events import ErrorRaised, Event
from nca.messages import Message, ToolCall
from nca.models.catalog import ModelFacts
from nca.models.model import ModelRequest
from nca.sessions.store import Store
from nca.testing.scripted import ScriptedModel
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
        await asyncio.sleep(PARTIAL_SECONDS + 0.5)
        log, session = list(conversation.context.entries), conversation.session.info.id
        await conversation.close()
    with Store.open(path) as store, store.open_session(session) as opened:
        assert opened.log.entries() == log
