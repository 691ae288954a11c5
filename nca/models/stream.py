"""Read one streamed answer from litellm.

For OpenAI-compatible endpoints the stream under litellm's is read, which has finish reason, tool calls and usage as the
provider sent them. For other providers it is litellm's translation.
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
    """The result of `litellm.acompletion(stream=True)`."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._raw = getattr(stream, "completion_stream", None)
        self._recorder = _recorder_of(self._raw)

    async def chunks(self) -> AsyncIterator[Any]:
        """The chunks as they arrive. Raises BrokenStream for an unreadable one, and errors of the connection."""
        source: Any = self._raw if self._recorder is not None else self._stream
        try:
            async for chunk in source:
                yield chunk
        except ValueError as error:
            raise BrokenStream(f"The answer ended early: {error}.") from error

    def settle(self, assembler: Assembler) -> list[Delta]:
        """After the last chunk, add what only the connection knows. Raises EmptyAnswer with the body."""
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
        """Close the connection, so that the provider stops generating."""
        for holder in (self._raw, self._stream):
            end = getattr(holder, "close", None) or getattr(holder, "aclose", None)
            if end is not None:
                result = end()
                if hasattr(result, "__await__"):
                    await result

    def _believe(self, assembler: Assembler) -> None:
        """Take usage and finish reason from what the provider sent, not from litellm's last chunk.

        litellm invents a usage if the provider reported none, and says "stop" for an unknown or missing reason. The
        wrapper keeps the received chunks with their usage, and the received reason.
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
    """The BodyRecorder of a RecordingClient's response; None if the connection is litellm's."""
    # A stream of the openai package has its HTTP response; litellm's own iterators do not.
    body = getattr(getattr(raw, "response", None), "stream", None)
    return body if hasattr(body, "completion") else None


def as_dict(chunk: Any) -> Mapping[str, Any]:
    """A chunk as a dict. Values of the wrong type are kept."""
    if isinstance(chunk, Mapping):
        return chunk
    if hasattr(chunk, "model_dump"):
        dumped: Mapping[str, Any] = chunk.model_dump(warnings=False)
        return dumped
    return {}
