"""A model of a provider: nca calls its endpoint itself, or through litellm."""

from __future__ import annotations

import copy
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace as replace_facts

from nca.config.schema import ModelSettings
from nca.errors import ModelUnavailable, ProviderError
from nca.models import reasoning
from nca.models.assemble import Assembler
from nca.models.catalog import ModelFacts, cost_of
from nca.models.chat_endpoint import ChatEndpoint, ChatStream
from nca.models.claude import context_management, mark, wants_marks
from nca.models.explain import cannot_open, check_proxy, explain, told_apart
from nca.models.failures import OnRetry, with_retries
from nca.models.litellm_import import warm
from nca.models.lookup import without_provider
from nca.models.model import Delta, Model, ModelRequest, OnDelta, Reply, server_of
from nca.models.parameters import RefusedParameters
from nca.models.providers import (
    PROVIDERS,
    SPEAKS_OPENAI,
    address_of,
    address_variable,
    endpoint_of,
    key_of,
    known_secrets,
    provider_of,
)
from nca.models.reasoning import has_all_blocks, is_thinking
from nca.models.stream import Deadlines, LitellmStream, limits_of
from nca.redact import Redactor

if TYPE_CHECKING:
    from nca.models.http_clients import AnthropicClient, OpenAIClient

_REASONS_AT_OPENAI = re.compile(r"(?:^|/)(?:gpt-[5-9]|o\d)")
"""OpenAI's models with arguments of their own (max_completion_tokens, no temperature), which litellm knows."""


@dataclass(frozen=True, slots=True)
class Route:
    """How to call a model. `is_direct`: nca calls the endpoint itself; else litellm does, with `model` as the name.

    litellm's translation loses errors, finish reasons and tool calls, and its import takes seconds. So nca calls every
    endpoint with OpenAI's protocol itself, but OpenAI's own: there litellm chooses between two APIs, and knows what
    each model refuses. api_base and api_key are "" if litellm knows them.
    """

    model: str
    provider: str
    api_base: str = ""
    api_key: str = field(default="", repr=False)
    is_direct: bool = False
    asks_for_usage: bool = True
    keeps_thoughts: bool = False


def direct_route(name: str, *, api_base: str, api_key: str, env: Mapping[str, str]) -> Route | None:
    """The route of a model that nca calls itself; None if litellm is needed."""
    provider = provider_of(name)
    facts = PROVIDERS.get(provider)
    base = api_base or (facts.openai_base if facts else "")
    bare = name.split("/", 1)[-1]
    if provider not in SPEAKS_OPENAI or not base or (provider == "openai" and _REASONS_AT_OPENAI.search(bare)):
        return None
    return Route(
        model=bare,
        provider=provider,
        api_base=base,
        api_key=api_key or key_of(provider, env)[1],
        is_direct=True,
        asks_for_usage=not (facts and facts.reports_usage and not api_base),
        keeps_thoughts=bool(facts and facts.keeps_thoughts),
    )


def litellm_route(name: str, *, api_base: str, api_key: str, env: Mapping[str, str], litellm: Any) -> Route:
    """The route of any other model. litellm decides whose a name without a provider is (gpt-4.1 is OpenAI's).

    Raises ModelNotFound for a provider that litellm does not know, if there is no endpoint; ModelUnavailable if nothing
    says where a provider's server is.
    """
    provider = provider_of(name)
    bare = name.split("/", 1)[1] if provider else name
    if not provider:
        try:
            bare, provider, _, _ = litellm.get_llm_provider(model=name, api_base=api_base or None)
        except litellm.BadRequestError:
            # An unknown name at the user's own endpoint, which is taken to be OpenAI-compatible.
            if not api_base:
                raise without_provider(name, (one.value for one in litellm.provider_list)) from None
            provider = "openai"
        if found := direct_route(f"{provider}/{bare}", api_base=api_base, api_key=api_key, env=env):
            return found
    if (variable := address_variable(provider)) and not address_of(provider, api_base, env):
        # litellm would send the conversation to OpenAI.
        said = f"{name} needs the address of its server. Nothing was sent"
        raise ModelUnavailable(said, advice=f"Set model.api_base, or {variable}.")
    if provider == "ollama":
        # litellm's "ollama" writes prompts itself; "ollama_chat" leaves templates and tools to the server.
        return Route(f"ollama_chat/{bare}", provider, api_base, api_key)
    if provider == "openai":
        return Route(f"openai/{bare}", provider, api_base, api_key or key_of(provider, env)[1])
    return Route(name, provider, api_base, api_key)


