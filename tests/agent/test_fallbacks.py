"""Which model answers while the first one's provider is down."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nca.agent.conversation import Conversation
from nca.agent.fallbacks import COOL_DOWN_SECONDS, Fallbacks
from nca.agent.turn import RECOVERY_SHARES
from nca.config.loaded import defaults
from nca.errors import ConfigError, ModelNotFound, ModelUnavailable, ProviderError, ProviderFailure
from nca.events import ContextCompaction, ErrorRaised, Event, Notice, RequestStarted
from nca.models.catalog import ModelFacts
from nca.models.choose import open_model
from nca.models.failures import PassingFailure
from nca.models.model import Model
from nca.sessions.store import Store
from nca.testing.faults import Fault, error, once
from nca.testing.provider import Provider
from nca.testing.scripted import Answer, ScriptedModel, in_order

DOWN = PassingFailure("first has a passing failure (status 503).")


def scripted(name: str) -> ScriptedModel:
    return ScriptedModel([], facts=ModelFacts(name, "scripted"))


class Lineup:
    """Fallbacks over scripted models, with a clock of its own."""

    def __init__(self, *names: str, unusable: str = "") -> None:
        self.names = names
        self.now = 0.0
        self.used: list[str] = []
        self.said: list[str] = []
        self.unusable = unusable
        self.first = scripted("first")
        self.models = {name: scripted(name) for name in names}
        self.fallbacks = Fallbacks(self.first, self.open, self.use_model, self.say, clock=lambda: self.now)

    async def open(self, name: str) -> Model:
        if name.startswith("keyless"):
            raise ModelUnavailable(f"There is no key for {name}.")
        return self.models[name]

    def use_model(self, facts: ModelFacts) -> None:
        self.used.append(facts.name)
        if facts.name == self.unusable:
            raise ConfigError("no budget")

    def say(self, event: Event) -> None:
        assert isinstance(event, Notice)
        self.said.append(event.message)

    async def down(self, error: ProviderError = DOWN) -> bool:
        return await self.fallbacks.take_over(error, self.names)

    @property
    def active(self) -> str:
        return self.fallbacks.active.facts.name


@pytest.mark.parametrize(
    "error",
    [
        ProviderError("The account has no credit left.", failure=ProviderFailure("fail", False)),
        ModelUnavailable("The key was refused."),
        ProviderError("The context does not fit.", failure=ProviderFailure("compact", is_overflow=True)),
        ProviderError("Bad request.", failure=ProviderFailure("repair_history", False)),
    ],
)
async def test_what_the_person_must_decide_is_never_given_to_another(error: ProviderError) -> None:
    lineup = Lineup("second")
    assert not await lineup.down(error)
    assert (lineup.active, lineup.used) == ("first", [])


@pytest.mark.parametrize("error", [DOWN, ModelNotFound("The model first is not known.")])
async def test_the_next_answers_and_one_line_says_so(error: ProviderError) -> None:
    lineup = Lineup("second", "third")
    assert await lineup.down(error)
    assert lineup.active == "second"
    assert lineup.said == [f"{error.message} second answers instead of first."]


async def test_each_is_tried_once_in_a_turn_and_then_the_error_stands() -> None:
    lineup = Lineup("second", "third")
    assert await lineup.down()
    assert await lineup.down()
    assert lineup.active == "third"
    assert not await lineup.down()
    # The next turn begins with the first again.
    lineup.fallbacks.begin_turn()
    assert lineup.active == "first"


async def test_a_model_is_tried_once_by_whatever_name_the_setting_calls_it() -> None:
    lineup = Lineup("bare-second", "third")
    lineup.models["bare-second"] = scripted("openai/bare-second")
    assert await lineup.down()
    assert lineup.said == [f"{DOWN.message} openai/bare-second answers instead of first."]
    assert await lineup.down()
    assert lineup.active == "third"
    assert not await lineup.down()


async def test_one_that_cannot_be_used_is_passed_over_and_named() -> None:
    lineup = Lineup("keyless", "second", "third", unusable="second")
    assert await lineup.down()
    assert lineup.active == "third"
    assert lineup.used == ["second", "first", "third"]
    assert [text.split(" ")[0] for text in lineup.said[:2]] == ["keyless", "second"]


async def test_the_first_is_asked_again_after_a_while() -> None:
    lineup = Lineup("second")
    await lineup.down()
    lineup.now = COOL_DOWN_SECONDS - 1
    lineup.fallbacks.begin_turn()
    assert lineup.active == "second"
    lineup.now = COOL_DOWN_SECONDS
    lineup.fallbacks.begin_turn()
    assert lineup.active == "first"
    assert lineup.said[-1] == "first is asked again."


async def test_while_it_waits_the_first_is_still_the_last_resort() -> None:
    lineup = Lineup("second")
    await lineup.down()
    lineup.fallbacks.begin_turn()
    assert await lineup.down()
    assert lineup.active == "first"


async def test_closing_closes_all() -> None:
    lineup = Lineup("second")
    await lineup.down()
    await lineup.fallbacks.close()
    assert lineup.first.is_closed
    assert lineup.models["second"].is_closed


class Room:
    """A conversation with a provider on loopback, whose models fail as they are named."""

    def __init__(self, path: Path, provider: Provider, **settings: Any) -> None:
        self.events: list[Event] = []
        given = {"model.api_base": provider.url, "model.max_retries": 1, "session.persist": True, **settings}
        self.loaded = defaults().with_values(given, "the test")
        self.path = path
        self.store = Store.open(path / "sessions.db")

    async def open(self, name: str) -> Conversation:
        model = await open_model(name, self.loaded, self.events.append)
        return Conversation.open(
            self.loaded, store=self.store, model=model, directory=self.path, listener=self.events.append
        )

    def of(self, kind: type[Event]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]


async def test_the_whole_way_past_a_provider_that_is_down(tmp_path: Path) -> None:
    with Provider(in_order("Here I am.")) as provider:
        room = Room(tmp_path, provider, **{"model.fallbacks": ["openai/no-such-model", "openai/test-model"]})
        conversation = await room.open("openai/server-error-for-ever")
        finished = await conversation.send("Hello?")
        await conversation.send("Still there?")
        await conversation.close()
    assert (finished.reason, finished.text) == ("answered", "Here I am.")
    assert [event.model.removeprefix("openai/") for event in room.of(RequestStarted)] == [
        "server-error-for-ever",
        "no-such-model",
        "test-model",
        "test-model",
    ]
    # A person's text was written once, and the chat's own model stays the chat's own.
    assert [e.message.text for e in conversation.context.entries if e.message.role == "user"] == [
        "Hello?",
        "Still there?",
    ]
    assert conversation.model.facts.name == "openai/server-error-for-ever"
    assert sum("answers instead of" in event.message for event in room.of(Notice)) == 2


async def test_a_wrong_key_is_no_outage(tmp_path: Path) -> None:
    with Provider(api_key="right") as provider:
        room = Room(tmp_path, provider, **{"model.fallbacks": ["openai/test-model"]})
        conversation = await room.open("openai/other")
        finished = await conversation.send("Hello?")
        await conversation.close()
    assert finished.reason == "failed"
    assert len(provider.requests) == 1
    assert len(room.of(ErrorRaised)) == 1


async def test_a_smaller_fallback_compacts_before_it_is_asked(tmp_path: Path) -> None:
    talk = [Answer(f"Answer {number}. " + "More of it, in many words. " * 120) for number in range(8)]
    with Provider(in_order(*talk)) as provider:
        room = Room(tmp_path, provider, **{"model.fallbacks": ["openai/gpt-4"], "model.summarizer": "none"})
        conversation = await room.open("openai/gpt-4o")
        for number in range(8):
            await conversation.send(f"Question {number}")
        assert conversation.context.stats().used_tokens > 6_000
        # From here on the first model is unknown to its provider.
        await conversation.use_model(await open_model("openai/no-such-model", room.loaded, room.events.append))
        room.events.clear()
        finished = await conversation.send("And now?")
        window = conversation.context.stats().window_tokens
        await conversation.close()
    assert (finished.reason, window) == ("answered", 8_192)
    asked = [event.model for event in room.of(RequestStarted)]
    assert asked == ["openai/no-such-model", "openai/gpt-4"]
    assert [(event.phase, event.trigger) for event in room.of(ContextCompaction)] == [
        ("starting", "model"),
        ("completed", "model"),
    ]
    last = room.of(RequestStarted)[-1]
    assert last.used_tokens <= last.budget_tokens < 8_192


async def test_one_that_takes_over_after_overflows_may_have_its_own(tmp_path: Path) -> None:
    refuse, down = error(400, "It is too long.", code="context_length_exceeded"), error(500, "An error of its own.")
    faults: dict[str, Fault] = {
        "first": lambda exchange: (refuse if exchange.attempt <= len(RECOVERY_SHARES) else down)(exchange),
        "second": once(refuse),
    }
    talk = [Answer(f"Answer {number}. " + "More of it, in many words. " * 500) for number in range(12)]
    with Provider(in_order(*talk), faults=faults) as provider:
        settings = {"model.summarizer": "none", "model.context_window": 128_000}
        room = Room(tmp_path, provider, **{"model.fallbacks": ["openai/second"], **settings})
        conversation = await room.open("openai/test-model")
        for number in range(12):
            await conversation.send(f"Question {number}")
        await conversation.use_model(await open_model("openai/first", room.loaded, room.events.append))
        room.events.clear()
        finished = await conversation.send("And now?")
        await conversation.close()
    assert finished.reason == "answered"
    asked = [event.model.removeprefix("openai/") for event in room.of(RequestStarted)]
    assert asked == ["first"] * (len(RECOVERY_SHARES) + 1) + ["second"] * 2


async def test_what_each_model_teaches_is_its_own(tmp_path: Path) -> None:
    with Provider(in_order("Here I am. " * 60)) as provider:
        room = Room(tmp_path, provider, **{"model.fallbacks": ["openai/test-model"]})
        conversation = await room.open("openai/no-such-model")
        await conversation.send("Hello? " * 200)
        await conversation.send("Hello? " * 200)
        await conversation.close()
    assert room.store.learned("openai/test-model").samples > 0
    assert room.store.learned("openai/no-such-model").samples == 0


async def test_a_partial_answer_is_never_begun_again(tmp_path: Path) -> None:
    with Provider(in_order("Here I am.")) as provider:
        room = Room(tmp_path, provider, **{"model.fallbacks": ["openai/test-model"]})
        conversation = await room.open("openai/error-in-stream")
        finished = await conversation.send("Hello?")
        await conversation.close()
    assert finished.reason == "failed"
    # The same model is asked to go on, once.
    assert [event.model for event in room.of(RequestStarted)] == ["openai/error-in-stream"] * 2
    assert conversation.context.entries[-1].message.is_interrupted


async def test_the_rest_of_the_turn_stays_with_who_took_over(tmp_path: Path) -> None:
    def looks_first(request: dict[str, Any]) -> Answer | str:
        has_looked = request["messages"][-1]["role"] == "tool"
        return "Done." if has_looked else Answer(tool_calls=[("list_directory", {})])

    with Provider(looks_first) as provider:
        room = Room(tmp_path, provider, **{"model.fallbacks": ["openai/test-model"]})
        conversation = await room.open("openai/server-error-for-ever")
        finished = await conversation.send("Look.")
        await conversation.close()
    assert finished.text == "Done."
    assert [event.model.removeprefix("openai/") for event in room.of(RequestStarted)] == [
        "server-error-for-ever",
        "test-model",
        "test-model",
    ]


@pytest.mark.parametrize("name", ["openai/first", "openai/gpt-5"])
async def test_a_setting_of_the_model_acts_from_the_next_request(tmp_path: Path, name: str) -> None:
    with Provider(in_order("One.", "Three.")) as here, Provider(in_order("Two.")) as there:
        room = Room(tmp_path, here, **{"model.fallbacks": []})
        conversation = await room.open(name)
        assert (await conversation.send("1")).text == "One."
        conversation.set("model.api_base", there.url)
        conversation.set("model.temperature", 0.25)
        conversation.set("model.max_output_tokens", 777)
        assert (await conversation.send("2")).text == "Two."
        conversation.set("model.api_base", here.url)
        conversation.set("model.total_seconds", 60)
        assert (await conversation.send("3")).text == "Three."
        conversation.set("model.max_retries", 0)
        conversation.set("model.api_base", "http://127.0.0.1:9/v1")
        assert (await conversation.send("4")).reason == "failed"
        await conversation.close()
    assert (len(here.requests), len(there.requests)) == (2, 1)
    if name == "openai/first":
        assert (there.requests[0]["temperature"], there.requests[0]["max_tokens"]) == (0.25, 777)


async def test_a_setting_acts_in_whichever_model_answers(tmp_path: Path) -> None:
    with Provider(lambda _: "Here.") as here, Provider(lambda _: "There.") as there:
        room = Room(tmp_path, here, **{"model.fallbacks": ["openai/second"]})
        conversation = await room.open("openai/server-error-for-ever")
        assert (await conversation.send("1")).text == "Here."
        conversation.set("model.api_base", there.url)
        assert (await conversation.send("2")).text == "There."
        await conversation.close()
