"""/model during a chat: a smaller window compacts before the next request, and says so at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nca.agent.conversation import Conversation
from nca.config.loaded import defaults
from nca.events import ContextCompaction, ContextWarning, ErrorRaised, Event, Notice, RequestStarted
from nca.models.catalog import ModelFacts
from nca.sessions.store import Store
from nca.testing.scripted import ScriptedModel

SUMMARY = "The person asked many questions, and each was answered in many words. Nothing is open, and nothing failed."
ANSWER = "An answer in many words, about this and that and more. " * 20


class Room:
    def __init__(self, path: Path, turns: int, answer: str = "{} " + ANSWER, **settings: Any) -> None:
        """answer: with the turn's number in place of `{}` or `{0}`"""
        self.events: list[Event] = []
        self.store = Store.open(path / "sessions.db")
        self.turns = turns
        model = ScriptedModel([answer.format(n) for n in range(turns)], facts=ModelFacts("scripted/large", "scripted"))
        loaded = defaults().with_values({"model.summarizer": "none", **settings}, "the test")
        self.conversation = Conversation.open(
            loaded, store=self.store, model=model, directory=path, listener=self.events.append
        )

    async def talk(self) -> None:
        for number in range(self.turns):
            await self.conversation.send(f"Question {number}")
        self.events.clear()

    def of(self, kind: type[Event]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]


def small(*replies: str, window_tokens: int = 4_000) -> ScriptedModel:
    return ScriptedModel(list(replies), facts=ModelFacts("scripted/small", "scripted", window_tokens))


async def test_a_smaller_window_says_so_and_compacts_before_the_next_request(tmp_path: Path) -> None:
    room = Room(tmp_path, turns=14)
    await room.talk()
    model = small("Here.")
    await room.conversation.use_model(model)
    (warning,) = room.of(ContextWarning)
    assert warning.usage > 1
    assert "Compaction follows before the next request." in warning.message
    assert model.requests == []
    finished = await room.conversation.send("And now?")
    assert finished.reason == "answered"
    assert [(event.phase, event.trigger) for event in room.of(ContextCompaction)] == [
        ("starting", "model"),
        ("completed", "model"),
    ]
    kinds = [type(event) for event in room.events]
    assert kinds.index(ContextCompaction) < kinds.index(RequestStarted)
    (asked,) = room.of(RequestStarted)
    assert asked.used_tokens <= asked.budget_tokens < 4_000
    await room.conversation.close()


async def test_a_window_that_is_large_enough_changes_nothing(tmp_path: Path) -> None:
    room = Room(tmp_path, turns=1)
    await room.talk()
    await room.conversation.use_model(small("Here."))
    assert room.events == []
    await room.conversation.send("And now?")
    assert room.of(ContextCompaction) == []
    await room.conversation.close()


async def test_without_compaction_it_says_what_makes_room(tmp_path: Path) -> None:
    room = Room(tmp_path, turns=14, **{"context.auto": "off"})
    await room.talk()
    await room.conversation.use_model(small())
    (warned,) = room.of(ContextWarning)
    assert "Auto-compaction is off; the next message will not be sent: /compact makes room." in warned.message
    finished = await room.conversation.send("And now?")
    assert finished.reason == "failed"
    assert "Nothing was sent" in room.of(ErrorRaised)[0].message
    await room.conversation.close()


async def test_the_quiet_after_a_compaction_was_the_other_window_s(tmp_path: Path) -> None:
    # A compaction that a person undid keeps quiet until the usage has grown by a share of the window: the large one's.
    room = Room(tmp_path, turns=9)
    await room.talk()
    assert (await room.conversation.context.compact()).compacted
    room.conversation.context.undo()
    room.events.clear()
    await room.conversation.use_model(small("Here.", window_tokens=5_000))
    used, budget = room.conversation.context.stats().used_tokens, room.conversation.context.stats().budget_tokens
    assert 0.95 * budget < used
    await room.conversation.send("And now?")
    assert ("completed", "model") in [(event.phase, event.trigger) for event in room.of(ContextCompaction)]
    await room.conversation.close()


