"""Commands in the background that end with the chat: the person hears of it, and the model with the next message."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nca.agent.conversation import Conversation
from nca.config.loaded import defaults
from nca.events import Event, Notice
from nca.messages import Message, ToolCall
from nca.sessions.store import Store
from nca.testing.scripted import ScriptedModel
from nca.wire import content_text

STARTS = ToolCall("c1", "shell", json.dumps({"command": "sleep 300", "background": True}))


async def test_what_ends_with_the_chat_is_named_and_told_once(tmp_path: Path) -> None:
    events: list[Event] = []
    store = Store.open(tmp_path / "sessions.db")
    settings = defaults().with_values({"agent.permission": "auto"}, "the test")

    def opened(*replies: Message | str, session: str | None = None) -> Conversation:
        events.clear()
        model = ScriptedModel(list(replies))
        return Conversation.open(
            settings, store=store, model=model, directory=tmp_path, session=session, listener=events.append
        )

    def notices() -> list[str]:
        return [event.message for event in events if isinstance(event, Notice) and "job" in event.message.lower()]

    first = opened(Message("assistant", None, (STARTS,)), "It runs.")
    session = first.session.info.id
    await first.send("Start it.")
    await first.close()
    ended = [event.message for event in events if isinstance(event, Notice)]
    assert "Stopped in the background, as the chat ends: $ sleep 300" in ended

    again = opened("I see.", session=session)
    assert notices() == ["Job 1 of this session has ended, at the latest when the session was closed."]
    await again.send("Go on.")
    asked = next(e.message for e in reversed(again.context.entries) if e.message.role == "user")
    assert "[job 1 has ended, at the latest when the session was closed]" in content_text(asked.content)
    await again.close()

    third = opened(session=session)
    assert notices() == []
    await third.close()


@pytest.mark.parametrize("is_reopened", [True, False])
async def test_a_branch_without_the_job_hears_nothing_of_its_end(tmp_path: Path, is_reopened: bool) -> None:
    settings = defaults().with_values({"agent.permission": "auto"}, "the test")
    store = Store.open(tmp_path / "sessions.db")
    model = ScriptedModel([Message("assistant", None, (STARTS,)), "It runs.", "I see."])
    again = Conversation.open(settings, store=store, model=model, directory=tmp_path)
    await again.send("Start it.")
    if is_reopened:
        await again.close()
        session = again.session.info.id
        again = Conversation.open(settings, store=store, model=model, directory=tmp_path, session=session)
    point = again.rewinds.point(1)
    await again.rewinds.go_back(point, await again.rewinds.plan(point), "chat")
    for job in again.jobs.all:
        await job.stop()
    await again.send("Something else.")
    assert "job 1" not in str(again.context.next_request().messages)
    await again.close()


async def test_an_end_is_told_with_the_first_message_that_is_not_refused(tmp_path: Path) -> None:
    starts = ToolCall(
        "c1", "shell", json.dumps({"command": "until [ -e go ]; do sleep 0.02; done", "background": True})
    )
    conversation = Conversation.open(
        defaults().with_values({"agent.permission": "auto"}, "the test"),
        store=Store.open(tmp_path / "sessions.db"),
        model=ScriptedModel([Message("assistant", None, (starts,)), "It runs.", "I see.", "Yes?"]),
        directory=tmp_path,
    )
    await conversation.send("Start it.")
    (job,) = conversation.jobs.all
    (tmp_path / "go").touch()
    await job.wait(60)
    assert (await conversation.send("Look.", attachments=[tmp_path / "missing.txt"])).reason == "failed"
    told = []
    for text in ("Go on.", "And now?"):
        await conversation.send(text)
        asked = next(e.message for e in reversed(conversation.context.entries) if e.message.role == "user")
        told.append("[job 1 has ended" in content_text(asked.content))
    assert told == [True, False]
    await conversation.close()
