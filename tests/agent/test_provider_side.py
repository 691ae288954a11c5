"""Conversations whose provider compacts: real HTTP, litellm, a store on disk."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nca.agent.conversation import Conversation
from nca.config.loaded import defaults
from nca.config.schema import ModelSettings
from nca.context.view import Summary
from nca.errors import ConfigError
from nca.events import ContextCompaction, Event, Notice
from nca.models.catalog import describe
from nca.models.client import ProviderModel
from nca.sessions.store import Store
from nca.testing.scripted import Answer, ScriptedModel, in_order
from tests.testing.anthropic_provider import AnthropicProvider

NAME = "anthropic/claude-sonnet-5-5"
SETTINGS = {"context.provider_side": True, "model.context_window": 80_000, "model.max_output_tokens": 4_000}
"""The budget is 76,000 tokens and the provider compacts from 60,800 on."""
SUMMARY = "The work so far: the parser is being rewritten, and the tests of the lexer pass."


class Room:
    """A directory with a store, a provider, and everything that a conversation told."""

    def __init__(self, path: Path, provider: AnthropicProvider) -> None:
        self.path = path
        self.provider = provider
        self.store = Store.open(path / "sessions.db")
        self.events: list[Event] = []

    def open(self, *, name: str = NAME, session: str | None = None, **settings: Any) -> Conversation:
        loaded = defaults().with_values({**SETTINGS, **settings}, "the test")
        return Conversation.open(
            loaded,
            store=self.store,
            model=self.model(name),
            directory=self.path,
            session=session,
            listener=self.events.append,
        )

    def model(self, name: str) -> ProviderModel:
        facts = describe(name, context_window=80_000)
        return ProviderModel(facts, ModelSettings(api_base=self.provider.url), self.events.append, api_key="k")

    def compactions(self) -> list[tuple[str, str]]:
        return [(event.phase, event.trigger) for event in self.events if isinstance(event, ContextCompaction)]


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    with AnthropicProvider(summary=SUMMARY) as provider:
        yield Room(tmp_path, provider)


async def ask_four(conversation: Conversation) -> None:
    for number in range(4):
        await conversation.send(question(number))


def question(number: int, words: int = 3_100) -> str:
    return f"Question {number}: " + " ".join(f"word{number}x{index % 89}" for index in range(words))


def sent_blocks(body: dict[str, Any]) -> list[list[str]]:
    return [[block["type"] for block in message["content"]] for message in body["messages"]]


async def test_a_stop_for_a_compaction_continues_the_turn(room: Room) -> None:
    conversation = room.open()
    for number in range(4):
        finished = await conversation.send(question(number))
        assert finished.reason == "answered"
    assert room.compactions() == [("starting", "provider"), ("completed", "provider")]
    (summary,) = conversation.context.summaries()
    # It stands for what came before; the newest question is as it was.
    assert (summary.prose, summary.made_by, summary.ranges) == (SUMMARY, NAME, ((1, 6),))
    assert sent_blocks(room.provider.requests[-1]) == [["text"], ["compaction"], ["text"]]
    assert room.provider.requests[-1]["messages"][-1]["content"][0]["text"] == question(3)
    # Every request of the test was one that the real API takes, and the log has everything.
    assert len(conversation.context.entries) == 8
    await conversation.close()


async def test_it_is_counted_once_and_does_not_set_off_our_own_ladder(room: Room) -> None:
    conversation = room.open()
    await ask_four(conversation)
    await conversation.send("And now?")
    stats = conversation.context.stats()
    assert not stats.is_estimate
    assert stats.used_tokens < 25_000
    assert stats.next_rung.startswith("compaction by the provider at ")
    assert len(room.compactions()) == 2
    assert conversation.session.usage.totals().prompt_tokens == room.provider.billed
    session, used = conversation.session.info.id, stats.used_tokens
    await conversation.close()
    # Opened again it goes on at the number it ended with.
    again = room.open(session=session)
    assert again.context.stats().used_tokens == used
    await again.send("Go on.")
    assert sent_blocks(room.provider.requests[-1])[:2] == [["text"], ["compaction"]]
    await again.close()


async def test_undo_shows_everything_again_and_the_block_is_gone(room: Room) -> None:
    conversation = room.open()
    await ask_four(conversation)
    assert conversation.context.undo() is not None
    assert conversation.context.summaries() == []
    rows = conversation.context.effective_history()
    assert not any("provider_specific_fields" in row for row in rows)
    assert len([row for row in rows if row["role"] == "user"]) == 4
    await conversation.close()


async def test_another_model_gets_the_summary_as_text(room: Room) -> None:
    conversation = room.open()
    await ask_four(conversation)
    await conversation.use_model(room.model("anthropic/claude-sonnet-4-6"))
    await conversation.send("And now?")
    body = room.provider.requests[-1]
    assert ["compaction"] not in sent_blocks(body)
    assert SUMMARY in body["messages"][0]["content"][0]["text"]
    await conversation.close()


async def test_a_pin_before_it_keeps_the_block_at_home(room: Room) -> None:
    conversation = room.open()
    await conversation.send("A rule: never push on a Friday.")
    conversation.context.pin(1)
    await ask_four(conversation)
    # The provider leaves out what stands before its block, so the summary goes as text behind the pin.
    blocks = sent_blocks(room.provider.requests[-1])
    assert ["compaction"] not in blocks
    texts = [block["text"] for block in room.provider.requests[-1]["messages"][0]["content"]]
    assert texts[0].startswith("A rule")
    assert SUMMARY in texts[1]
    await conversation.close()


async def test_where_nothing_can_go_it_is_asked_once_without_the_wish(room: Room) -> None:
    conversation = room.open(**{"context.fit": "cut"})
    finished = await conversation.send(question(1, words=12_500))
    assert finished.reason == "answered"
    assert room.compactions() == [("starting", "provider"), ("skipped", "provider")]
    assert len(room.provider.requests) == 2
    await conversation.close()


async def test_a_long_turn_gives_its_older_steps_away(tmp_path: Path) -> None:
    (tmp_path / "big.txt").write_text("\n".join(question(1, words=60) for _ in range(60)))
    # Written in two ways: the same call over and over would end the turn.
    steps = [Answer(tool_calls=[("read_file", {"path": "./big.txt"[i % 2 * 2 :]})], reasoning="On.") for i in range(9)]
    with AnthropicProvider(in_order(*steps, "Done."), summary=SUMMARY) as provider:
        room = Room(tmp_path, provider)
        conversation = room.open()
        finished = await conversation.send("Read it again and again.")
        assert (finished.reason, finished.text) == ("answered", "Done.")
        assert ("completed", "provider") in room.compactions()
        await conversation.close()


async def test_a_model_that_cannot_is_told_and_nca_compacts(room: Room) -> None:
    conversation = room.open(name="anthropic/claude-sonnet-4-5")
    notices = [event.message for event in room.events if isinstance(event, Notice)]
    assert any("context.provider_side has no effect" in text for text in notices)
    await ask_four(conversation)
    assert ("completed", "threshold") in room.compactions()
    assert not any("context_management" in body for body in room.provider.requests)
    await conversation.close()


async def test_the_setting_is_refused_where_it_could_do_nothing(tmp_path: Path) -> None:
    with Store.open(tmp_path / "sessions.db") as store:
        conversation = Conversation.open(defaults(), store=store, model=ScriptedModel([]), directory=tmp_path)
        with pytest.raises(ConfigError, match="the provider of scripted/model cannot compact"):
            conversation.set("context.provider_side", True)
        assert conversation.loaded.settings.context.provider_side is False
        await conversation.close()


async def test_a_summary_of_the_provider_is_one_like_others(room: Room) -> None:
    conversation = room.open()
    await ask_four(conversation)
    assert any(isinstance(item, Summary) and item.block for item in conversation.context.view.items)
    (record,) = conversation.context.history()
    assert (record.trigger, record.stages) == ("provider", ("provider",))
    assert record.cost is not None
    assert record.cost > 0.1
    await conversation.close()