async def test_instructions_tools_and_attachments_are_cut_for_a_smaller_window(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("Always answer in verse. " * 1_200)
    (tmp_path / "big.txt").write_text("One line of a large file that was brought in.\n" * 2_000)
    room = Room(tmp_path, turns=2)
    large_prompt = room.conversation.context.next_request().messages[0]["content"]
    await room.conversation.send("Read this.", attachments=[tmp_path / "big.txt"])
    await room.conversation.send("Question")
    room.events.clear()
    model = small("Here.", "Here again.")
    await room.conversation.use_model(model)
    told = [notice.message for notice in room.of(Notice)]
    assert [text for text in told if text.startswith("Instructions: AGENTS.md (cut")] == told
    finished = await room.conversation.send("And now?")
    assert finished.reason == "answered"
    asked = room.of(RequestStarted)[-1]
    assert asked.used_tokens <= asked.budget_tokens < 4_000
    small_prompt = model.requests[-1].messages[0]["content"]
    assert len(small_prompt) < len(large_prompt) / 4
    names = {tool["function"]["name"] for tool in model.requests[-1].tools}
    # Back to the large window: the very text of before, so that what the provider has cached of it is valid again.
    again = ScriptedModel(["Yes."], facts=ModelFacts("scripted/large", "scripted"))
    await room.conversation.use_model(again)
    await room.conversation.send("And there?")
    assert again.requests[-1].messages[0]["content"] == large_prompt
    assert names <= {tool["function"]["name"] for tool in again.requests[-1].tools}
    await room.conversation.close()


async def test_a_smaller_window_by_hand_cuts_the_instructions_too(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("Always answer in verse. " * 1_200)
    room = Room(tmp_path, turns=1)
    before = len(room.conversation.context.next_request().messages[0]["content"])
    room.conversation.set("model.context_window", 4_000)
    assert len(room.conversation.context.next_request().messages[0]["content"]) < before / 4
    finished = await room.conversation.send("And now?")
    assert finished.reason == "answered"
    await room.conversation.close()


async def test_a_larger_window_shows_again_what_a_smaller_one_left_out(tmp_path: Path) -> None:
    room = Room(tmp_path, turns=30)
    await room.talk()
    conversation = room.conversation
    await conversation.use_model(small("Here."))
    await conversation.send("And now?")
    assert conversation.context.stats().used_tokens < 3_000
    # 30 answers are some 9,000 tokens: of these a window of 9,000 shows more again, and a large one all.
    await conversation.use_model(small("Here.", window_tokens=9_000))
    room.events.clear()
    await conversation.send("And here?")
    grown = room.of(ContextCompaction)
    assert [(event.phase, event.trigger) for event in grown] == [("starting", "model"), ("completed", "model")]
    assert grown[1].message.startswith("The window is larger, so more of the conversation is shown again")
    used, budget = conversation.context.stats().used_tokens, conversation.context.stats().budget_tokens
    assert 0.5 * budget < used < 0.8 * budget
    large = ScriptedModel(["Yes."] * 3, facts=ModelFacts("scripted/large", "scripted"))
    await conversation.use_model(large)
    await conversation.send("And there?")
    shown = [message["content"] for message in large.requests[-1].messages if message["role"] == "user"]
    assert shown == [*(f"Question {number}" for number in range(30)), "And now?", "And here?", "And there?"]
    room.events.clear()
    await conversation.send("Once more.")
    assert room.of(ContextCompaction) == []
    conversation.context.undo()
    assert conversation.context.stats().used_tokens < 6_000
    await conversation.send("And after an undo.")
    assert room.of(ContextCompaction) == []
    await conversation.close()
    again = Conversation.open(
        conversation.loaded,
        store=room.store,
        model=ScriptedModel(["Yes."], facts=large.facts),
        directory=tmp_path,
        session=conversation.session.info.id,
        listener=room.events.append,
    )
    await again.send("And another day.")
    assert room.of(ContextCompaction) == [], "the person went back to this view"
    await again.close()


async def test_what_a_person_compacted_stays_so_in_a_larger_window(tmp_path: Path) -> None:
    room = Room(tmp_path, turns=30)
    await room.talk()
    await room.conversation.use_model(small("Here."))
    await room.conversation.send("And now?")
    assert (await room.conversation.context.compact()).compacted
    room.events.clear()
    await room.conversation.use_model(ScriptedModel(["Yes."], facts=ModelFacts("scripted/large", "scripted")))
    await room.conversation.send("And there?")
    assert room.of(ContextCompaction) == []
    await room.conversation.close()


async def test_a_model_s_summary_stays_in_a_larger_window_where_not_all_fits(tmp_path: Path) -> None:
    # No answer is a version of another.
    answer = " ".join(f"{word}{{0}}" for word in ANSWER.split()[:200])
    room = Room(tmp_path, 80, answer, **{"model.summarizer": ""})
    await room.talk()
    conversation = room.conversation
    await conversation.use_model(small(*[SUMMARY] * 9, window_tokens=12_000))
    await conversation.send("And now?")
    used = conversation.context.stats().used_tokens
    room.events.clear()
    medium = small("Here.", window_tokens=24_000)
    await conversation.use_model(medium)
    await conversation.send("And here?")
    assert [(event.phase, event.trigger) for event in room.of(ContextCompaction)] == [
        ("starting", "model"),
        ("completed", "model"),
    ]
    (asked,) = medium.requests
    assert any(SUMMARY in message["content"] for message in asked.messages if message["role"] == "user")
    assert conversation.context.stats().used_tokens > 1.5 * used
    await conversation.close()
