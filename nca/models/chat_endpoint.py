"""OpenAI's chat protocol over HTTP: how nca calls the endpoints that speak it, without litellm.

The stream is read as the endpoint sends it: its finish reason, tool calls, usage and errors, a page of HTML or a whole
answer instead of events.
"""

from __future__ import annotations

import codecs
import io
import json
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any

from nca.models.assemble import Assembler
from nca.models.explain import BrokenStream, EmptyAnswer
from nca.models.model import Delta
from nca.models.providers import is_loopback
from nca.models.redirects import certificates_for, refuse_elsewhere_async

if TYPE_CHECKING:
    import httpx2

_KEPT_CHARS = 2_000_000
_MARK = "\ufeff"
"""A byte order mark, which may begin a stream or a body."""
CONNECT_SECONDS = 30.0


class RefusedByEndpoint(Exception):
    """The endpoint answered with an error: a status with a body, or an event in the stream (`status_code` None)."""

    def __init__(
        self, body: object, *, status_code: int | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__()
        self.body = body
        self.status_code = status_code
        self.headers = headers or {}


class ChatEndpoint:
    """The connections to one endpoint. `api_key` may be ""."""

    def __init__(self, *, api_base: str, api_key: str, total_seconds: float) -> None:
        # Imported when first needed, and while a person types.
        import httpx2

        self._url = f"{api_base.rstrip('/')}/chat/completions"
        authorization = {"authorization": f"Bearer {api_key}"} if api_key else {}
        self._http = httpx2.AsyncClient(
            timeout=httpx2.Timeout(total_seconds, connect=min(CONNECT_SECONDS, total_seconds)),
            follow_redirects=True,
            # Proxies in the environment are not meant for this machine.
            trust_env=not is_loopback(api_base),
            verify=certificates_for(api_base),
            # Compressed streams arrive late.
            headers={"accept-encoding": "identity", "user-agent": "nca", **authorization},
            event_hooks={"response": [refuse_elsewhere_async]},
        )

    async def ask(self, body: Mapping[str, Any]) -> ChatStream:
        """Send a request. Raises RefusedByEndpoint, and the errors of the connection."""
        response = await self._http.send(self._http.build_request("POST", self._url, json=body), stream=True)
        stream = ChatStream(response)
        if response.is_success:
            return stream
        try:
            raise RefusedByEndpoint(await stream.text(), status_code=response.status_code, headers=response.headers)
        finally:
            await stream.close()

    async def close(self) -> None:
        await self._http.aclose()


class ChatStream:
    """One answer as it arrives."""

    def __init__(self, response: httpx2.Response) -> None:
        self.headers: Mapping[str, Any] = response.headers
        self._response = response
        self._body: list[str] = []
        """The lines in front of the first event: all of a body that is not a stream."""
        self._is_done = False

    async def chunks(self) -> AsyncIterator[Mapping[str, Any]]:
        """The chunks as they arrive. Raises BrokenStream, RefusedByEndpoint, and the errors of the connection."""
        async for data in self._events():
            try:
                chunk = json.loads(data)
            except ValueError as error:
                raise BrokenStream(f"The answer ended early: {error}.") from error
            if not isinstance(chunk, Mapping):
                continue
            if chunk.get("error"):
                raise RefusedByEndpoint(chunk["error"])
            yield chunk

    def settle(self, assembler: Assembler) -> list[Delta]:
        """Behind the last chunk: what only the connection knows. Raises EmptyAnswer with the body."""
        if assembler.chunks == 0:
            body = "\n".join(self._body)
            if (answer := _whole_answer(body)) is None:
                raise EmptyAnswer(body)
            return assembler.add(answer)
        if not assembler.finish_reason and self._is_done:
            assembler.finish_reason = "stop"
        return []

    async def text(self) -> str:
        """The body of an error."""
        lines, size = [], 0
        async for line in self._lines():
            lines.append(line)
            size += len(line)
            if size > _KEPT_CHARS:
                break
        return "\n".join(lines)

    async def close(self) -> None:
        """Close the connection, so that the provider stops generating."""
        await self._response.aclose()

    async def _events(self) -> AsyncIterator[str]:
        """The data of each event until `[DONE]`, by the rules for event streams of the HTML standard."""
        data: list[str] = []
        kept = 0
        has_events = False
        async for line in self._lines():
            if line.startswith("data:"):
                has_events = True
                data.append(line.removeprefix("data:").removeprefix(" "))
                if data[0].startswith("[DONE]"):
                    self._is_done = True
                    return
            elif not line and data:
                yield "\n".join(data)
                data = []
            elif not has_events and kept < _KEPT_CHARS and not line.startswith(":"):
                self._body.append(line)
                kept += len(line)

    async def _lines(self) -> AsyncIterator[str]:
        """The lines; a byte that is not UTF-8 is U+FFFD, because it must not cost the whole answer."""
        decoder = io.IncrementalNewlineDecoder(codecs.getincrementaldecoder("utf-8")("replace"), translate=True)
        rest = [""]
        is_first = True
        async for received in self._response.aiter_bytes():
            text = decoder.decode(received)
            if is_first and text:
                text, is_first = text.removeprefix(_MARK), False
            end, *others = text.split("\n")
            rest.append(end)
            for line in others:
                yield "".join(rest)
                rest = [line]
        rest.append(decoder.decode(b"", final=True))
        if last := "".join(rest):
            yield last


def _whole_answer(body: str) -> dict[str, Any] | None:
    """A body that is one answer: the endpoint does not stream."""
    try:
        value = json.loads(body)
    except ValueError:
        return None
    is_answer = isinstance(value, dict) and bool(value.get("choices")) and not value.get("error")
    return value if is_answer else None
