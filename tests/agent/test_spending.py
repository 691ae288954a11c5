"""The limit on what a session may cost."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from nca.agent.conversation import Conversation
from nca.agent.spending import ask_beside
from nca.config.loaded import defaults
from nca.errors import CostLimitReached, ProviderError, ProviderFailure
from nca.events import CallWritten, ErrorRaised, Event, Notice, SideRequestFinished, TextDelta, TurnFinished
from nca.messages import Message, ToolCall, Usage
from nca.models.catalog import ModelFacts
from nca.models.client import Delta, ModelRequest, OnDelta, Reply
from nca.models.model import CallSoFar
from nca.sessions.store import Store
from nca.testing.scripted import ScriptedModel
from nca.words import words

FACTS = ModelFacts("scripted/model", "scripted", 32_000, input_cost=1e-6, output_cost=2e-6)

DEAR = ModelFacts("scripted/model", "scripted", 32_000, input_cost=1e-6, output_cost=1.0)


def costing(cost: float | None, text: str = "An answer.") -> Reply:
    return Reply(Message("assistant", text), Usage(1_000, 10, cost=cost))


class Room:
    def __init__(self, path: Path, *replies: Reply, limit: float, facts: ModelFacts = FACTS, **settings: Any) -> None:
        self.events: list[Event] = []
        self.store = Store.open(path / "sessions.db")
        self.path = path
        self.model = ScriptedModel(list(replies), facts=facts)
        loaded = defaults().with_values({"session.max_cost": limit, **settings}, "the test")
        self.conversation = Conversation.open(
            loaded, store=self.store, model=self.model, directory=path, listener=self.events.append
        )

    def notices(self) -> list[str]:
        return [event.message for event in self.events if isinstance(event, Notice)]


async def test_at_the_limit_the_turn_ends_in_one_line_and_nothing_is_lost(tmp_path: Path) -> None:
    room = Room(tmp_path, costing(0.6), costing(0.5), costing(0.1), limit=1.0)
    conversation = room.conversation
    assert (await conversation.send("One")).cost == 0.6
    await conversation.send("Two")
    finished = await conversation.send("Three")
    (error,) = [event for event in room.events if isinstance(event, ErrorRaised)]
    assert (finished.reason, finished.cost, error.exit_code) == ("failed", 0.0, CostLimitReached.exit_code)
    assert "$1.10" in error.message
    assert "session.max_cost is $1.00" in error.message
    assert "`--max-cost 2.2` allows more" in error.advice
    assert len(room.model.requests) == 2
    # What was typed is there, and goes on where the limit is raised.
    assert conversation.context.entries[-1].message.text == "Three"
    conversation.set("session.max_cost", 2)
    assert (await conversation.send("Three")).reason == "answered"
    assert [entry.message.text for entry in conversation.context.entries if entry.message.role == "user"] == [
        "One",
        "Two",
        "Three",
    ]
    await conversation.close()


@pytest.mark.parametrize("price", [0.0, 0.001])
async def test_the_limit_that_is_advised_lets_the_message_continue(tmp_path: Path, price: float) -> None:
    """Also where the session has long cost many times the limit, and where the request alone costs too much."""
    facts = ModelFacts("scripted/model", "scripted", 32_000, input_cost=price, output_cost=price)
    room = Room(tmp_path, costing(60.0), costing(0.0), limit=0.0, facts=facts)
    await room.conversation.send("One")
    room.conversation.set("session.max_cost", 60.001 if price else 0.001)
    assert (await room.conversation.send("Two")).reason == "failed"
    (error,) = [event for event in room.events if isinstance(event, ErrorRaised)]
    advised = re.search(r"`--max-cost (\d+(?:\.\d+)?)`", error.advice)
    assert advised
    room.conversation.set("session.max_cost", float(advised[1]))
    assert (await room.conversation.send("Two")).reason == "answered"
    await room.conversation.close()


async def test_at_four_fifths_it_is_said_once(tmp_path: Path) -> None:
    room = Room(tmp_path, *(costing(cost) for cost in (0.7, 0.1, 0.1)), limit=1.0)
    for text in ("One", "Two", "Three"):
        await room.conversation.send(text)
        expected = [] if text == "One" else ["This session has cost $0.80 of $1.00 (session.max_cost)."]
        assert room.notices() == expected
    await room.conversation.close()


async def test_near_a_limit_that_was_raised_it_is_said_again(tmp_path: Path) -> None:
    room = Room(tmp_path, *(costing(cost) for cost in (0.9, 0.1, 0.7)), limit=1.0)
    await room.conversation.send("One")
    room.conversation.set("session.max_cost", 2)
    await room.conversation.send("Two")
    assert room.notices() == ["This session has cost $0.90 of $1.00 (session.max_cost)."]
    await room.conversation.send("Three")
    assert room.notices()[1:] == ["This session has cost $1.70 of $2.00 (session.max_cost)."]
    await room.conversation.close()


async def test_without_a_limit_nothing_is_said(tmp_path: Path) -> None:
    room = Room(tmp_path, costing(500.0), costing(500.0), limit=0)
    await room.conversation.send("One")
    assert (await room.conversation.send("Two")).reason == "answered"
    assert room.notices() == []
    await room.conversation.close()


async def test_where_no_price_is_known_the_limit_cannot_hold_and_says_so_once(tmp_path: Path) -> None:
    facts = ModelFacts("scripted/model", "scripted", 32_000)
    room = Room(tmp_path, costing(None), costing(None), limit=0.01, facts=facts)
    for text in ("One", "Two"):
        assert (await room.conversation.send(text)).cost is None
    assert room.notices() == ["The price of scripted/model is not known, so session.max_cost does not apply to it."]
    await room.conversation.close()


async def test_a_hook_does_not_ask_the_model_above_the_limit(tmp_path: Path) -> None:
    verdict = Reply(Message("assistant", '{"ok": true}'), Usage(1_000, 10, cost=0.3))
    hooks = [{"event": "Stop", "prompt": "Were the tests run?"}]
    room = Room(tmp_path, costing(0.5), verdict, costing(0.3), verdict, limit=1.0, hooks=hooks)
    for text in ("One", "Two"):
        assert (await room.conversation.send(text)).reason == "answered"
    assert len(room.model.requests) == 3, "the second hook asks nothing"
    assert room.conversation.session.usage.totals().cost == 1.1
    (said,) = (notice for notice in room.notices() if "hook" in notice)
    assert 'asks "Were the tests run?" did not work: the model gave no answer (This session has cost $1.10' in said
    await room.conversation.close()


async def test_the_limit_is_looked_at_before_every_step(tmp_path: Path) -> None:
    call = Message("assistant", None, (ToolCall("c1", "list_directory", "{}"),))
    room = Room(tmp_path, Reply(call, Usage(1_000, 10, cost=2.0), "tool_calls"), limit=1.0)
    finished = await room.conversation.send("Look.")
    assert (finished.reason, len(room.model.requests)) == ("failed", 1)
    # Every call has its result, so the session goes on.
    assert room.conversation.context.entries[-1].message.role == "tool"
    await room.conversation.close()


async def test_summaries_are_paid_for_too(tmp_path: Path) -> None:
    # Answers that are all alike would be versions of one text, and only the newest would have to be told of.
    texts = (" ".join(f"Answer {number} says this and that in part {n}." for n in range(40)) for number in range(16))
    replies = [costing(0.1, text) for text in texts]
    summary = costing(0.25, "The record of the work: this and that was asked, and answered at length each time.")
    room = Room(tmp_path, *replies, summary, limit=0)
    for number in range(16):
        await room.conversation.send(f"Question {number}")
    room.conversation.set("context.target_ratio", 0.05)
    assert (await room.conversation.context.compact()).compacted
    total = room.conversation.session.usage.totals()
    assert total.cost is not None
    assert round(total.cost, 6) == 1.85
    # It is in no report about a view: opened again, the session counts as it did.
    session, used = room.conversation.session.info.id, room.conversation.context.stats().used_tokens
    await room.conversation.close()
    again = Conversation.open(
        defaults(), store=room.store, model=ScriptedModel([], facts=FACTS), directory=tmp_path, session=session
    )
    assert again.context.stats().used_tokens == used
    await again.close()


async def test_at_the_limit_a_summary_is_written_by_code(tmp_path: Path) -> None:
    long = "An answer in many words, about this and that. " * 40
    room = Room(tmp_path, *[costing(0.2, f"{number} {long}") for number in range(6)], limit=1.2)
    for number in range(6):
        await room.conversation.send(f"Question {number}")
    assert (await room.conversation.context.compact()).compacted
    assert len(room.model.requests) == 6
    await room.conversation.close()


async def test_each_turn_says_what_it_cost(tmp_path: Path) -> None:
    room = Room(tmp_path, costing(0.25), costing(0.5), limit=0)
    before = room.conversation.spending.of_turn
    assert before is None
    for text in ("One", "Two"):
        await room.conversation.send(text)
    costs = [event.cost for event in room.events if isinstance(event, TurnFinished)]
    assert costs == [0.25, 0.5]
    assert room.conversation.spending.of_turn == 0.5
    await room.conversation.close()


async def test_a_question_beside_that_fails_is_heard_of(tmp_path: Path) -> None:
    events: list[Event] = []
    model = ScriptedModel([ProviderError("It is out of order.")], facts=FACTS)
    conversation = Conversation.open(
        defaults(), store=Store.open(None), model=model, directory=tmp_path, listener=events.append
    )
    with pytest.raises(ProviderError):
        await conversation.beside.ask("Why?")
    (heard,) = [event for event in events if isinstance(event, SideRequestFinished)]
    assert (heard.purpose, heard.model, heard.failure, heard.usage) == ("question", FACTS.name, "ProviderError", None)


async def test_a_question_without_tools_is_not_asked_again_without_them(tmp_path: Path) -> None:
    refused = ProviderError("No.", failure=ProviderFailure("leave_out", is_overflow=False, parameter="tools"))
    model = ScriptedModel([refused, "Yes."], facts=FACTS)
    conversation = Conversation.open(defaults(), store=Store.open(None), model=model, directory=tmp_path)
    request = ModelRequest([{"role": "user", "content": "Why?"}], [])
    with pytest.raises(ProviderError):
        await ask_beside(conversation.user_input.window, model, request, "summary", lambda _: None)
    assert len(model.requests) == 1


class BreaksOff(ScriptedModel):
    """Breaks off in the middle of its answer."""

    begins = Delta(text="It begins, and ")

    async def ask(self, request: ModelRequest, on_delta: OnDelta) -> Reply:
        self.requests.append(request)
        on_delta(self.begins)
        raise ProviderError("The connection broke off.")


@pytest.mark.parametrize("begins", [Delta(text="It begins, and "), Delta(reasoning="First of all, ")])
async def test_an_answer_that_breaks_off_counts_by_our_own_count(tmp_path: Path, begins: Delta) -> None:
    store = Store.open(tmp_path / "sessions.db")
    model = BreaksOff([], facts=FACTS)
    model.begins = begins
    conversation = Conversation.open(defaults(), store=store, model=model, directory=tmp_path)
    measured = (await conversation.send("Begin.")).reason, conversation.context.stats().used_tokens
    assert measured[0] == "failed"
    total, unreported = conversation.session.usage.totals(), conversation.spending.unreported()
    assert unreported is not None
    assert (unreported.requests, unreported.usage) == (1, total)
    assert 0 < total.prompt_tokens <= measured[1]
    assert total.completion_tokens > 0
    assert total.cost == pytest.approx(total.prompt_tokens * 1e-6 + total.completion_tokens * 2e-6)
    # Nothing is learned of it: opened again, the session counts as it did.
    session = conversation.session.info.id
    await conversation.close()
    again = Conversation.open(defaults(), store=store, model=model, directory=tmp_path, session=session)
    assert again.context.stats().used_tokens == measured[1]
    assert again.spending.unreported() == unreported
    await again.close()


async def test_a_call_that_breaks_off_counts_as_text_does(tmp_path: Path) -> None:
    model = BreaksOff([], facts=FACTS)
    piece = '{"path": "a.py", "content": "a = 1\\nb = 2'
    model.begins = Delta(call=CallSoFar("write_file", piece, piece, len(piece), 1))
    told: list[Event] = []
    store = Store.open(tmp_path / "sessions.db")
    conversation = Conversation.open(defaults(), store=store, model=model, directory=tmp_path, listener=told.append)
    assert (await conversation.send("Begin.")).reason == "failed"
    assert conversation.session.usage.totals().completion_tokens >= 10
    (written,) = [event for event in told if isinstance(event, CallWritten)]
    assert written == CallWritten("write_file", "write a.py", len(piece), 1)
    await conversation.close()


async def test_an_answer_that_is_stopped_counts_and_the_limit_holds(tmp_path: Path) -> None:
    room = Room(tmp_path, costing(0.1, "A long answer. " * 50), costing(0.1), limit=0.5, facts=DEAR)
    turn = asyncio.create_task(room.conversation.run_turn(words("Begin.")))
    while not any(isinstance(event, TextDelta) for event in room.events):
        await asyncio.sleep(0)
    turn.cancel()
    assert (await turn).reason == "interrupted"
    spent = room.conversation.session.usage.totals().cost
    assert spent is not None
    assert spent > 0.5
    assert (await room.conversation.send("Go on.")).reason == "failed"
    assert len(room.model.requests) == 1
    await room.conversation.close()


async def test_a_request_that_alone_costs_more_than_is_left_is_not_sent(tmp_path: Path) -> None:
    facts = ModelFacts("scripted/model", "scripted", 32_000, input_cost=0.001, output_cost=0.002)
    room = Room(tmp_path, costing(0.01), limit=0.01, facts=facts)
    assert (await room.conversation.send("One")).reason == "failed"
    (error,) = [event for event in room.events if isinstance(event, ErrorRaised)]
    assert error.exit_code == CostLimitReached.exit_code
    assert error.message.startswith("This request alone costs about $")
    assert "$0.0100 is left of $0.0100 (session.max_cost). Nothing was sent." in error.message
    assert room.model.requests == []
    await room.conversation.close()


async def test_exactly_at_the_limit_nothing_more_is_sent(tmp_path: Path) -> None:
    """Also to a model that is free: the limit is what the session may cost, whoever answers next."""
    free = ModelFacts("scripted/model", "scripted", 32_000, input_cost=0.0, output_cost=0.0)
    room = Room(tmp_path, costing(0.5), costing(0.5), costing(0.0), limit=1.0, facts=free)
    reasons = [(await room.conversation.send(text)).reason for text in ("One", "Two", "Three")]
    assert reasons == ["answered", "answered", "failed"]
    assert len(room.model.requests) == 2
    await room.conversation.close()


@pytest.mark.parametrize(("cached", "reason"), [((0, 0), "failed"), ((10**6, 0), "answered"), ((0, 10**6), "answered")])
async def test_what_the_provider_has_cached_is_priced_as_that(
    tmp_path: Path, cached: tuple[int, int], reason: str
) -> None:
    """As much as it read or wrote for the last request, and never more than the request has."""
    facts = ModelFacts(
        "scripted/model", "scripted", 32_000, input_cost=0.001, cache_read_cost=0.0001, output_cost=0.001
    )
    first = Reply(Message("assistant", "An answer."), Usage(1_000, 10, *cached, cost=0.5))
    room = Room(tmp_path, first, costing(0.0), limit=0.0, facts=facts)
    await room.conversation.send("One")
    room.conversation.set("session.max_cost", 0.5 + 0.0005 * room.conversation.context.stats().used_tokens)
    assert (await room.conversation.send("Two")).reason == reason
    await room.conversation.close()


async def test_a_request_that_was_refused_counts_nothing(tmp_path: Path) -> None:
    model = ScriptedModel([ProviderError("It is out of order.")], facts=FACTS)
    conversation = Conversation.open(defaults(), store=Store.open(None), model=model, directory=tmp_path)
    assert (await conversation.send("Begin.")).reason == "failed"
    assert (conversation.session.usage.rows(), conversation.spending.unreported()) == ([], None)
    await conversation.close()
