"""Compaction prepared between two turns."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from nca.agent.conversation import Conversation
from nca.config.loaded import defaults
from nca.events import ContextCompaction, Event
from nca.models.client import ModelRequest
from nca.sessions.store import Store
from nca.testing.scripted import ScriptedModel, ScriptedReply
from tests.agent.test_conversation import LONG_ANSWER, SMALL, summary_or


def opened(path: Path, events: list[Event], reply: ScriptedReply) -> Conversation:
    return Conversation.open(
        defaults(),
        store=Store.open(path / "sessions.db"),
        model=ScriptedModel([reply] * 60, facts=SMALL),
        directory=path,
        listener=events.append,
        prepares=True,
    )


def compactions(events: list[Event]) -> list[ContextCompaction]:
    return [event for event in events if isinstance(event, ContextCompaction)]


async def until_prepared(conversation: Conversation, events: list[Event]) -> int:
    """Turns until a preparation has begun; how many there were."""
    for number in range(40):
        await conversation.send(f"Question {number}")
        if compactions(events):
            return number
    raise AssertionError("nothing was ever prepared")


async def test_it_is_swapped_in_before_the_next_request(tmp_path: Path) -> None:
    events: list[Event] = []
    conversation = opened(tmp_path, events, summary_or(LONG_ANSWER))
    await until_prepared(conversation, events)
    before = conversation.effective_history()
    used = conversation.stats().used_tokens
    assert 0.75 <= conversation.stats().usage_ratio < 0.8
    while conversation.is_preparing:
        await asyncio.sleep(0.01)
    assert conversation.effective_history() == before
    await conversation.send("Next")
    starting, completed = compactions(events)
    assert (starting.phase, starting.trigger) == ("starting", "idle")
    assert (completed.phase, completed.trigger) == ("completed", "idle")
    assert completed.tokens_before == used == conversation.history()[-1].tokens_before
    assert conversation.history()[-1].trigger == "idle"
    await conversation.close()


@pytest.mark.parametrize("moves", ["clear", "send"])
async def test_it_is_dropped_when_the_conversation_moved_on(tmp_path: Path, moves: str) -> None:
    events: list[Event] = []

    def reply(request: ModelRequest) -> str:
        return summary_or(LONG_ANSWER)(request)

    conversation = opened(tmp_path, events, reply)
    await until_prepared(conversation, events)
    if moves == "clear":
        while conversation.is_preparing:
            await asyncio.sleep(0.01)
        conversation.clear()
    await conversation.send("Next")
    phases = [event.phase for event in compactions(events)][:2]
    assert phases == ["starting", "skipped"]
    await conversation.close()


async def test_closing_ends_it(tmp_path: Path) -> None:
    events: list[Event] = []
    conversation = opened(tmp_path, events, summary_or(LONG_ANSWER))
    await until_prepared(conversation, events)
    await conversation.close()
    assert [event.phase for event in compactions(events)] == ["starting", "skipped"]
