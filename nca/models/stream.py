"""One streamed answer through litellm, read where the truth is.

For OpenAI-compatible endpoints that is the stream under litellm's: there the finish reason, the tool calls and the
usage are as the provider sent them. For the other providers it is litellm's translation.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any

from nca.models.assemble import Assembler
from nca.models.explain import BrokenStream, EmptyAnswer
from nca.models.model import Delta

if TYPE_CHECKING:
    from nca.models.http_clients import BodyRecorder


class AnswerStream:
    """What `litellm.acompletion(stream=True)` gave."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._raw = getattr(stream, "completion_stream", None)
        self._recorder = _recorder_of(self._raw)

    async def chunks(self) -> AsyncIterator[Any]:
        """The chunks as they come. Raises BrokenStream where one cannot be read, and what the connection raises."""
        source: Any = self._raw if self._recorder is not None else self._stream
        try:
            async for chunk in source:
                yield chunk
        except ValueError as error:
            raise BrokenStream(f"The answer broke off: {error}.") from error

    def settle(self, assembler: Assembler) -> list[Delta]:
        """After the last chunk: what the connection says beyond the chunks. Raises EmptyAnswer with what it was."""
        if self._recorder is None:
            self._believe(assembler)
            return []
        if assembler.chunks == 0:
            completion = self._recorder.completion()
            if completion is None:
                raise EmptyAnswer(self._recorder.body)
            return assembler.add(completion)
        if not assembler.finish_reason and self._recorder.is_done:
            assembler.finish_reason = "stop"
        return []

    async def close(self) -> None:
        """Stop the answer: the provider sees the connection end and stops making it."""
        for holder in (self._raw, self._stream):
            end = getattr(holder, "close", None) or getattr(holder, "aclose", None)
            if end is not None:
                result = end()
                if hasattr(result, "__await__"):
                    await result

    def _believe(self, assembler: Assembler) -> None:
        """Take from litellm's stream only what the provider sent.

        litellm's last chunk carries a usage of its own making where the provider reported none, and its "stop" is
        also its word for an unknown reason or none at all. What came in is on the wrapper: the chunks with their
        usage, and the reason as received.
        """
        assembler.forget_usage()
        received = getattr(self._stream, "chunks", [])
        for chunk in received:
            assembler.add_usage(as_dict(getattr(chunk, "usage", None)))
        reason = getattr(self._stream, "received_finish_reason", None)
        if not received:
            raise EmptyAnswer
        assembler.set_finish_reason(reason if isinstance(reason, str) else "")


def _recorder_of(raw: Any) -> BodyRecorder | None:
    """The recorder that `RecordingClient` put around the response's bytes; None where the connection is litellm's."""
    # A stream of the openai package carries its HTTP response; litellm's own iterators do not.
    body = getattr(getattr(raw, "response", None), "stream", None)
    return body if hasattr(body, "completion") else None


def as_dict(chunk: Any) -> Mapping[str, Any]:
    """A chunk as plain data, whatever library made it. Values of the wrong type stay as they came."""
    if isinstance(chunk, Mapping):
        return chunk
    if hasattr(chunk, "model_dump"):
        dumped: Mapping[str, Any] = chunk.model_dump(warnings=False)
        return dumped
    return {}
