"""The model has its context compacted where it suits the work, and a compaction waits for the end of a step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from nca.context.history import History
from nca.context.rules.untouchable import is_within_step
from nca.events import ContextCompaction, ToolFinished
from nca.messages import Entry, Message, ToolCall
from nca.models.catalog import ModelFacts
from nca.models.model import ModelRequest
from tests.agent.test_conversation import Room, call

FACTS = ModelFacts(name="scripted/model", provider="scripted", window_tokens=40_000)
LONG = "The parser fails at line 12. " * 300


@pytest.fixture
def room(tmp_path: Path) -> Room:
    return Room(tmp_path)


def compactions(room: Room, phase: str = "completed") -> list[ContextCompaction]:
    return [one for one in room.events if isinstance(one, ContextCompaction) and one.phase == phase]


def in_turn(*replies: Any) -> Callable[[ModelRequest], Any]:
    """These replies in order; a summary where one is asked for."""
    waiting: Iterator[Any] = iter(replies)

    def answer(request: ModelRequest) -> Any:
        is_summary = "<transcript>" in str(request.messages[-1])
        return "### 1. Goal and intent\nTo mend the parser in src." if is_summary else next(waiting)

    return answer


async def test_the_model_compacts_and_says_what_to_keep(room: Room) -> None:
    wish = call("compact", '{"reason": "the step is done", "keep": "the parser"}')
    answer = in_turn(*[LONG] * 6, wish, "Done.")
    conversation = room.open([answer] * 12, facts=FACTS)
    for number in range(6):
        await conversation.send(f"Question {number}.")
    before = conversation.context.effective_history()
    await conversation.send("Go on.")
    (done,) = compactions(room)
    assert (done.trigger, done.tokens_after < done.tokens_before) == ("asked", True)
    assert done.card == (), "the wish is no step, and the rest stands above"
    (called,) = room.of(ToolFinished)
    assert called.summary == "before the next step"
    assert list(map(conversation.context.reason_asked, conversation.context.history())) == ["the step is done"]
    results = [entry.message.text for entry in conversation.context.backwards() if entry.message.role == "tool"]
    assert results == ["[The context is compacted before your next step.]"]
    assert conversation.context.undo()
    assert conversation.context.effective_history()[: len(before)] == before
    await conversation.close()


async def test_a_context_that_is_nearly_empty_is_not_compacted(room: Room) -> None:
    conversation = room.open([in_turn(call("compact", '{"reason": "now"}'), "Done.")] * 2, facts=FACTS)
    await conversation.send("Go on.")
    (result,) = [entry.message for entry in conversation.context.backwards() if entry.message.role == "tool"]
    assert result.is_error
    assert "of the context is used; go on" in result.text
    assert compactions(room) == []
    await conversation.close()


async def test_the_tool_is_offered_where_compaction_is_on_to_models_that_can_use_it(room: Room) -> None:
    def offered(facts: ModelFacts, **settings: Any) -> bool:
        conversation = room.open(["Yes."], facts=facts, settings=settings)
        return "compact" in [tool["function"]["name"] for tool in conversation._window.tools]

    assert offered(FACTS)
    assert not offered(FACTS, **{"context.auto": "off"})
    assert not offered(ModelFacts(name="scripted/small", provider="scripted", window_tokens=8_000, is_small=True))


def test_within_a_step_is_after_the_list_and_before_its_next_change() -> None:
    todo = Message("assistant", None, (ToolCall("t", "todo", '{"doing": "mend", "open": ["test"]}'),))
    told = Message("tool", "[0 of 2 done]", tool_call_id="t", name="todo")
    read = Message("assistant", None, (ToolCall("r", "read_file", '{"path": "a"}'),))
    shown = Message("tool", "text", tool_call_id="r", name="read_file")
    user = Message("user", "Go.")

    def within(*messages: Message) -> bool:
        return is_within_step(History([Entry(seq, message) for seq, message in enumerate(messages, 1)]))

    assert not within(user)
    assert not within(user, todo, told)
    assert within(user, todo, told, read, shown)
    assert not within(user, todo, told, read, shown, todo, told)
    # "Go on" is no end of a step; a list that a whole turn left untouched is.
    left = (todo, told, read, shown, Message("assistant", "The first file is done."))
    assert within(user, *left, user)
    assert within(user, *left, user, read, shown)
    assert not within(user, *left, user, Message("assistant", "It is a parser."), user)
    done = Message("assistant", None, (ToolCall("t", "todo", '{"done": ["mend", "test"]}'),))
    assert not within(user, *left, user, done, told, read, shown)
