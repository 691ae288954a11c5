"""A parameter that an endpoint refuses by name is left out or replaced, once: a server on loopback that refuses."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from nca.config.schema import ModelSettings
from nca.errors import ProviderError, ProviderFailure
from nca.models.catalog import describe
from nca.models.client import ModelRequest, ProviderModel, Reply
from nca.models.parameters import RefusedParameters
from nca.testing.faults import BEGUN, Fault, begun
from nca.testing.http_exchange import Exchange
from nca.testing.provider import Provider
from nca.testing.scripted import in_order

REQUEST = ModelRequest([{"role": "user", "content": "Hello there"}], max_output_tokens=500)
OPENAI = "Unsupported parameter: '{}' is not supported with this model."


def refusing(*names: str, says: str = OPENAI, status: int = 400, code: str | None = None) -> Mapping[str, Fault]:
    """The model `test-model` refuses a request with one of these parameters, the first of them in its error."""

    def run(exchange: Exchange) -> None:
        if found := [name for name in names if name in exchange.request]:
            exchange.error(status, says.format(found[0]), kind="invalid_request_error", code=code)
        else:
            exchange.reply()

    return {"test-model": run, "gpt-5": run}


class Asking:
    """A model of the provider, asked as often as a test likes; the reasons of its retries."""

    def __init__(self, provider: Provider, name: str = "openai/test-model", **settings: Any) -> None:
        self.retries: list[object] = []
        chosen = ModelSettings(api_base=provider.url, **settings)
        self.model = ProviderModel(describe(name), chosen, self.retries.append, api_key="key")

    async def reply(self, **changes: Any) -> Reply:
        return await self.model.ask(replace(REQUEST, **changes), lambda _: None)


def limits(request: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in request.items() if name.startswith("max_")}


@pytest.mark.parametrize(
    "says",
    [
        OPENAI + " Use 'max_completion_tokens' instead.",
        "Unrecognized request argument supplied: {}",
        "Unknown parameter: '{}'.",
        "{}: Extra inputs are not permitted",
    ],
)
async def test_the_older_name_of_the_limit_is_replaced_and_that_is_remembered(says: str) -> None:
    with Provider(in_order("One.", "Two."), faults=refusing("max_tokens", says=says)) as provider:
        asking = Asking(provider)
        for _ in range(2):
            await asking.reply()
        await asking.model.close()
    assert asking.retries == []
    newer = {"max_completion_tokens": 500}
    assert [limits(one) for one in provider.requests] == [{"max_tokens": 500}, newer, newer]


async def test_without_any_limit_if_both_names_are_refused() -> None:
    with Provider(faults=refusing("max_tokens", "max_completion_tokens")) as provider:
        asking = Asking(provider)
        await asking.reply()
        await asking.model.close()
    assert [len(limits(one)) for one in provider.requests] == [1, 1, 0]


async def test_a_usage_that_may_not_be_asked_for_is_missing_and_nothing_else() -> None:
    says = "Unrecognized request argument supplied: {}"
    with Provider(in_order("One."), faults=refusing("stream_options", says=says)) as provider:
        asking = Asking(provider)
        reply = await asking.reply()
        await asking.model.close()
    assert (reply.message.text, reply.usage) == ("One.", None)
    assert ["stream_options" in one for one in provider.requests] == [True, False]


@pytest.mark.parametrize("status", [400, 404, 422, 500])
async def test_several_parameters_one_after_another(status: int) -> None:
    names = ("temperature", "reasoning_effort", "stream_options")
    with Provider(faults=refusing(*names, status=status)) as provider:
        asking = Asking(provider)
        await asking.reply(temperature=0.2, reasoning="low")
        await asking.model.close()
    assert asking.retries == []
    assert [sum(name in one for name in names) for one in provider.requests] == [3, 2, 1, 0]


async def test_through_litellm_too() -> None:
    """litellm sends the limit by its newer name."""
    with Provider(faults=refusing("max_completion_tokens")) as provider:
        asking = Asking(provider, "openai/gpt-5")
        await asking.reply()
        await asking.model.close()
    assert [len(limits(one)) for one in provider.requests] == [1, 0]


async def test_requests_at_the_same_time_each_learn_it() -> None:
    with Provider(faults=refusing("temperature")) as provider:
        asking = Asking(provider)
        await asyncio.gather(*(asking.reply(temperature=0.2) for _ in range(3)))
        await asking.model.close()


@pytest.mark.parametrize("name", ["model", "messages", "tools", "safe_prompt"])
async def test_what_a_request_needs_or_does_not_have_stays_and_is_the_error(name: str) -> None:
    def refuse(exchange: Exchange) -> None:
        exchange.error(400, OPENAI.format(name), kind="invalid_request_error", code="unsupported_parameter")

    with Provider(faults={"test-model": refuse}) as provider:
        asking = Asking(provider)
        with pytest.raises(ProviderError, match=f"rejected the request.*'{name}'"):
            await asking.reply()
        await asking.model.close()
    assert len(provider.requests) == 1


async def test_a_parameter_that_is_gone_and_refused_again_is_the_error() -> None:
    def refuse(exchange: Exchange) -> None:
        exchange.error(400, OPENAI.format("temperature"), kind="invalid_request_error")

    with Provider(faults={"test-model": refuse}, check=None) as provider:
        asking = Asking(provider)
        with pytest.raises(ProviderError, match="rejected the request"):
            await asking.reply(temperature=0.2)
        await asking.model.close()
    assert ["temperature" in one for one in provider.requests] == [True, False]


async def test_what_is_refused_after_an_answer_has_begun_is_the_error() -> None:
    """Asked again it would be shown twice."""

    def refuse(exchange: Exchange) -> None:
        exchange.event({"error": {"message": OPENAI.format("temperature"), "type": "invalid_request_error"}})
        exchange.done()

    shown: list[str] = []
    with Provider(faults={"test-model": begun(refuse)}) as provider:
        model = Asking(provider).model
        with pytest.raises(ProviderError):
            await model.ask(replace(REQUEST, temperature=0.2), lambda delta: shown.append(delta.text))
        await model.close()
    assert (len(provider.requests), "".join(shown).count(BEGUN)) == (1, 1)


async def test_another_endpoint_is_asked_as_if_nothing_had_been_refused() -> None:
    with Provider(faults=refusing("temperature")) as first, Provider() as second:
        asking = Asking(first)
        await asking.reply(temperature=0.2)
        asking.model.take_settings(ModelSettings(api_base=second.url))
        await asking.reply(temperature=0.2)
        await asking.model.close()
    assert second.requests[0]["temperature"] == 0.2


def test_a_limit_that_is_too_large_is_not_refused() -> None:
    refused = RefusedParameters()
    assert not refused.learn(ProviderFailure("lower_max_tokens", is_overflow=False), refused.names)
    assert refused.without({"max_tokens": 5}) == {"max_tokens": 5}
