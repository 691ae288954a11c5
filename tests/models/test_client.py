"""Requests and answers through litellm to a real server on loopback."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from nca.config.schema import ModelSettings
from nca.errors import ModelNotFound, ModelUnavailable, ProviderError
from nca.events import RetryScheduled
from nca.messages import ResponseFacts, Server
from nca.models import litellm_import
from nca.models.catalog import describe
from nca.models.client import Delta, Model, ModelRequest, ProviderModel, Reply
from nca.models.model import server_of
from nca.testing.http_exchange import Exchange
from nca.testing.provider import Provider
from nca.testing.scripted import Answer, in_order
from tests.testing.cases import CASES, RUNS

REQUEST = ModelRequest([{"role": "user", "content": "Hello there"}], max_output_tokens=500)
TOOL = {"type": "function", "function": {"name": "read_file", "parameters": {"type": "object", "properties": {}}}}


class Asked:
    """One request to a model of the provider: the reply or the error, what was seen, and the retries."""

    def __init__(self, provider: Provider, name: str, **settings: Any) -> None:
        self.seen: list[Delta] = []
        self.retries: list[RetryScheduled] = []
        chosen = ModelSettings(**{"api_base": provider.url, **settings})
        self.model = ProviderModel(describe(name), chosen, self.retries.append, api_key="key")

    async def reply(self, request: ModelRequest = REQUEST) -> Reply:
        try:
            return await self.model.ask(request, self.seen.append)
        finally:
            await self.model.close()

    @property
    def text(self) -> str:
        return "".join(delta.text for delta in self.seen)


async def test_an_answer_is_streamed_with_the_providers_own_usage() -> None:
    with Provider(in_order(Answer(text="One two three.", reasoning="Hm."))) as provider:
        asked = Asked(provider, "openai/gpt-4o")
        reply = await asked.reply()
    assert isinstance(asked.model, Model)
    assert asked.text == reply.message.text == "One two three."
    assert len(asked.seen) > 3
    assert reply.message.reasoning == "Hm."
    assert reply.usage is not None
    assert (reply.usage.prompt_tokens, reply.finish_reason) == (9, "stop")
    assert reply.usage.cost == pytest.approx(9 * 2.5e-06 + reply.usage.completion_tokens * 1e-05)


@pytest.mark.parametrize("name", ["openai/test-model", "openai/gpt-5"])
async def test_an_answer_may_take_as_long_as_the_settings_say_when_it_is_asked_for(name: str) -> None:
    with Provider(lambda _: "One two.", token_seconds=0.2) as provider:
        asked = Asked(provider, name, total_seconds=0.1, max_retries=0)
        await asked.model.load()
        asked.model.take_settings(ModelSettings(api_base=provider.url, max_retries=0))
        assert (await asked.reply()).message.text == "One two."


@pytest.mark.parametrize("name", ["openai/test-model", "openai/gpt-5"])
async def test_reasoning_that_the_prompt_opens_is_known_from_the_second_answer_on(name: str) -> None:
    with Provider(lambda _: "Hm.\n</think>\n\nYes.") as provider:
        asked = Asked(provider, name)
        first = await asked.model.ask(REQUEST, lambda _: None)
        second = await asked.reply()
    for reply in (first, second):
        assert (reply.message.text, reply.message.reasoning) == ("Yes.", "Hm.")
    assert asked.text == "Yes."


@pytest.mark.parametrize("name", ["openai/gpt-4o", "openai/gpt-5"])
async def test_what_has_come_of_a_call_is_seen_before_it_is_whole(name: str) -> None:
    pieces = ("", '{"path": "a.py", ', '"content": "one\\', "ntwo", '\\n"}')

    def answer(exchange: Exchange) -> None:
        exchange.begin()
        for piece in pieces:
            begun = {"id": "c1", "type": "function"} if not piece else {}
            function = {"arguments": piece} | ({"name": "write_file"} if begun else {})
            exchange.delta({"tool_calls": [{"index": 0, "function": function} | begun]})
        exchange.finish("tool_calls")
        exchange.done()

    with Provider(faults={name.removeprefix("openai/"): answer}) as provider:
        asked = Asked(provider, name)
        reply = await asked.reply()
    grown = [delta.call for delta in asked.seen if delta.call is not None]
    assert "".join(call.piece for call in grown) == reply.message.tool_calls[0].arguments == "".join(pieces)
    assert [(call.name, call.lines) for call in grown if call.piece] == [
        *(("write_file", lines) for lines in (0, 0, 1, 2))
    ]


@pytest.mark.parametrize("name", ["openai/gpt-4o", "openai/gpt-5"])
@pytest.mark.parametrize("said", [{"id": "resp-9", "model": "served-2099"}, {"id": "", "model": ""}])
async def test_what_the_provider_said_about_its_answer_and_nothing_else(name: str, said: dict[str, str]) -> None:
    """With nca's own client and through litellm, which invents an id and names the model that was asked for."""

    def answer(exchange: Exchange) -> None:
        exchange.begin(role=False)
        for delta, reason in (({"content": "Hi."}, None), ({}, "stop")):
            exchange.event(said | {"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})
        exchange.done()

    with Provider(faults={name.removeprefix("openai/"): answer}) as provider:
        asked = Asked(provider, name)
        reply = await asked.reply()
    assert reply.response == ResponseFacts(said["model"], said["id"], ("stop",))
    assert server_of(asked.model) == Server("127.0.0.1", provider.port)


@pytest.mark.parametrize(
    ("name", "api_base", "server"),
    [
        ("openai/m", "https://Model.example/v1", Server("model.example", 443)),
        ("openai/m", "http://user:secret@[::1]/v1", Server("::1", 80)),
        ("openai/m", "http://model.example:99999/v1", None),
        ("openai/gpt-5", "", Server("api.openai.com", 443)),
        ("groq/m", "", Server("api.groq.com", 443)),
        ("gemini/m", "", None),
        ("anthropic/m", "https://model.example:8443", Server("model.example", 8443)),
    ],
)
async def test_the_server_of_a_model(
    name: str, api_base: str, server: Server | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    retries: list[RetryScheduled] = []
    model = ProviderModel(describe(name), ModelSettings(api_base=api_base), retries.append, api_key="key")
    assert server_of(model) == server


async def test_the_request_arrives_as_it_was_made() -> None:
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Read a."},
        {
            "role": "assistant",
            "content": None,
            "reasoning_content": "hm",
            "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "read_file", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "text"},
    ]
    request = ModelRequest(json.loads(json.dumps(messages)), tools=[TOOL], max_output_tokens=77, temperature=0.5)
    with Provider() as provider:
        await Asked(provider, "openai/test-model").reply(request)
    (received,) = provider.requests
    assert request.messages == messages
    # What a model thought is not sent back where nobody wants it.
    assert [sorted(message) for message in received["messages"]] == [
        ["content", "role"],
        ["content", "role"],
        ["role", "tool_calls"],
        ["content", "role", "tool_call_id"],
    ]
    assert received["tools"] == [TOOL]
    assert (received["max_tokens"], received["temperature"], received["model"]) == (77, 0.5, "test-model")


async def test_tool_calls_come_back() -> None:
    script = in_order(Answer(tool_calls=[("read_file", {"path": "a"}), ("read_file", {"path": "b"})]))
    with Provider(script) as provider:
        reply = await Asked(provider, "openai/test-model").reply()
    assert [json.loads(call.arguments) for call in reply.message.tool_calls] == [{"path": "a"}, {"path": "b"}]
    assert reply.finish_reason == "tool_calls"


@pytest.mark.parametrize("name", ["rate-limited", "nothing-once", "only-thoughts", "error-as-text", "not-streamed"])
async def test_a_passing_fault_ends_with_the_answer_given_once(name: str) -> None:
    """All cases are tried with `nca run` in tests/testing."""
    with Provider(in_order("A whole answer."), faults=RUNS) as provider:
        asked = Asked(provider, f"openai/{name}")
        reply = await asked.reply()
    assert asked.text == reply.message.text == "A whole answer."
    assert len(provider.requests) == CASES[name].requests == len(asked.retries) + 1


@pytest.mark.parametrize("name", ["wrong-key", "page", "redirects", "unprocessable"])
async def test_a_lasting_fault_is_an_error_with_one_line(name: str) -> None:
    fault = CASES[name]
    with Provider(in_order("A whole answer."), faults=RUNS) as provider:
        asked = Asked(provider, f"openai/{name}")
        with pytest.raises(ProviderError) as raised:
            await asked.reply()
    assert fault.says.lower() in str(raised.value).lower()
    assert "\n" not in str(raised.value)
    assert asked.text.strip() == fault.shown
    assert len(provider.requests) == fault.requests


async def test_an_answer_that_has_begun_is_not_begun_again() -> None:
    """Whoever asked may have it go on; see tests/agent."""
    with Provider(in_order("A whole answer."), faults=RUNS) as provider:
        asked = Asked(provider, "openai/cut-in-the-middle")
        with pytest.raises(ProviderError, match=r"was lost: [^\n]+$"):
            await asked.reply()
    assert asked.text.strip() == CASES["cut-in-the-middle"].shown
    assert len(provider.requests) == 1


async def test_a_usage_that_litellm_makes_up_is_not_believed() -> None:
    with Provider() as provider:
        reply = await Asked(provider, "openai/no-usage").reply()
    assert reply.usage is None


async def test_an_overflow_brings_its_numbers() -> None:
    with Provider(window_tokens=100) as provider, pytest.raises(ProviderError) as raised:
        await Asked(provider, "openai/test-model").reply()
    failure = raised.value.failure
    assert failure.is_overflow
    assert (failure.action, failure.asked_tokens, failure.limit_tokens) == ("lower_max_tokens_then_compact", 509, 100)
    assert len(provider.requests) == 1


async def test_a_wrong_key_names_its_variable() -> None:
    with Provider(api_key="right") as provider, pytest.raises(ModelUnavailable) as raised:
        await Asked(provider, "groq/some-model").reply()
    assert "GROQ_API_KEY" in str(raised.value)


@pytest.mark.parametrize(
    ("name", "advice"), [("antropic/m", "Did you mean anthropic/m?"), ("zzzz/m", "A name is PROVIDER/MODEL")]
)
async def test_a_misspelt_provider_gets_the_name_that_may_be_meant(name: str, advice: str) -> None:
    with Provider() as provider, pytest.raises(ModelNotFound) as raised:
        await Asked(provider, name, api_base="").reply()
    assert str(raised.value).startswith(f"nca knows no provider {name[:-2]!r}, so it cannot ask {name}.")
    assert raised.value.advice.startswith(advice)


async def test_an_unreachable_endpoint_names_its_address() -> None:
    with Provider() as provider:
        url = provider.url
    asked = Asked(provider, "openai/test-model", api_base=url, max_retries=1)
    with pytest.raises(ProviderError) as raised:
        await asked.reply()
    assert url in str(raised.value)
    assert len(asked.retries) == 1


@pytest.mark.parametrize("name", ["groq/m", "mistral/m", "deepseek/m", "openrouter/a/m", "xai/m", "hosted_vllm/m", "m"])
async def test_whoever_speaks_openais_protocol_is_read_directly(name: str) -> None:
    with Provider(in_order("Hello.")) as provider:
        reply = await Asked(provider, name).reply()
    assert reply.message.text == "Hello."
    assert provider.requests[0]["model"] == name.split("/", 1)[-1]


@pytest.mark.parametrize("name", ["hosted_vllm/m", "litellm_proxy/m"])
async def test_a_server_without_a_known_address_is_asked_nowhere(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    variable = f"{name.split('/')[0].upper()}_API_BASE"
    monkeypatch.delenv(variable, raising=False)
    with Provider(in_order("Hello.")) as provider:
        # Where litellm would send it.
        monkeypatch.setenv("OPENAI_BASE_URL", provider.url)
        with pytest.raises(ModelUnavailable, match="needs the address of its server") as raised:
            await Asked(provider, name, api_base="").reply()
        assert variable in raised.value.advice
        assert provider.requests == []


@pytest.mark.parametrize(
    ("fault", "says"),
    [("plain", ""), ("wrong-key", "OPENAI_API_KEY"), ("unprocessable", "rejected the request"), ("nothing", "empty")],
)
async def test_litellm_translates_for_openais_models_that_reason(fault: str, says: str) -> None:
    """Also at an endpoint of one's own, which may be a way to OpenAI."""
    request = ModelRequest(REQUEST.messages, max_output_tokens=500, temperature=0.3)
    with Provider(in_order("Hello."), faults={"gpt-5": RUNS[fault]} if says else {}) as provider:
        asked = Asked(provider, "openai/gpt-5", max_retries=0)
        if says:
            with pytest.raises(ProviderError, match=says):
                await asked.reply(request)
        else:
            assert (await asked.reply(request)).message.text == asked.text == "Hello."
    (received,) = provider.requests
    assert received["max_completion_tokens"] == 500
    assert not received.keys() & {"max_tokens", "temperature"}


@pytest.fixture
async def shared_clients() -> AsyncIterator[None]:
    """litellm's own clients are there for a whole process; what they hold open must not outlive a test's loop."""
    yield
    await litellm_import.load().close_litellm_async_clients()


@pytest.mark.usefixtures("shared_clients")
@pytest.mark.parametrize(
    ("name", "outcome"),
    [
        ("plain", "answer"),
        ("no-usage", "answer"),
        ("rate-limited", "answer"),
        ("wrong-key", "key"),
        ("nothing", "empty"),
    ],
)
async def test_other_providers_are_read_through_litellm(name: str, outcome: str) -> None:
    with Provider(in_order("Hello.")) as provider:
        asked = Asked(provider, f"sambanova/{name}")
        if outcome == "answer":
            reply = await asked.reply()
            assert reply.message.text == asked.text == "Hello."
            assert (reply.usage is None) == (name == "no-usage")
        else:
            with pytest.raises(ProviderError, match=outcome):
                await asked.reply()


@pytest.mark.parametrize("name", ["stalls-at-first", "stalls-in-the-middle"])
async def test_cancelling_ends_the_call_and_the_model_stays_usable(name: str) -> None:
    with Provider(in_order("Hello.")) as provider:
        asked = Asked(provider, f"openai/{name}")
        task = asyncio.create_task(asked.model.ask(REQUEST, asked.seen.append))
        while not provider.requests or (name == "stalls-in-the-middle" and "of" not in asked.text):
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asked.model.close()
        other = await Asked(provider, "openai/plain").reply()
    assert other.message.text == "Hello."


async def test_what_the_listener_raises_is_not_the_providers() -> None:
    def refuse(delta: Delta) -> None:
        raise KeyError("listener")

    with Provider() as provider:
        asked = Asked(provider, "openai/test-model")
        with pytest.raises(KeyError, match="listener"):
            await asked.model.ask(REQUEST, refuse)
        await asked.model.close()
    assert len(provider.requests) == 1


async def test_requests_may_overlap() -> None:
    with Provider(lambda request: str(request["messages"][0]["content"]) * 20, token_seconds=0.001) as provider:
        model = Asked(provider, "openai/test-model").model
        requests = [ModelRequest([{"role": "user", "content": f"Say {n}. "}]) for n in range(4)]
        replies = await asyncio.gather(*(model.ask(request, lambda delta: None) for request in requests))
        await model.close()
    assert [reply.message.text for reply in replies] == [f"Say {n}. " * 20 for n in range(4)]


async def test_cancelling_ends_a_wait_between_tries() -> None:
    with Provider() as provider:
        provider.closing.set()
        asked = Asked(provider, "openai/nothing")
        task = asyncio.create_task(asked.reply())
        while not asked.retries:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_a_proxy_of_the_environment_is_not_asked_for_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    with Provider(in_order("Here.")) as provider:
        assert (await Asked(provider, "openai/test-model").reply()).message.text == "Here."
