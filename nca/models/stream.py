"""Read one streamed answer from litellm."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

from nca.messages import ResponseFacts
from nca.models.assemble import Assembler, add_facts
from nca.models.explain import BrokenStream, EmptyAnswer
from nca.models.model import Delta


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
    """The stream below litellm's, which has the provider's own words where litellm has its translation.

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
        """What the provider said about its answer so far."""
        return add_facts(self._facts, {"model": getattr(self._stream, "served_model", None)})


def _as_dict(chunk: Any) -> Mapping[str, Any]:
    """A chunk as a dict. Values of the wrong type are kept."""
    if isinstance(chunk, Mapping):
        return chunk
    if hasattr(chunk, "model_dump"):
        dumped: Mapping[str, Any] = chunk.model_dump(warnings=False)
        return dumped
    return {}
