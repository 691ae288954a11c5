"""Compactions prepared between two turns."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any

from nca.agent.conversation import Conversation
from nca.config.loaded import defaults
from nca.events import ContextCompaction, ContextWarning, Event, TurnFinished
from nca.messages import Message, ToolCall
from nca.models.catalog import ModelFacts
from nca.models.model import ModelRequest, OnDelta, Reply
from nca.sessions.store import Store
from nca.testing.scripted import ScriptedModel, ScriptedReply
from nca.tools.files.edit import WriteFile
from nca.tools.files.reading_rules import FilesRead
from nca.tools.files.workspace import Workspace
from nca.tools.toolbox import Toolbox
from nca.words import words
from tests.agent.test_conversation import LONG_ANSWER, SMALL, summary_or

MIDDLE = ModelFacts(name="scripted/middle", provider="scripted", window_tokens=12_000)
EARLY = {"context.idle_threshold": 0.5, "context.target_ratio": 0.15}
USUAL = {"context.compact_threshold": 0.80, "context.target_ratio": 0.65}
"""The threshold of a usual window in a small one: there is more between two turns and the end."""


def opened(
    path: Path,
    events: list[Event],
    reply: ScriptedReply = "",
    settings: dict[str, Any] | None = None,
    facts: ModelFacts = SMALL,
    model: ScriptedModel | None = None,
    toolbox: Toolbox | None = None,
) -> Conversation:
    return Conversation.open(
        defaults().with_values({**USUAL, **(settings or {})}, "the test"),
        store=Store.open(path / "sessions.db"),
        model=model or ScriptedModel([reply] * 60, facts=facts),
        directory=path,
        listener=events.append,
        prepares=True,
        # The numbers must not depend on how long the definitions of nca's own tools are.
        toolbox=toolbox or Toolbox(),
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


async def waiting_turn(conversation: Conversation, events: list[Event]) -> asyncio.Task[TurnFinished]:
    """A turn whose answer waits for the preparation that has begun."""
    await until_prepared(conversation, events)
    turn = asyncio.create_task(conversation.run_turn(words(LONG_ANSWER * 24)))
    while compactions(events)[-1].trigger == "idle":
        await asyncio.sleep(0)
    return turn


async def until_ready(conversation: Conversation) -> None:
    while conversation.context.is_preparing:
        await asyncio.sleep(0.01)


async def test_it_is_applied_once_a_compaction_is_due_and_not_before(tmp_path: Path) -> None:
    """It was applied before the next request: the line said 95 %, and it compacted at 90 to 93."""
    events: list[Event] = []
    # A turn takes less than lies between the two thresholds.
    conversation = opened(tmp_path, events, summary_or(LONG_ANSWER[:300]))
    await until_prepared(conversation, events)
    await until_ready(conversation)
    assert conversation.context.stats().usage_ratio < 0.79
    await until_ready(conversation)
    stats = conversation.context.stats()
    assert stats.next_rung == f"a compaction is ready and is put in force at {stats.compact_at_tokens:,} tokens"
    await conversation.send("Next")
    assert len(compactions(events)) == 1
    while len(compactions(events)) == 1:
        await conversation.send("Next")
    starting, completed = compactions(events)
    assert (starting.trigger, completed.phase, completed.trigger) == ("idle", "completed", "idle")
    assert completed.tokens_before >= 0.8 * conversation.context.stats().budget_tokens
    conversation.context.undo()
    stats = conversation.context.stats()
    assert stats.compact_at_tokens > 0.8 * stats.budget_tokens
    assert f"compaction at {stats.compact_at_tokens:,} tokens" in stats.next_rung, "one number"
    await conversation.close()


async def test_where_a_person_has_set_when_it_is_applied_before_the_next_request(tmp_path: Path) -> None:
    events: list[Event] = []
    conversation = opened(tmp_path, events, summary_or(LONG_ANSWER[:300]), {"context.idle_threshold": 0.75})
    await until_prepared(conversation, events)
    before = conversation.context.effective_history()
    used = conversation.context.stats().used_tokens
    assert 0.75 <= conversation.context.stats().usage_ratio < 0.8
    await until_ready(conversation)
    assert conversation.context.effective_history() == before
    await conversation.send("Next")
    starting, completed = compactions(events)
    assert (starting.phase, starting.trigger) == ("starting", "idle")
    assert (completed.phase, completed.trigger) == ("completed", "idle")
    assert completed.tokens_before == used == conversation.context.history()[-1].tokens_before
    assert conversation.context.history()[-1].trigger == "idle"
    await conversation.close()


async def test_its_card_names_the_request_that_it_comes_with(tmp_path: Path) -> None:
    events: list[Event] = []
    page = Message("assistant", None, (ToolCall("w1", "write_file", '{"path": "page.md", "content": "The first."}'),))
    model = ScriptedModel([page, *[summary_or(LONG_ANSWER[:300])] * 60], facts=SMALL)
    toolbox = Toolbox([WriteFile(Workspace(tmp_path), FilesRead())])
    conversation = opened(tmp_path, events, model=model, settings={"agent.permission": "auto"}, toolbox=toolbox)
    await until_prepared(conversation, events)
    await until_ready(conversation)
    await conversation.send("Write the second page now, with all of this in mind: " + LONG_ANSWER[:600])
    (completed,) = (event for event in compactions(events) if event.phase == "completed")
    assert completed.card[0].startswith("You said: Write the second page now")


async def test_it_is_dropped_when_the_view_has_changed(tmp_path: Path) -> None:
    events: list[Event] = []
    conversation = opened(tmp_path, events, summary_or(LONG_ANSWER[:300]))
    await until_prepared(conversation, events)
    conversation.context.clear()
    await conversation.send("Next")
    assert [event.phase for event in compactions(events)] == ["starting", "skipped"]
    await conversation.close()


async def test_it_is_dropped_when_something_was_pinned_since(tmp_path: Path) -> None:
    events: list[Event] = []
    conversation = opened(tmp_path, events, summary_or(LONG_ANSWER * 2), EARLY)
    await until_prepared(conversation, events)
    await until_ready(conversation)
    before = conversation.context.effective_history()
    conversation.context.pin(1)
    await conversation.send("Next")
    assert [event.phase for event in compactions(events)][:2] == ["starting", "skipped"]
    assert conversation.context.effective_history()[: len(before)] == before
    await conversation.close()


class SlowToSummarize(ScriptedModel):
    """Gives a summary once it is let go, and every other answer at once."""

    def __init__(self, reply: ScriptedReply, facts: ModelFacts) -> None:
        super().__init__([reply] * 60, facts=facts)
        self.is_let_go = asyncio.Event()

    async def ask(self, request: ModelRequest, on_delta: OnDelta) -> Reply:
        if "<transcript>" in str(request.messages[-1]["content"]):
            await self.is_let_go.wait()
        return await super().ask(request, on_delta)


async def test_one_that_saves_little_is_not_put_in_force(tmp_path: Path) -> None:
    events: list[Event] = []
    settings = {"context.idle_threshold": 0.5, "context.target_ratio": 0.05}
    conversation = opened(tmp_path, events, summary_or(LONG_ANSWER[:200]), settings)
    await conversation.send(LONG_ANSWER * 9)
    # Half of the budget is pinned, so that little can be saved of the other messages.
    conversation.context.pin(1)
    await until_prepared(conversation, events)
    await until_ready(conversation)
    before = conversation.context.effective_history()
    await conversation.send("Next")
    assert [event.phase for event in compactions(events)][:2] == ["starting", "skipped"]
    assert conversation.context.effective_history()[: len(before)] == before
    await conversation.close()


async def test_after_one_that_saves_little_none_is_prepared_until_the_context_has_grown(tmp_path: Path) -> None:
    events: list[Event] = []
    settings = {"context.idle_threshold": 0.5, "context.target_ratio": 0.05}
    conversation = opened(tmp_path, events, summary_or("Yes."), settings)
    await conversation.send(LONG_ANSWER * 9)
    conversation.context.pin(1)
    await until_prepared(conversation, events)
    await until_ready(conversation)
    for number in range(3):
        await conversation.send(f"And {number}?")
        await until_ready(conversation)
    assert [event.phase for event in compactions(events)] == ["starting", "skipped"]
    await conversation.send(LONG_ANSWER * 2)
    assert [event.phase for event in compactions(events)] == ["starting", "skipped", "starting"]
    await conversation.close()


async def test_what_is_said_meanwhile_stands_behind_it(tmp_path: Path) -> None:
    events: list[Event] = []
    model = SlowToSummarize(summary_or(LONG_ANSWER), MIDDLE)
    conversation = opened(tmp_path, events, settings={**EARLY, "context.target_ratio": 0.1}, model=model)
    await until_prepared(conversation, events)
    await conversation.send("Typed before it was ready")
    assert conversation.context.is_preparing
    model.is_let_go.set()
    await until_ready(conversation)
    used = conversation.context.stats().used_tokens
    await conversation.send("Typed when it was ready")
    starting, completed = compactions(events)
    assert (starting.phase, completed.phase, completed.trigger) == ("starting", "completed", "idle")
    assert (completed.tokens_before, completed.tokens_after < used) == (used, True)
    turns = conversation.context.stats().turns
    (record,) = conversation.context.history()
    assert record.kept["words"] == (turns, turns), "all that was said, up to what was typed last"
    shown = [message["content"] for message in conversation.context.effective_history()]
    assert "wants short answers" in str(shown[1])
    assert shown[-4:] == [
        "Typed before it was ready", LONG_ANSWER, "Typed when it was ready", LONG_ANSWER,
    ]  # fmt: skip
    await conversation.close()


async def test_what_came_meanwhile_makes_no_second_compaction_due_at_once(tmp_path: Path) -> None:
    """A prepared view that leaves the request above the threshold is not put in force: one compaction is said."""
    events: list[Event] = []
    conversation = opened(tmp_path, events, LONG_ANSWER, settings={"model.summarizer": "none"}, facts=MIDDLE)
    for number in range(40):
        await conversation.send(f"Question {number}: {LONG_ANSWER}")
        if any(one.trigger == "idle" for one in compactions(events)):
            break
    await until_ready(conversation)
    before, stats = len(compactions(events)), conversation.context.stats()
    await conversation.send("word " * int((stats.budget_tokens - stats.used_tokens) * 1.8))
    [ended] = [one for one in compactions(events)[before:] if one.phase == "completed"]
    assert ended.tokens_before > stats.budget_tokens > ended.tokens_after
    assert ended.trigger == "threshold"
    await conversation.close()


async def test_a_compaction_that_is_due_waits_for_it(tmp_path: Path) -> None:
    events: list[Event] = []
    model = SlowToSummarize(summary_or(LONG_ANSWER), MIDDLE)
    conversation = opened(tmp_path, events, settings=EARLY, model=model)
    await until_prepared(conversation, events)
    turn = asyncio.create_task(conversation.run_turn(words(LONG_ANSWER * 24)))
    await asyncio.sleep(0.05)
    assert not turn.done()
    model.is_let_go.set()
    assert (await turn).reason == "answered"
    assert [(event.phase, event.trigger) for event in compactions(events)] == [
        ("starting", "idle"), ("skipped", "idle"), ("starting", "threshold"), ("completed", "threshold"),
    ]  # fmt: skip
    assert conversation.context.effective_history()[-2]["content"] == LONG_ANSWER * 24
    await conversation.close()


async def test_an_interrupt_while_an_answer_waits_for_it_leaves_it_running(tmp_path: Path) -> None:
    events: list[Event] = []
    model = SlowToSummarize(summary_or(LONG_ANSWER), MIDDLE)
    conversation = opened(tmp_path, events, settings=EARLY, model=model)
    turn = await waiting_turn(conversation, events)
    turn.cancel()
    with suppress(asyncio.CancelledError):
        await turn
    assert [(event.phase, event.trigger) for event in compactions(events)][1:] == [
        ("skipped", "idle"), ("starting", "threshold"), ("failed", "threshold"), ("starting", "idle"),
    ]  # fmt: skip
    model.is_let_go.set()
    await until_ready(conversation)
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
    await until_ready(conversation)
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


async def test_one_for_which_an_answer_waited_does_not_name_the_next(tmp_path: Path) -> None:
    events: list[Event] = []
    model = SlowToSummarize(summary_or(LONG_ANSWER), MIDDLE)
    conversation = opened(tmp_path, events, settings=EARLY, model=model)
    turn = await waiting_turn(conversation, events)
    model.is_let_go.set()
    await turn
    assert compactions(events)[-1].trigger == "threshold"
    events.clear()
    await until_prepared(conversation, events)
    await until_ready(conversation)
    await conversation.send("Next")
    assert {event.trigger for event in compactions(events)} == {"idle"}
    await conversation.close()
