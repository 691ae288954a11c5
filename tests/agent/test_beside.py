"""Questions beside the conversation while a turn is under way."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from nca.agent.beside import NOT_ENDED
from nca.agent.conversation import Conversation
from nca.context.validate import validate_request
from nca.errors import UsageError
from nca.events import Event, Notice, TextDelta, ToolStarted
from nca.models.model import ModelRequest
from tests.agent.test_conversation import Room, call, sent_by

SHELL = {"agent.permission": "auto"}


@pytest.fixture
def room(tmp_path: Path) -> Room:
    return Room(tmp_path)


def asking_at(kind: type[Event], conversation: Conversation, question: str) -> list[asyncio.Task[str]]:
    """Ask when an event of this kind comes; the task that asks, and `logged` as an answer once the log has it."""
    asked: list[asyncio.Task[str]] = []

    def hear(event: Event) -> None:
        if isinstance(event, kind) and not asked:
            asked.append(asyncio.create_task(conversation.beside.ask_meanwhile(question, lambda: None)))

    conversation.subscribe(hear)
    return asked


async def test_a_question_between_a_call_and_its_result_comes_after_the_turn(room: Room) -> None:
    def second(request: ModelRequest) -> str:
        asked = str(request.messages[-1]["content"])
        return "It is blue." if "Which colour?" in asked else "Slept."

    conversation = room.open([call("shell", '{"command": "sleep 0.5"}'), second, second, "Two."], settings=SHELL)
    asked = asking_at(ToolStarted, conversation, "Which colour?")
    finished = await conversation.send("Sleep")
    assert (finished.text, await asked[0]) == ("Slept.", "It is blue.")
    sides = [one for one in conversation.model.requests if "Which colour?" in str(one.messages[-1])]  # type: ignore[attr-defined]
    assert [one.messages[-2]["content"] for one in sides] == [NOT_ENDED]
    assert validate_request(sides[0].messages, "openai", tools=sides[0].tools) == []
    said = [(entry.message.role, entry.message.text) for entry in conversation.context.entries]
    assert [role for role, _ in said] == ["user", "assistant", "tool", "assistant", "user", "assistant"]
    assert said[-2:] == [("user", "Which colour?"), ("assistant", "It is blue.")]
    assert "blue" not in "".join(event.text for event in room.of(TextDelta))
    await conversation.send("And now?")
    assert sent_by(conversation)[-2:] == ["Slept.", "And now?"]


async def test_the_log_says_when_it_has_the_question(room: Room) -> None:
    conversation = room.open(["One.", "It is blue."])
    await conversation.send("First")
    logged: list[bool] = []
    assert await conversation.beside.ask_meanwhile("Which colour?", lambda: logged.append(True)) == "It is blue."
    assert not logged
    assert len(conversation.context.entries) == 2
    conversation.beside.settle()
    assert logged
    assert [entry.message.text for entry in conversation.context.entries][2:] == ["Which colour?", "It is blue."]
    await conversation.close()  # in the task that asked


async def test_a_question_that_is_not_asked_leaves_nothing(room: Room) -> None:
    conversation = room.open(["One."])
    await conversation.send("First")
    with pytest.raises(UsageError, match="no question"):
        await conversation.beside.ask_meanwhile(" ", lambda: None)
    conversation.beside.settle()
    assert len(conversation.context.entries) == 2


async def test_closing_stops_the_question_and_keeps_it(room: Room) -> None:
    conversation = room.open(["One.", "It is " + "very " * 50 + "blue."])
    await conversation.send("First")
    asking = asyncio.create_task(conversation.beside.ask_meanwhile("Which colour?", lambda: None))
    for _ in range(5):
        await asyncio.sleep(0)
    session = conversation.session.info.id
    await conversation.close()
    assert asking.cancelled()
    assert room.of(Notice)[-1].message == "Not answered: /btw Which colour?"
    said = room.open([], session=session).context.entries
    assert said[2].message.text == "Which colour?"
    assert said[3].message.is_interrupted
    assert said[3].message.text.startswith("It is very")
