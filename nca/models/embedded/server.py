"""The embedded model: nca talks to a llama.cpp server in a child process, like to any other endpoint."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from nca.config.schema import ModelSettings
from nca.errors import ModelUnavailable, ProviderError
from nca.events import RetryScheduled
from nca.models.catalog import ModelFacts
from nca.models.client import ProviderModel
from nca.models.embedded import weights
from nca.models.embedded.known import SMOLLM, KnownModel, available_ram_bytes
from nca.models.embedded.process import Address, EmbeddedServer
from nca.models.failures import OnRetry
from nca.models.model import Delta, Model, ModelRequest, OnDelta, Reply
from nca.models.providers import EMBEDDED
from nca.models.reasoning import can_reason

DEFAULT_WINDOW_TOKENS, ROOMY_WINDOW_TOKENS = 8_192, 16_384
"""The default window, and that of a machine with twice the memory that the model takes: 8,192 tokens take 0.24 GB."""
SMALLEST_WINDOW_TOKENS = 512
_ANSWER_SHARE = 4
"""An answer may take at most this fraction of the window: a quarter."""

_END_LOOKS, _END_LOOK_SECONDS = 10, 0.05

_SLOWEST_TOKENS_PER_SECOND = 20
"""Two cores evaluate 97 prompt tokens a second; allow for slower machines."""


def facts_of(model: KnownModel, context_window: int, *, available_ram: int | None = None) -> ModelFacts:
    """The facts of an embedded model. `context_window` in tokens; 0: what suits `available_ram` (bytes; None: look)."""
    ram = available_ram_bytes() if available_ram is None else available_ram
    is_roomy = ram is not None and ram >= 2 * model.ram_bytes
    wanted = context_window or (ROOMY_WINDOW_TOKENS if is_roomy else DEFAULT_WINDOW_TOKENS)
    window = max(SMALLEST_WINDOW_TOKENS, min(wanted, model.trained_window_tokens))
    source = "the embedded model's default"
    if context_window:
        source = "model.context_window" if window == context_window else "model.context_window, limited by the model"
    return ModelFacts(
        name=f"{EMBEDDED}{model.name}",
        provider="embedded",
        window_tokens=window,
        window_source=source,
        max_output_tokens=min(model.answer_tokens, window // _ANSWER_SHARE),
        input_cost=0.0,
        output_cost=0.0,
        cache_read_cost=0.0,
        cache_write_cost=0.0,
        can_use_tools=model.can_use_tools,
        can_reason=can_reason("embedded", model.name),
        can_summarize=model.can_summarize,
        is_small=True,
        reuses_prefix=True,
        note=model.ability,
    )


def _drop(_: Delta) -> None:
    return


class EmbeddedModel:
    """An embedded model. The child process starts with the first request (or `warm`), and again after a crash.

    log_path: the log of the child process.
    """

    def __init__(
        self, model: KnownModel, weights: Path, settings: ModelSettings, on_retry: OnRetry, *, log_path: Path
    ) -> None:
        self.facts = facts_of(model, settings.context_window)
        self.server = EmbeddedServer(model, weights, window_tokens=self.facts.window_tokens, log_path=log_path)
        self._settings = _patient(settings, self.facts.window_tokens)
        self._on_retry = on_retry
        self._client: ProviderModel | None = None
        self._starting = asyncio.Lock()
        self.address: Address | None = None
        """Of the child's server; None before its first start."""
        self._waiting: OnDelta = _drop
        """The waiters for the prefix that is read in advance: the first question comes after it."""

    def take_settings(self, settings: ModelSettings) -> None:
        """The next request follows these settings; the window stays, which the child process was started with."""
        self._settings = _patient(settings, self.facts.window_tokens)
        if self._client is not None:
            self._client.take_settings(self._settings)

    @property
    def endpoint(self) -> str:
        """The URL of the child's server; "" before its first start."""
        return self.address.api_base if self.address else ""

    async def warm(self, prefix: ModelRequest | None = None) -> None:
        """Load the weights before the first request. Raises ModelUnavailable.

        `prefix`: the beginning of that request (system prompt, tools). It is evaluated now, which takes seconds, and
        then found in the server's cache.
        """

        def show_reading(delta: Delta) -> None:
            if delta.of_tokens:
                self._waiting(delta)

        client = await self._running()
        if prefix is not None:
            await client.ask(replace(self._bounded(prefix), max_output_tokens=1), show_reading)

    async def ask(self, request: ModelRequest, on_delta: OnDelta) -> Reply:
        """One answer. If the child process ends before any text, it is restarted once. See Model.ask."""
        handed_on = False

        def hand_on(delta: Delta) -> None:
            nonlocal handed_on
            handed_on, self._waiting = True, _drop
            on_delta(delta)

        bounded = self._bounded(request)
        client = await self._running()
        self._waiting = on_delta
        is_second = False
        while True:
            try:
                return await client.ask(bounded, hand_on)
            except ProviderError as error:
                reason = await self._reason_of_end(error)
                if not reason:
                    raise
                if handed_on or is_second:
                    raise self._crashed(reason) from error
            finally:
                self._waiting = _drop
            said = f"The embedded model is restarted: {reason}"
            self._on_retry(RetryScheduled(attempt=1, wait_seconds=0.0, reason=said, retries=1))
            client, is_second = await self._running(), True

    async def close(self) -> None:
        """Stop the child process and close its connections. Idempotent."""
        client, self._client = self._client, None
        try:
            if client is not None:
                await client.close()
        finally:
            self.server.stop()

    async def _running(self) -> ProviderModel:
        """The client of the running child process, which is started if necessary."""
        async with self._starting:
            if self._client is not None and self.server.is_alive:
                return self._client
            stale, self._client = self._client, None
            if stale is not None:
                await stale.close()
            address = self.address = await self.server.start()
            self._client = ProviderModel(
                self.facts,
                self._settings,
                self._on_retry,
                wire_name=f"openai/{self.server.model.name}",
                api_base=address.api_base,
                api_key=address.api_key,
                reports_reading=True,
            )
            return self._client

    def _bounded(self, request: ModelRequest) -> ModelRequest:
        """The request with a limit for the answer, and without tools if the model cannot use them."""
        cap = self.facts.max_output_tokens or DEFAULT_WINDOW_TOKENS
        asked = request.max_output_tokens or cap
        tools = request.tools if self.facts.can_use_tools else []
        return replace(request, max_output_tokens=min(asked, cap), tools=tools)

    async def _reason_of_end(self, error: ProviderError) -> str:
        """Why the child process ended; "" if it runs. A connection may break a moment before its process ends."""
        if error.failure.action == "backoff":
            for _ in range(_END_LOOKS):
                if not self.server.is_alive:
                    break
                await asyncio.sleep(_END_LOOK_SECONDS)
        return self.server.how_it_ended()

    def _crashed(self, reason: str) -> ModelUnavailable:
        smaller = f" or use a smaller one (nca models get {SMOLLM.name})" if self.server.model is not SMOLLM else ""
        return ModelUnavailable(
            f"The embedded model stopped: {reason}.",
            advice=f"Ask again to restart it. If memory is short, lower model.context_window{smaller}.",
        )


