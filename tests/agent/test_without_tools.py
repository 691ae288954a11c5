"""A model that refuses tools answers without them: real replies from a provider on loopback."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nca.agent.spending import WITHOUT_TOOLS
from nca.events import ErrorRaised, Notice, RequestStarted
from nca.models.choose import open_model
from nca.testing.faults import Fault
from nca.testing.http_exchange import Exchange
from nca.testing.provider import Provider
from nca.testing.scripted import Answer, in_order
from tests.agent.test_fallbacks import Room

OLLAMA = "registry.ollama.ai/library/gemma:2b does not support tools"
VLLM = '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'
OPENROUTER = "No endpoints found that support tool use."


def refusing(says: str = OLLAMA, status: int = 400) -> Fault:
    def run(exchange: Exchange) -> None:
        if exchange.request.get("tools"):
            exchange.error(status, says, kind="api_error")
        else:
            exchange.reply()

    return run


def offered(request: dict[str, Any]) -> bool:
    return bool(request.get("tools"))


@pytest.mark.parametrize(("says", "status"), [(OLLAMA, 400), (VLLM, 400), (OPENROUTER, 404)])
async def test_the_turn_goes_on_without_tools_and_says_so_once(tmp_path: Path, says: str, status: int) -> None:
    with Provider(in_order("", "One.", "Two."), faults={"plain": refusing(says, status)}) as provider:
        room = Room(tmp_path, provider, **{"model.fallbacks": ["openai/test-model"]})
        conversation = await room.open("openai/plain")
        first, second = await conversation.send("1"), await conversation.send("2")
        await conversation.close()
    assert (first.text, second.text) == ("One.", "Two.")
    assert [offered(one) for one in provider.requests] == [True, False, False]
    told = [event.message for event in room.of(Notice)]
    assert told.count(WITHOUT_TOOLS.format(model="openai/plain", said=says.removesuffix("."))) == 1
    assert [event.model for event in room.of(RequestStarted)] == ["openai/plain"] * 3


async def test_what_the_model_is_told_fits_what_it_has(tmp_path: Path) -> None:
    with Provider(in_order("", "One."), faults={"plain": refusing()}) as provider:
        conversation = await (room := Room(tmp_path, provider)).open("openai/plain")
        await conversation.send("1")
        await conversation.close()
    before, after = (one["messages"][0]["content"] for one in provider.requests)
    assert len(after) < len(before)
    assert room.of(ErrorRaised) == []


async def test_it_holds_when_the_person_comes_back_to_the_model_and_not_for_another(tmp_path: Path) -> None:
    with Provider(in_order("", "One.", "Two.", "Three."), faults={"plain": refusing()}) as provider:
        room = Room(tmp_path, provider)
        conversation = await room.open("openai/plain")
        await conversation.send("1")
        for number, name in ((2, "openai/test-model"), (3, "openai/plain")):
            await conversation.use_model(await open_model(name, room.loaded, room.events.append))
            await conversation.send(str(number))
        await conversation.close()
    assert [(one["model"], offered(one)) for one in provider.requests] == [
        ("plain", True),
        ("plain", False),
        ("test-model", True),
        ("plain", False),
    ]


async def test_calls_that_another_model_has_made_stay_in_the_conversation(tmp_path: Path) -> None:
    script = in_order(Answer(tool_calls=[("list_directory", {})]), "Looked.", "", "Plain.")
    with Provider(script, faults={"plain": refusing()}) as provider:
        room = Room(tmp_path, provider)
        conversation = await room.open("openai/test-model")
        await conversation.send("Look.")
        await conversation.use_model(await open_model("openai/plain", room.loaded, room.events.append))
        finished = await conversation.send("And now?")
        await conversation.close()
    assert finished.text == "Plain."
    assert [row["role"] for row in provider.requests[-1]["messages"]][-4:] == ["assistant", "tool", "assistant", "user"]


async def test_a_question_beside_the_conversation_does_without_them_too(tmp_path: Path) -> None:
    with Provider(in_order("", "It is blue.", "One.", "It is red."), faults={"plain": refusing()}) as provider:
        room = Room(tmp_path, provider)
        conversation = await room.open("openai/plain")
        assert await conversation.beside.ask_meanwhile("Which colour?", lambda: None) == "It is blue."
        assert (await conversation.send("1")).text == "One."
        assert await conversation.beside.ask("Which one?") == "It is red."
        await conversation.close()
    assert [offered(one) for one in provider.requests] == [True, False, False, False], "each learns from the other"
    assert sum("takes no tools" in event.message for event in room.of(Notice)) == 1


async def test_a_refusal_without_tools_in_the_request_is_the_error(tmp_path: Path) -> None:
    def refuse(exchange: Exchange) -> None:
        exchange.error(400, OLLAMA, kind="api_error")

    with Provider(faults={"plain": refuse}) as provider:
        room = Room(tmp_path, provider)
        conversation = await room.open("openai/plain")
        finished = await conversation.send("1")
        await conversation.close()
    assert (finished.reason, len(provider.requests)) == ("failed", 2)
    (error,) = room.of(ErrorRaised)
    assert OLLAMA in error.message
