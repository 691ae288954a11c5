"""Summarizers whose window is smaller than the text, in real conversations."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from nca.agent.conversation import Conversation
from nca.config.loaded import defaults
from nca.context.summary_input import MAX_CHUNKS
from nca.context.view import Summary
from nca.errors import ProviderError, ProviderFailure
from nca.events import ContextCompaction, Event
from nca.messages import Message
from nca.models.catalog import ModelFacts
from nca.models.client import Model, ModelRequest, OnDelta, Reply
from nca.sessions.store import Store
from nca.testing.provider import Provider
from nca.testing.scripted import ScriptedModel, ScriptedReply, count_request_tokens
from tests.agent.parts import compactor_of, window_of
from tests.context.samples import talk

LARGE = ModelFacts("scripted/large", "scripted", 64_000)
SMALL = ModelFacts("scripted/small", "scripted", 6_150)
TURNS = 30


def answer(number: int) -> str:
    return " ".join(f"So it is with question {number}, and this is detail {detail}." for detail in range(25))


def told(text: str) -> str:
    """A summary that tells of every question that it has seen or been told of."""
    numbers = dict.fromkeys(re.findall(r"Question (\d+)", text))
    return "### 1. Goal and intent\nAll of: " + ", ".join(f"Question {number}" for number in numbers)


def asked_of(requests: list[ModelRequest]) -> list[str]:
    texts = [str(request.messages[-1]["content"]) for request in requests]
    return [text for text in texts if "<transcript>" in text]


def closing(events: list[Event]) -> ContextCompaction:
    return [event for event in events if isinstance(event, ContextCompaction) and event.phase != "starting"][-1]


async def grown(path: Path) -> str:
    """A session of thirty long turns in a large window; its id."""
    store = Store.open(path / "sessions.db")
    replies: list[ScriptedReply] = [answer(number) for number in range(1, TURNS + 1)]
    conversation = Conversation.open(defaults(), store=store, model=ScriptedModel(replies, facts=LARGE), directory=path)
    for number in range(1, TURNS + 1):
        await conversation.send(f"Question {number}?")
    session = conversation.session.info.id
    await conversation.close()
    return session


def reopened(path: Path, session: str, model: Model, events: list[Event], **values: Any) -> Conversation:
    return Conversation.open(
        defaults().with_values(values, "the test"),
        store=Store.open(path / "sessions.db"),
        model=model,
        directory=path,
        session=session,
        listener=events.append,
    )


async def test_a_session_that_goes_on_with_a_small_model_is_summarized_by_it_in_parts(tmp_path: Path) -> None:
    def reply(request: ModelRequest) -> str:
        text = str(request.messages[-1]["content"])
        assert count_request_tokens(request.messages) + (request.max_output_tokens or 0) <= SMALL.window_tokens
        return told(text) if "<transcript>" in text else "Yes."

    events: list[Event] = []
    model = ScriptedModel([reply] * 20, facts=SMALL)
    conversation = reopened(tmp_path, await grown(tmp_path), model, events)
    finished = await conversation.send("And now?")
    assert finished.reason == "answered"
    asked = asked_of(model.requests)
    assert 2 < len(asked) <= MAX_CHUNKS
    completed = closing(events)
    assert (completed.phase, "with code" in completed.message) == ("completed", False)
    (summary,) = [item for item in conversation.context.view.items if isinstance(item, Summary)]
    covered = summary.ranges[-1][1] // 2
    assert covered > 20
    assert all(f"Question {number}" in summary.prose for number in range(1, covered + 1))
    # One after the other: each question shows what was told before, and messages that no other one shows.
    assert [text.count("<existing_summary>") for text in asked] == [0] + [1] * (len(asked) - 1)
    shown = [number for text in asked for number in re.findall(r"\[user\]\n\(\d+\) Question (\d+)", text)]
    assert shown == [str(number) for number in range(1, len(shown) + 1)]
    assert len(shown) >= covered, "what is told of and has room again stays in view"
    await conversation.close()


@pytest.mark.parametrize("at", [0, 1, 2])
async def test_two_failures_on_the_way_keep_what_was_told_and_say_so(tmp_path: Path, at: int) -> None:
    questions = 0

    def reply(request: ModelRequest) -> str | ProviderError:
        nonlocal questions
        text = str(request.messages[-1]["content"])
        if "<transcript>" not in text:
            return "Yes."
        questions += 1
        return told(text) if questions <= at else ProviderError("503: overloaded.")

    events: list[Event] = []
    conversation = reopened(tmp_path, await grown(tmp_path), ScriptedModel([reply] * 20, facts=SMALL), events)
    assert (await conversation.send("And now?")).reason == "answered"
    assert questions == at + 2
    completed = closing(events)
    assert completed.phase == "completed"
    how = "finished" if at else "written"
    assert completed.message.endswith(f" Summary {how} by code: 503: overloaded.")
    (summary,) = [item for item in conversation.context.view.items if isinstance(item, Summary)]
    covered = summary.ranges[-1][1] // 2
    assert covered > 20
    assert summary.made_by == (f"{SMALL.name} + extract" if at else "extract")
    assert ("All of: Question 1" in summary.prose) == bool(at)
    answers = summary.text.partition("### What you answered\n")[2]
    answered = [int(number) for number in re.findall(r"\(\d+\) So it is with question (\d+),", answers)]
    assert len(answered) > 10
    assert answered == list(range(covered + 1 - len(answered), covered + 1)), "the oldest give way first"
    assert all(f"({2 * number - 1}) Question {number}?" in summary.text for number in range(1, covered + 1))
    await conversation.close()


@pytest.mark.parametrize("is_broken", [False, True])
async def test_a_dedicated_summarizer_behind_a_real_endpoint_is_never_overrun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_broken: bool
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")

    def script(request: dict[str, Any]) -> str:
        text = request["messages"][-1]["content"]
        return "I'm sorry, but I can't help with that." if is_broken and "<existing_summary>" in text else told(text)

    events: list[Event] = []
    with Provider(script, window_tokens=8_192) as provider:
        model = ScriptedModel([], facts=LARGE)
        values = {"model.summarizer": "openai/gpt-4", "model.api_base": provider.url}
        conversation = reopened(tmp_path, await grown(tmp_path), model, events, **values)
        outcome = await conversation.context.compact()
        await conversation.close()
    assert outcome.compacted
    assert provider.overflows == []
    assert len(provider.requests) == 3 if is_broken else len(provider.requests) > 2
    assert ("finished by code: the summarizer refused" in closing(events).message) == is_broken
    assert closing(events).cost is not None


class Slow:
    """Tells of the first part at once, and then thinks for longer than anybody waits."""

    def __init__(self) -> None:
        self.facts = SMALL
        self.asked = 0

    async def ask(self, request: ModelRequest, on_delta: OnDelta) -> Reply:
        self.asked += 1
        if self.asked > 1:
            await asyncio.sleep(600)
        return Reply(Message("assistant", told(str(request.messages[-1]["content"]))))

    async def close(self) -> None:
        """Nothing to let go of."""


async def test_all_parts_share_one_deadline() -> None:
    store, model, events = Store.open(None), Slow(), list[Event]()
    loaded = defaults().with_values({"context.summarize.deadline_seconds": 1.0}, "the test")
    session = store.create(directory="/", model=SMALL.name)
    window = window_of(store, session, loaded, SMALL)
    window.append(*talk(80))
    outcome = await compactor_of(window, model, events.append).compact("manual")
    assert outcome.compacted
    assert model.asked == 2
    assert "Summary finished by code: the deadline is over." in outcome.message
    (summary,) = [item for item in window.history.view.items if isinstance(item, Summary)]
    assert "All of: Question 1" in summary.prose


class Tight(ScriptedModel):
    """Says 64,000 and takes 12,000 (requests and the room for their answers), without a number in its refusal."""

    refused = 0

    async def ask(self, request: ModelRequest, on_delta: OnDelta) -> Reply:
        if count_request_tokens(request.messages, request.tools) > 12_000:
            Tight.refused += 1
            failure = ProviderFailure("compact", is_overflow=True)
            raise ProviderError("The input is too long for this model.", failure=failure)
        return await super().ask(request, on_delta)


async def test_a_refusal_without_numbers_teaches_what_the_summarizer_can_take(tmp_path: Path) -> None:
    session = await grown(tmp_path)
    events: list[Event] = []
    Tight.refused = 0
    model = Tight([lambda request: told(str(request.messages[-1]["content"]))] * 10, facts=LARGE)
    conversation = Conversation.open(
        defaults(),
        store=Store.open(tmp_path / "sessions.db"),
        model=model,
        directory=tmp_path,
        session=session,
        listener=events.append,
    )
    finished = await conversation.send("And now?")
    assert finished.reason == "answered"
    assert Tight.refused == 1, "the summarizer is asked for no more than the refused request had"
    (summary,) = conversation.context.summaries()
    assert summary.made_by == LARGE.name
    await conversation.close()
