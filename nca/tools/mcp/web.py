"""The HTTP transport for an MCP server: the SDK's streamable HTTP, with a limit on the size of an answer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from nca.tools.mcp.stdio import MAX_MESSAGE_BYTES

if TYPE_CHECKING:
    import httpx2
    from mcp.client._transport import TransportStreams


@asynccontextmanager
async def connect_web(
    url: str,
    headers: Mapping[str, str],
    timeout_seconds: float,
    *,
    auth: httpx2.Auth | None = None,
    on_answer: Callable[[int], None] = lambda _: None,
) -> AsyncIterator[TransportStreams]:
    """Connect and yield the message streams. Redirects to another origin are not followed, so no header leaks.

    on_answer  gets the HTTP status of each answer of the server
    """
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    class Bounded(httpx2.AsyncByteStream):
        """The body of an answer that is not an event stream; the SDK reads it whole."""

        def __init__(self, inner: Any) -> None:
            self._inner = inner

        async def __aiter__(self) -> AsyncIterator[bytes]:
            taken = 0
            async for chunk in self._inner:
                taken += len(chunk)
                if taken > MAX_MESSAGE_BYTES:
                    raise httpx2.StreamError(f"more than {MAX_MESSAGE_BYTES >> 20} MiB in one message")
                yield chunk

        async def aclose(self) -> None:
            await self._inner.aclose()

    async def bound(response: Any) -> None:
        if response.request.url == url:
            on_answer(response.status_code)
        if not response.headers.get("content-type", "").startswith("text/event-stream"):
            response.stream = Bounded(response.stream)

    timeout = httpx2.Timeout(timeout_seconds, read=None)
    async with (
        httpx2.AsyncClient(
            headers=dict(headers), timeout=timeout, auth=auth, event_hooks={"response": [bound]}
        ) as client,
        streamable_http_client(url, http_client=client, max_sse_event_size=MAX_MESSAGE_BYTES) as streams,
    ):
        yield streams