async def open_embedded(
    name: str,
    context_window: int = 0,
    *,
    settings: ModelSettings | None = None,
    on_retry: OnRetry = lambda _: None,
    env: Mapping[str, str] = os.environ,
) -> Model:
    """The embedded model of this name, with or without "embedded/". Its child process starts when first needed.

    `context_window` in tokens; 0: settings.context_window or the default, at most the trained window.
    Raises UsageError for an unknown name, ModelUnavailable if weights or runtime are missing.
    """
    model = weights.known(name, env)
    path = weights.require(model.name, env)
    settings = settings or ModelSettings()
    settings = replace(settings, context_window=context_window or settings.context_window)
    return EmbeddedModel(model, path, settings, on_retry, log_path=path.with_name("llama.log"))


def _patient(settings: ModelSettings, window_tokens: int) -> ModelSettings:
    """Timeouts for a slow machine, and no retries against a child process that has ended."""
    reading = 30.0 + window_tokens / _SLOWEST_TOKENS_PER_SECOND
    return replace(
        settings,
        first_token_seconds=max(settings.first_token_seconds, reading),
        # Each report of progress is a piece, and the next one takes as long as its part of the window.
        idle_seconds=max(settings.idle_seconds, reading),
        max_retries=0,
        api_base="",
    )
