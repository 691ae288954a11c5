"""The embedded model as a Model: litellm speaks to the child's server as to any other endpoint."""

from __future__ import annotations

import asyncio
import importlib.util
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from nca.config.schema import ModelSettings
from nca.errors import ModelUnavailable, ProviderError
from nca.events import RetryScheduled
from nca.models.catalog import ModelFacts
from nca.models.client import LitellmModel, warm
from nca.models.embedded import weights
from nca.models.embedded.known import PREFIX, SMOLLM, KnownModel
from nca.models.embedded.process import Address, EmbeddedServer
from nca.models.model import Delta, Model, ModelRequest, OnDelta, Reply
from nca.models.retry import OnRetry

DEFAULT_WINDOW_TOKENS = 8_192
SMALLEST_WINDOW_TOKENS = 512
_ANSWER_SHARE = 4
"""An answer may take a quarter of the window at most."""

_END_LOOKS, _END_LOOK_SECONDS = 10, 0.05

_SLOWEST_TOKENS_PER_SECOND = 20
"""A prompt is read at 97 tokens a second on two cores; a slow machine is waited for all the same."""


def facts_of(model: KnownModel, context_window: int) -> ModelFacts:
    """What is known of an embedded model. `context_window` in tokens, 0: nca's own choice."""
    wanted = context_window or DEFAULT_WINDOW_TOKENS
    window = max(SMALLEST_WINDOW_TOKENS, min(wanted, model.trained_window_tokens))
    source = "the embedded model's default"
    if context_window:
        source = "model.context_window" if window == context_window else "model.context_window, within what it can"
    return ModelFacts(
        name=f"{PREFIX}{model.name}",
        provider="embedded",
        window_tokens=window,
        window_source=source,
        max_output_tokens=min(model.answer_tokens, window // _ANSWER_SHARE),
        input_cost=0.0,
        output_cost=0.0,
        cache_read_cost=0.0,
        cache_write_cost=0.0,
        can_use_tools=model.can_use_tools,
        can_summarize=model.can_summarize,
        reuses_prefix=True,
        note=model.ability,
    )


def _ignore(_: RetryScheduled) -> None:
    return


def _drop(_: Delta) -> None:
    return


class EmbeddedModel:
    """One set of weights that answers. The child starts with the first question (or `warm`), and again after a crash.

    log_path: where the child's own words go.
    """

    def __init__(
        self, model: KnownModel, weights: Path, settings: ModelSettings, on_retry: OnRetry, *, log_path: Path
    ) -> None:
        self.facts = facts_of(model, settings.context_window)
        self.server = EmbeddedServer(model, weights, window_tokens=self.facts.window_tokens, log_path=log_path)
        self._settings = _patient(settings, self.facts.window_tokens)
        self._on_retry = on_retry
        self._client: LitellmModel | None = None
        self._starting = asyncio.Lock()
        self._address: Address | None = None

    @property
    def address(self) -> Address | None:
        """Where the child listens, None before it was first started."""
        return self._address

    async def warm(self, prefix: ModelRequest | None = None) -> None:
        """Load litellm and the weights ahead of the first question. Raises ModelUnavailable.

        `prefix`: how that question's request begins (system prompt, tools). It is read now, seconds of work, and
        found in the server's cache then.
        """
        await warm()
        client = await self._running()
        if prefix is not None:
            await client.ask(replace(self._bounded(prefix), max_output_tokens=1), _drop)

    async def ask(self, request: ModelRequest, on_delta: OnDelta) -> Reply:
        """One answer. A child that ended before it said anything is started once more. See Model.ask."""
        handed_on = False

        def hand_on(delta: Delta) -> None:
            nonlocal handed_on
            handed_on = True
            on_delta(delta)

        bounded = self._bounded(request)
        client = await self._running()
        try:
            return await client.ask(bounded, hand_on)
        except ProviderError as error:
            reason = await self._reason_of_end(error)
            if not reason:
                raise
            if handed_on:
                raise self._crashed(reason) from error
        self._on_retry(RetryScheduled(attempt=1, wait_seconds=0.0, reason=f"The embedded model is restarted: {reason}"))
        client = await self._running()
        try:
            return await client.ask(bounded, hand_on)
        except ProviderError as error:
            if reason := await self._reason_of_end(error):
                raise self._crashed(reason) from error
            raise

    async def close(self) -> None:
        """End the child and its connections; idempotent."""
        client, self._client = self._client, None
        try:
            if client is not None:
                await client.close()
        finally:
            self.server.stop()

    async def _running(self) -> LitellmModel:
        """The client of a child that is alive, started where it is not."""
        async with self._starting:
            if self._client is not None and self.server.is_alive:
                return self._client
            stale, self._client = self._client, None
            if stale is not None:
                await stale.close()
            address = self._address = await self.server.start()
            self._client = LitellmModel(
                self.facts,
                self._settings,
                self._on_retry,
                wire_name=f"openai/{self.server.model.name}",
                api_base=address.api_base,
                api_key=address.api_key,
            )
            return self._client

    def _bounded(self, request: ModelRequest) -> ModelRequest:
        """The request with a cap on the answer, and without tools where the model has no use for them."""
        cap = self.facts.max_output_tokens or DEFAULT_WINDOW_TOKENS
        asked = request.max_output_tokens or cap
        tools = request.tools if self.facts.can_use_tools else []
        return replace(request, max_output_tokens=min(asked, cap), tools=tools)

    async def _reason_of_end(self, error: ProviderError) -> str:
        """Why the child ended, "" where it lives. A connection may break a moment before its process is gone."""
        if error.failure.action == "backoff":
            for _ in range(_END_LOOKS):
                if not self.server.is_alive:
                    break
                await asyncio.sleep(_END_LOOK_SECONDS)
        return self.server.how_it_ended()

    def _crashed(self, reason: str) -> ModelUnavailable:
        smaller = f" or take a smaller one (nca models get {SMOLLM.name})" if self.server.model is not SMOLLM else ""
        return ModelUnavailable(
            f"The embedded model stopped: {reason}.",
            advice=f"Ask again to start it anew; if memory is short, lower model.context_window{smaller}.",
        )


async def open_embedded(
    name: str,
    context_window: int = 0,
    *,
    settings: ModelSettings | None = None,
    on_retry: OnRetry = _ignore,
    env: Mapping[str, str] = os.environ,
) -> Model:
    """The embedded model of this name ("embedded/" may stand before it); its child starts when first needed.

    `context_window` in tokens, 0: settings.context_window, else the default; never above what the model was trained
    for. Raises UsageError for an unknown name, ModelUnavailable where weights or runtime are missing.
    """
    model = weights.known(name, env)
    path = weights.path_of(model.name, env)
    if path is None:
        raise ModelUnavailable(
            f"The weights of {model.name} are not here.", advice=f"Fetch them with: nca models get {model.name}"
        )
    if importlib.util.find_spec("xllamacpp") is None:
        raise ModelUnavailable(
            "The embedded model's runtime is not installed.", advice="Install it with: pip install 'nca[local]'"
        )
    settings = settings or ModelSettings()
    settings = replace(settings, context_window=context_window or settings.context_window)
    return EmbeddedModel(model, path, settings, on_retry, log_path=path.with_name("llama.log"))


def _patient(settings: ModelSettings, window_tokens: int) -> ModelSettings:
    """Deadlines that a slow machine can meet, and no tries of litellm's against a child that is gone."""
    reading = 30.0 + window_tokens / _SLOWEST_TOKENS_PER_SECOND
    return replace(settings, first_token_seconds=max(settings.first_token_seconds, reading), max_retries=0, api_base="")
