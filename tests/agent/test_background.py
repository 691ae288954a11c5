"""Compactions prepared between two turns."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from nca.agent.conversation import Conversation
from nca.config.loaded import defaults
from nca.events import ContextCompaction, ContextWarning, Event
from nca.models.catalog import ModelFacts
from nca.models.client import ModelRequest
from nca.sessions.store import Store
from nca.testing.scripted import ScriptedModel, ScriptedReply
from nca.tools.toolbox import Toolbox
from tests.agent.test_conversation import LONG_ANSWER, SMALL, summary_or

MIDDLE = ModelFacts(name="scripted/middle", provider="scripted", window_tokens=12_000)


def opened(
    path: Path,
    events: list[Event],
    reply: ScriptedReply,
    settings: dict[str, Any] | None = None,
    facts: ModelFacts = SMALL,
) -> Conversation:
    return Conversation.open(
        defaults().with_values(settings or {}, "the test"),
        store=Store.open(path / "sessions.db"),
        model=ScriptedModel([reply] * 60, facts=facts),
        directory=path,
        listener=events.append,
        prepares=True,
        # The numbers must not depend on how long the definitions of nca's own tools are.
        toolbox=Toolbox(),
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
    # A turn takes less than lies between the two thresholds.
    conversation = opened(tmp_path, events, summary_or(LONG_ANSWER[:300]))
    await until_prepared(conversation, events)
    before = conversation.context.effective_history()
    used = conversation.context.stats().used_tokens
    assert 0.75 <= conversation.context.stats().usage_ratio < 0.8
    while conversation.context.is_preparing:
        await asyncio.sleep(0.01)
    assert conversation.context.effective_history() == before
    await conversation.send("Next")
    starting, completed = compactions(events)
    assert (starting.phase, starting.trigger) == ("starting", "idle")
    assert (completed.phase, completed.trigger) == ("completed", "idle")
    assert completed.tokens_before == used == conversation.context.history()[-1].tokens_before
    assert conversation.context.history()[-1].trigger == "idle"
    await conversation.close()


@pytest.mark.parametrize("moves", ["clear", "send"])
async def test_it_is_dropped_when_the_conversation_moved_on(tmp_path: Path, moves: str) -> None:
    events: list[Event] = []

    def reply(request: ModelRequest) -> str:
        return summary_or(LONG_ANSWER)(request)

    conversation = opened(tmp_path, events, reply)
    await until_prepared(conversation, events)
    if moves == "clear":
        while conversation.context.is_preparing:
            await asyncio.sleep(0.01)
        conversation.context.clear()
    await conversation.send("Next")
    phases = [event.phase for event in compactions(events)][:2]
    assert phases == ["starting", "skipped"]
    await conversation.close()


async def test_the_warning_and_the_next_rung_tell_of_the_preparation(tmp_path: Path) -> None:
    events: list[Event] = []
    settings = {"context.compact_threshold": 0.5, "context.idle_threshold": 0.5, "context.info_threshold": 0.55}
    conversation = opened(tmp_path, events, summary_or(LONG_ANSWER), settings, MIDDLE)
    budget = conversation.context.stats().budget_tokens
    assert conversation.context.stats().next_rung == f"compaction at {budget // 2:,} tokens"
    await until_prepared(conversation, events)
    (warning,) = [event for event in events if isinstance(event, ContextWarning)]
    assert warning.message.endswith("tokens). A compaction is being prepared.")
    assert conversation.context.stats().next_rung.startswith("a compaction is being prepared")
    while conversation.context.is_preparing:
        await asyncio.sleep(0.01)
    assert conversation.context.stats().next_rung == "a compaction is ready and is put in force before the next request"
    await conversation.send("Next")
    assert [event.phase for event in compactions(events)] == ["starting", "completed"]
    await conversation.close()


async def test_every_rung_that_is_ahead_is_named(tmp_path: Path) -> None:
    events: list[Event] = []
    conversation = opened(tmp_path, events, summary_or(LONG_ANSWER))
    budget = conversation.context.stats().budget_tokens
    info, idle, trigger = (int(share * budget) for share in (0.60, 0.75, 0.80))
    after_info = f"compaction is prepared from {idle:,} on, compaction at {trigger:,} tokens"
    assert conversation.context.stats().next_rung == f"a notice above {info:,} tokens, {after_info}"
    while conversation.context.stats().used_tokens <= info:
        await conversation.send("Question")
    assert conversation.context.stats().next_rung == after_info
    conversation.set("context.idle_threshold", conversation.context.stats().usage_ratio)
    assert (
        conversation.context.stats().next_rung
        == f"compaction is prepared after a turn, compaction at {trigger:,} tokens"
    )
    conversation.set("context.auto", "off")
    assert conversation.context.stats().next_rung.startswith("nothing by itself")
    await conversation.close()


async def test_closing_ends_it(tmp_path: Path) -> None:
    events: list[Event] = []
    conversation = opened(tmp_path, events, summary_or(LONG_ANSWER))
    await until_prepared(conversation, events)
    await conversation.close()
    assert [event.phase for event in compactions(events)] == ["starting", "skipped"]
