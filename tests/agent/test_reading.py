"""Conversations opened for reading: everything can be looked at, nothing is asked or written."""

from __future__ import annotations

from pathlib import Path

import pytest

from nca.agent.conversation import Conversation
from nca.config.layers import defaults
from nca.errors import StoreError
from nca.events import ErrorRaised, Event
from nca.messages import Message, ToolCall
from nca.sessions import Store
from nca.testing.scripted import ScriptedModel
from tests.sessions.samples import said

FINISHING = {"memory.auto_compact_on_finish": True, "session.restore": "text"}


def reading(store: Store, session: str, model: ScriptedModel, listener: list[Event]) -> Conversation:
    return Conversation.open(
        defaults().with_values(FINISHING, "the test"),
        store=store,
        model=model,
        directory=Path("/"),
        session=session,
        listener=listener.append,
        prepares=True,
        read_only=True,
    )


async def test_looking_is_all_that_happens(tmp_path: Path) -> None:
    with Store.open(tmp_path / "sessions.db") as store, store.create(directory="/", model="m") as writer:
        call = Message("assistant", tool_calls=(ToolCall("c", "f", "{}"),))
        writer.log.append([*said(*"abcdefghi" * 4), call])
        model, events = ScriptedModel([]), list[Event]()
        conversation = reading(store, writer.info.id, model, events)
        assert conversation.session.is_read_only
        assert len(conversation.context.entries) == 37
        assert conversation.context.stats().used_tokens > 0
        assert len(conversation.context.effective_history()) >= 37
        finished = await conversation.send("i")
        assert finished.reason == "failed"
        (error,) = [event for event in events if isinstance(event, ErrorRaised)]
        assert "open for reading only" in error.message
        assert f"nca sessions fork {writer.info.id}" in error.advice
        with pytest.raises(StoreError, match="reading only"):
            await conversation.context.compact()
        for change in (conversation.context.clear, lambda: conversation.session.rename("x")):
            with pytest.raises(StoreError, match="reading only"):
                change()
        other = ScriptedModel([])
        await conversation.use_model(other)
        await conversation.close()
        assert (model.requests, other.requests, other.is_closed) == ([], [], True)
        assert (writer.info.messages, writer.info.model, writer.views.compactions()) == (37, "m", [])


async def test_an_empty_session_is_not_taken_from_its_writer(tmp_path: Path) -> None:
    with Store.open(tmp_path / "sessions.db") as store, store.create(directory="/", model="m") as writer:
        await reading(store, writer.info.id, ScriptedModel([]), []).close()
        assert len(store.list()) == 1
        writer.log.append(said("goes on"))
