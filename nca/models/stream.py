"""One streamed answer: its timeouts, the rate limits in its headers, and how it is read from litellm."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Mapping
from typing import Any, TypeVar

from nca.config.schema import ModelSettings
from nca.messages import ResponseFacts
from nca.models.assemble import Assembler, add_facts
from nca.models.explain import BrokenStream, EmptyAnswer
from nca.models.failures import number_in
from nca.models.model import Delta

_LEFT = re.compile(r"ratelimit-(?:remaining-([a-z-]+)|([a-z-]+)-remaining)$")
Result = TypeVar("Result")


class LitellmStream:
    """The result of `litellm.acompletion(stream=True)`."""

    def __init__(self, stream: Any) -> None:
        self.headers: Mapping[str, Any] = getattr(stream, "_response_headers", None) or {}
        self._stream = stream
        self._source = _Source(getattr(stream, "completion_stream", None))
        if self._source.is_openai:
            stream.completion_stream = self._source

    async def chunks(self) -> AsyncIterator[Mapping[str, Any]]:
        """The chunks as they arrive. Raises BrokenStream for an unreadable one, and errors of the connection."""
        try:
            async for chunk in self._stream:
                yield _as_dict(chunk)
        except ValueError as error:
            raise BrokenStream(f"The answer ended early: {error}.") from error

    def settle(self, assembler: Assembler) -> list[Delta]:
        """Take usage, finish reason and facts from what the provider sent, not from litellm's last chunk.

        litellm invents a usage and an id if the provider reported none, and says "stop" for an unknown or missing
        reason. The wrapper keeps the received chunks with their usage, and the received reason.
        """
        assembler.forget_usage()
        assembler.response = self._source.facts()
        received = getattr(self._stream, "chunks", [])
        for chunk in received:
            assembler.add_usage(_as_dict(getattr(chunk, "usage", None)))
        reason = getattr(self._stream, "received_finish_reason", None)
        if not received:
            raise EmptyAnswer
        assembler.set_finish_reason(reason if isinstance(reason, str) else "")
        return []

    async def close(self) -> None:
        """Close the connection, so that the provider stops generating."""
        for holder in (getattr(self._stream, "completion_stream", None), self._stream):
            end = getattr(holder, "close", None) or getattr(holder, "aclose", None)
            if end is not None:
                result = end()
                if hasattr(result, "__await__"):
                    await result


class _Source:
    """The stream below litellm's, with the provider's own words instead of litellm's translation.

    OpenAI's client hands on the chunks as they came. Of the others only Anthropic's keeps something: the model.
    """

    def __init__(self, stream: Any) -> None:
        from openai import AsyncStream

        self.is_openai = isinstance(stream, AsyncStream)
        self._stream = stream
        self._facts = ResponseFacts()

    def __aiter__(self) -> _Source:
        return self

    async def __anext__(self) -> Any:
        chunk = await anext(self._stream)
        self._facts = add_facts(self._facts, _as_dict(chunk))
        return chunk

    async def close(self) -> None:
        await self._stream.close()

    def facts(self) -> ResponseFacts:
        """The provider's facts about its answer so far."""
        return add_facts(self._facts, {"model": getattr(self._stream, "served_model", None)})


def _as_dict(chunk: Any) -> Mapping[str, Any]:
    """A chunk as a dict. Values of the wrong type are kept."""
    if isinstance(chunk, Mapping):
        return chunk
    if hasattr(chunk, "model_dump"):
        dumped: Mapping[str, Any] = chunk.model_dump(warnings=False)
        return dumped
    return {}


class Deadlines:
    """Three timeouts that start when the object is created; the TimeoutError names the setting.

    The first ends with the first piece (keep-alive comments are not pieces), the second restarts with each piece, and
    the third covers the whole answer, so that an endless trickle ends too.
    """

    def __init__(self, settings: ModelSettings, model: str) -> None:
        self._settings = settings
        self._model = model
        self._started = asyncio.get_running_loop().time()
        self._has_begun = False

    async def next_piece(self, pieces: AsyncIterator[Result]) -> Result | None:
        """The next piece, None at the end."""
        try:
            piece = await self.within(anext(pieces))
        except StopAsyncIteration:
            return None
        self._has_begun = True
        return piece

    async def within(self, answer: Awaitable[Result]) -> Result:
        """Wait for the stream, or for a piece of it."""
        now = asyncio.get_running_loop().time()
        end = self._started + self._settings.total_seconds
        if self._has_begun:
            own = now + self._settings.idle_seconds
        else:
            own = self._started + self._settings.first_token_seconds
        clock = asyncio.timeout_at(min(own, end))
        try:
            async with clock:
                return await answer
        except TimeoutError as error:
            if not clock.expired():
                raise
            raise TimeoutError(self._say(is_total=end <= own)) from error

    def _say(self, *, is_total: bool) -> str:
        if is_total:
            return f"{self._model} took longer than {self._settings.total_seconds:g} seconds (model.total_seconds)."
        if self._has_begun:
            return f"{self._model} sent nothing for {self._settings.idle_seconds:g} seconds (model.idle_seconds)."
        seconds = self._settings.first_token_seconds
        return f"{self._model} did not start to answer within {seconds:g} seconds (model.first_token_seconds)."


def limits_of(headers: Mapping[str, Any]) -> str:
    """The limit that is closest, as in "12% of tokens left"; "" if the provider does not say.

    Sources: OpenAI's x-ratelimit-remaining-KIND, which others use too, and Anthropic's
    anthropic-ratelimit-KIND-remaining.
    """
    found: list[tuple[float, str]] = []
    for name, value in headers.items():
        if match := _LEFT.search(str(name).lower()):
            limit, left = number_in(headers.get(name.replace("remaining", "limit"))), number_in(value)
            if left is not None and limit and limit > 0:
                found.append((min(max(left / limit, 0.0), 1.0), (match[1] or match[2]).replace("-", " ")))
    if not found:
        return ""
    ratio, kind = min(found)
    return f"{ratio:.0%} of {kind} left"