_OPENAI = "https://api.openai.com/v1"
"""The endpoint of OpenAI's client, unless OPENAI_BASE_URL names another."""

__all__ = ["Delta", "Model", "ModelRequest", "OnDelta", "ProviderModel", "Reply", "warm"]


@dataclass(eq=False, repr=False)
class ProviderModel:
    """A model reached through litellm.

    facts       window, prices and abilities; facts.name is shown in errors
    settings    timeouts, retries and temperature
    on_retry    called before each wait
    wire_name   the name for litellm if it differs from facts.name (the embedded model: openai/<alias>)
    api_base    the endpoint; "" for the provider's own
    api_key     "" lets litellm read the environment
    env         where keys and addresses are
    reports_reading  the endpoint is a llama.cpp server, which is asked to say how much of a request it has read
    """

    facts: ModelFacts
    settings: ModelSettings
    on_retry: OnRetry
    _: KW_ONLY
    wire_name: str = ""
    api_base: str = ""
    api_key: str = ""
    reports_reading: bool = False
    env: Mapping[str, str] = field(default_factory=lambda: os.environ)

    def __post_init__(self) -> None:
        self.limits = ""
        self.wire_name = self.wire_name or self.facts.name
        self._refused = RefusedParameters()
        self._begins_inside = False
        """Whether the endpoint's answers begin with reasoning that no tag opens."""
        self._is_met = False
        """Whether the endpoint has answered, or its silence was looked into."""
        self._own_base = self.api_base if self.api_base != self.settings.api_base else ""
        """Where the model was found, which no setting says."""
        self.api_base = self.api_base or self.settings.api_base
        self._route = direct_route(self.wire_name, api_base=self.api_base, api_key=self.api_key, env=self.env)
        """None until litellm, if it is needed, says how to call the model."""
        if (server := server_of(self)) is not None:
            self.facts = replace_facts(self.facts, server=f"{server.address}:{server.port}")
        self._http: ChatEndpoint | OpenAIClient | AnthropicClient | None = None
        self._left: list[ChatEndpoint | OpenAIClient | AnthropicClient] = []
        """Connections of earlier settings, on which an answer may still come."""

    def take_settings(self, settings: ModelSettings) -> None:
        """The next request follows these settings. One that is sent goes on with those that it had."""
        before, self.settings = self.settings, settings
        if (before.api_base, before.total_seconds) == (settings.api_base, settings.total_seconds):
            return
        if before.api_base != settings.api_base:
            by_environment = endpoint_of(provider_of(self.wire_name), "", self.env)[0]
            self.api_base = settings.api_base or self._own_base or by_environment
            self._route = direct_route(self.wire_name, api_base=self.api_base, api_key=self.api_key, env=self.env)
            self._refused, self._is_met, self._begins_inside = RefusedParameters(), False, False
        if self._http is not None:
            self._left.append(self._http)
            self._http = None

    async def ask(self, request: ModelRequest, on_delta: OnDelta) -> Reply:
        """One answer, streamed. See Model.ask."""
        handed_on = 0
        is_callers = False

        def hand_on(deltas: list[Delta]) -> None:
            nonlocal handed_on, is_callers
            # After a retry reasoning may be shown twice, but an answer must not.
            handed_on += sum(bool(delta.text) for delta in deltas)
            is_callers = True
            for delta in deltas:
                on_delta(delta)
            is_callers = False

        async def attempt() -> Reply:
            way = await self._routed()
            while True:
                refused, known = self._refused, self._refused.names
                try:
                    return await self._attempt(way, request, hand_on)
                except ProviderError:
                    raise
                except Exception as error:
                    if is_callers:
                        # on_delta raised: not the provider's error.
                        raise
                    explained = self._explained(error)
                    if not self._is_met:
                        self._is_met = True
                        explained = await told_apart(explained, error, self.api_base)
                    if handed_on or not refused.learn(explained.failure, known):
                        raise explained from error

        most = self.settings.max_retries
        return await with_retries(attempt, max_retries=most, may_retry=lambda: not handed_on, on_retry=self.on_retry)

    def _explained(self, error: BaseException) -> ProviderError:
        secrets = {"api_key": self.api_key, **known_secrets({**os.environ, **self.env})}
        return explain(error, model=self.facts.name, api_base=self.api_base, redactor=Redactor(secrets))

    async def load(self) -> None:
        """Import what the first request needs. Raises ModelUnavailable, ModelNotFound."""
        way = await self._routed()
        if self._http is None:
            self._http = self._open(way)

    @property
    def endpoint(self) -> str:
        """The URL of the endpoint; "" if litellm chooses it."""
        way = self._route
        if found := (way.api_base if way else self.api_base):
            return found
        is_openai = (way.provider if way else provider_of(self.wire_name)) == "openai"
        return (self.env.get("OPENAI_BASE_URL") or _OPENAI) if is_openai else ""

    async def close(self) -> None:
        """Close the connections; idempotent."""
        left, self._left = [*self._left, self._http], []
        self._http = None
        for endpoint in left:
            if endpoint is not None:
                await endpoint.close()

    async def _routed(self) -> Route:
        """The route, for which litellm is imported if it is needed."""
        if self._route is None:
            self._route = litellm_route(
                self.wire_name, api_base=self.api_base, api_key=self.api_key, env=self.env, litellm=await warm()
            )
        return self._route

    async def _attempt(self, way: Route, request: ModelRequest, hand_on: Callable[[list[Delta]], None]) -> Reply:
        """One request. The stream is always closed, so that the provider stops a cancelled answer."""
        deadlines = Deadlines(self.settings, self.facts.name)
        assembler = Assembler(begins_inside=self._begins_inside)
        stream = await deadlines.within(self._stream(way, request))
        self._is_met = True
        self.limits = limits_of(stream.headers) or self.limits
        try:
            chunks = stream.chunks()
            has_begun = False
            while (chunk := await deadlines.next_piece(chunks)) is not None:
                deltas = assembler.add(chunk)
                # An answer may begin with a call, which is not handed on yet: it has begun, and is charged.
                hand_on(deltas if deltas or has_begun or not chunk.get("choices") else [Delta()])
                has_begun = has_begun or bool(chunk.get("choices"))
            hand_on(stream.settle(assembler))
            calls = (call for message in request.messages for call in message.get("tool_calls") or ())
            reply = assembler.finish(known_ids={str(call.get("id")) for call in calls}, model=self.facts.name)
            self._begins_inside = assembler.begins_inside
            hand_on(assembler.release())
            return self._with_cost(reply)
        finally:
            await stream.close()

    async def _stream(self, way: Route, request: ModelRequest) -> ChatStream | LitellmStream:
        """Send the request."""
        if self._http is None:
            self._http = self._open(way)
        body = self._body(request, way)
        if isinstance(self._http, ChatEndpoint):
            extra = body.pop("extra_body", {})
            return await self._http.ask(self._refused.without(body | extra))
        compacts = self.facts.can_compact and request.compact_at_tokens > 0
        optional = {
            "context_management": context_management(request.compact_at_tokens) if compacts else None,
            "api_base": way.api_base or None,
            "api_key": way.api_key or None,
            "client": self._http.client if self._http else None,
            "num_ctx": self.settings.context_window or None if way.provider.startswith("ollama") else None,
        }
        litellm = await warm()
        return LitellmStream(
            await litellm.acompletion(
                **self._refused.without(body),
                **{name: value for name, value in optional.items() if value is not None},
                max_retries=0,
                num_retries=0,
                timeout=self.settings.total_seconds,
            )
        )

    def _body(self, request: ModelRequest, way: Route) -> dict[str, Any]:
        """The arguments for both routes: the request in OpenAI's words."""
        temperature = self.settings.own_temperature if request.temperature is None else request.temperature
        messages, tools = _sendable(request.messages, keeps_thoughts=way.keeps_thoughts), copy.deepcopy(request.tools)
        if wants_marks(way.provider, self.wire_name):
            mark(messages, tools, way.provider)
        thinking = self._reasoning(request, way, messages)
        thinks = not way.is_direct and is_thinking(thinking, self.wire_name)
        optional = {
            "stream_options": {"include_usage": True} if way.asks_for_usage else None,
            "tools": tools or None,
            "max_tokens": request.max_output_tokens,
            "temperature": None if thinks else temperature,
            "return_progress": True if self.reports_reading else None,
        }
        given = {name: value for name, value in optional.items() if value is not None}
        return {"model": way.model, "messages": messages, "stream": True, **given, **thinking}

    def _reasoning(self, request: ModelRequest, way: Route, messages: list[dict[str, Any]]) -> dict[str, Any]:
        found = reasoning.arguments(
            request.reasoning,
            provider=way.provider,
            name=self.wire_name,
            is_own_endpoint=bool(self.api_base),
            max_output_tokens=request.max_output_tokens,
        )
        is_refused = not way.is_direct and is_thinking(found, self.wire_name) and not has_all_blocks(messages)
        # It continues without thinking until the turn ends.
        return {} if is_refused else found

    def _open(self, way: Route) -> ChatEndpoint | OpenAIClient | AnthropicClient | None:
        """The endpoint, or an HTTP client for litellm; None if it accepts none for this provider.

        Raises ProviderError if the environment has what no client can be made of.
        """
        try:
            check_proxy(way.api_base)
            return self._client_of(way)
        except (OSError, ValueError, ImportError) as error:
            raise cannot_open(error, self.facts.name, way.api_base) from error

    def _client_of(self, way: Route) -> ChatEndpoint | OpenAIClient | AnthropicClient | None:
        seconds = self.settings.total_seconds
        if way.is_direct:
            return ChatEndpoint(api_base=way.api_base, api_key=way.api_key, total_seconds=seconds)
        # Imports httpx and openai: only when first needed, like litellm.
        from nca.models.http_clients import AnthropicClient, OpenAIClient

        if way.provider == "openai":
            return OpenAIClient(api_base=self.endpoint, api_key=way.api_key, total_seconds=seconds)
        return AnthropicClient(seconds) if way.provider == "anthropic" else None

    def _with_cost(self, reply: Reply) -> Reply:
        if reply.usage is None:
            return reply
        # Price each sampling alone: the total may fall into a price tier that none of them is in.
        costs = [cost_of(self.facts, used) for used in reply.samplings or (reply.usage,)]
        known = [cost for cost in costs if cost is not None]
        usage = msgspec.structs.replace(reply.usage, cost=sum(known) if len(known) == len(costs) else None)
        return replace(reply, usage=usage)


def _sendable(messages: list[dict[str, Any]], *, keeps_thoughts: bool) -> list[dict[str, Any]]:
    """A copy, because marks are set and litellm modifies messages; without what is None, which some servers refuse.

    Reasoning is removed for providers that do not accept it back.
    """
    copies = [{key: value for key, value in row.items() if value is not None} for row in copy.deepcopy(messages)]
    if not keeps_thoughts:
        for message in copies:
            message.pop("reasoning_content", None)
    return copies
