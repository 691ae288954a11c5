"""The transports of MCP servers: over HTTP, and over the input and output of a program.

Unlike the SDK's own transport for programs, this one bounds the length of a line, and keeps the end of the error output
in memory instead of writing it to the terminal. The program runs in its own process group, which is ended as a whole.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import re
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from http.client import responses
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nca import process_groups
from nca.config.servers import McpServer
from nca.humanize import one_line
from nca.messages import clean_text
from nca.models.certificates import certificates
from nca.tools.programs import command_environment
from nca.tools.shell.process import has_ended
from nca.tools.tool import ToolError, reason_of

if TYPE_CHECKING:
    import httpx2
    from mcp.client._transport import TransportStreams

MAX_MESSAGE_BYTES = 8 << 20
"""The largest message. The model sees far less of it (context.admission)."""
MAX_UNASKED = 10_000
UNASKED_SECONDS = 60.0
"""More lines in a row that answer no request, within this time, end the connection. A slow log does not."""
STDERR_BYTES = 8_192
CLOSE_SECONDS = 0.5
"""How long a server has to exit after its input was closed, and again after SIGTERM."""
REASON_SECONDS = 5.0
"""A program that reads no more mostly ends: its exit code says more than that its input is closed."""
REASON_CHARS = 200
UNAUTHORIZED = 401
"""The HTTP status of a server that wants a login."""
_NOT_FOUND = 404
"""In a session it means that the session is over, which the SDK says."""
_PAUSE_SECONDS = 0.005
_READ_BYTES = 65_536


class ServerProcess:
    """A running server. `reason` says why its connection ended; `errors` is the end of its error output."""

    def __init__(self, argv: Sequence[str], directory: Path, environment: Mapping[str, str]) -> None:
        self._argv = argv
        self._directory = directory
        self._environment = environment
        self._errors = bytearray()
        self.reason = ""
        self.ended = asyncio.Event()
        self._said_all = asyncio.Event()
        self.pid = 0

    @property
    def errors(self) -> str:
        return bytes(self._errors).decode("utf-8", "replace")

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[TransportStreams]:
        """Start the program and yield its message streams. Raises OSError or ValueError if it cannot be started."""
        import anyio

        process = await process_groups.start(
            *self._argv,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=self._directory,
            env=dict(self._environment),
        )
        self.pid = process.pid
        to_us, incoming = anyio.create_memory_object_stream[Any](0)
        outgoing, to_it = anyio.create_memory_object_stream[Any](0)
        tasks = [
            asyncio.create_task(self._read(process, to_us)),
            asyncio.create_task(self._write(process, to_it)),
            asyncio.create_task(self._watch_input(process, to_us)),
            asyncio.create_task(self._keep_errors(process)),
        ]
        try:
            yield incoming, outgoing
        finally:
            ending = asyncio.create_task(self._end(process))
            tasks.append(ending)
            try:
                await asyncio.shield(ending)
            finally:
                # Nothing here can be cancelled, so a second cancellation leaves nothing behind.
                process_groups.send(process.pid, signal.SIGKILL)
                process_groups.ended(process.pid)
                for task in tasks:
                    task.cancel()
                for stream in (to_us, incoming, outgoing, to_it):
                    stream.close()
                _close_pipes(process)
                await process_groups.gone(process)
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _read(self, process: asyncio.subprocess.Process, to_us: Any) -> None:
        """Hand on the messages in its output, until the output ends or is too much."""
        import anyio

        try:
            with to_us, contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                ended = await self._forward(process, to_us)
                self.reason = self.reason or ended
        finally:
            self.ended.set()

    async def _forward(self, process: asyncio.subprocess.Process, to_us: Any) -> str:
        """Returns why the connection ended."""
        assert process.stdout is not None
        buffer = bytearray()
        unasked, since = 0, time.monotonic()
        while chunk := await process.stdout.read(_READ_BYTES):
            # Search only the new part, so that a long line costs linear time.
            start = len(buffer)
            buffer += chunk
            while (end := buffer.find(b"\n", start)) >= 0:
                message = _parsed(bytes(buffer[:end]))
                del buffer[: end + 1]
                start = 0
                is_unasked = message is None or hasattr(message.message, "method")
                if not is_unasked or time.monotonic() - since > UNASKED_SECONDS:
                    unasked, since = 0, time.monotonic()
                unasked += is_unasked
                if message is not None:
                    await to_us.send(message)
                if unasked > MAX_UNASKED:
                    process_groups.send(process.pid, signal.SIGKILL)
                    return f"it sent {MAX_UNASKED:,} messages that nobody asked for"
            if len(buffer) > MAX_MESSAGE_BYTES:
                process_groups.send(process.pid, signal.SIGKILL)
                return f"it sent a message of more than {MAX_MESSAGE_BYTES >> 20} MiB"
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), CLOSE_SECONDS)
        with contextlib.suppress(TimeoutError):
            # Its last output says why it ended.
            await asyncio.wait_for(self._said_all.wait(), CLOSE_SECONDS)
        code = process.returncode
        return "it closed its output" if code is None else f"it {process_groups.how_ended(code)}"

    async def _write(self, process: asyncio.subprocess.Process, to_it: Any) -> None:
        assert process.stdin is not None
        async with to_it:
            try:
                async for message in to_it:
                    text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                    process.stdin.write(text.encode() + b"\n")
                    await process.stdin.drain()
            except OSError:
                # Who sends now waits for the reason as well; `_watch_input` has it.
                await self.ended.wait()

    async def _watch_input(self, process: asyncio.subprocess.Process, to_us: Any) -> None:
        """Fail the requests that wait for an answer when it does not read any more, whether or not one is written.

        A write does not always fail: the first one to a closed pipe returns before asyncio knows that it is closed.
        """
        assert process.stdin is not None
        with contextlib.suppress(OSError):
            # A cancellation must not reach asyncio's own future.
            await asyncio.shield(process.stdin.wait_closed())
        try:
            await asyncio.wait_for(self.ended.wait(), REASON_SECONDS)
        except TimeoutError:
            self.reason = "it closed its input"
            self.ended.set()
        to_us.close()

    async def _keep_errors(self, process: asyncio.subprocess.Process) -> None:
        assert process.stderr is not None
        while chunk := await process.stderr.read(_READ_BYTES):
            self._errors += chunk
            del self._errors[:-STDERR_BYTES]
            # A server that writes without end is slowed down by its full pipe.
            await asyncio.sleep(_PAUSE_SECONDS)
        self._said_all.set()

    async def _end(self, process: asyncio.subprocess.Process) -> None:
        """As the protocol demands: close its input, then ask its group to end, then kill it."""
        assert process.stdin is not None
        process.stdin.close()
        for number in (signal.SIGTERM, signal.SIGKILL):
            if await has_ended(process, CLOSE_SECONDS):
                return
            process_groups.send(process.pid, number)
        await has_ended(process, CLOSE_SECONDS)


def _parsed(line: bytes) -> Any:
    """The message on a line, or None: some programs also write other things to their output."""
    from mcp.shared.message import SessionMessage
    from mcp_types import jsonrpc_message_adapter

    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError:
        return None


def _close_pipes(process: asyncio.subprocess.Process) -> None:
    """Close our ends of the pipes, even if a process in another session still holds the other ends."""
    transport = getattr(process, "_transport", None)
    if transport is not None:
        transport.close()


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

    timeout = httpx2.Timeout(timeout_seconds, read=None)
    hooks = {"response": [_answer_hook(url, on_answer)]}
    async with (
        httpx2.AsyncClient(
            headers=dict(headers), timeout=timeout, auth=auth, verify=certificates(), event_hooks=hooks
        ) as client,
        streamable_http_client(url, http_client=client, max_sse_event_size=MAX_MESSAGE_BYTES) as streams,
    ):
        yield streams


def _answer_hook(url: str, on_answer: Callable[[int], None]) -> Callable[[Any], Awaitable[None]]:
    """Bound each answer that is no event stream; one with an error's status becomes an error of the protocol."""
    import httpx2

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

    class Explained(httpx2.AsyncByteStream):
        """The body of an answer with an error's status, as an error of the protocol: the SDK reads no other."""

        def __init__(self, response: Any) -> None:
            self._response = httpx2.Response(
                response.status_code, headers=response.headers, stream=response.stream, request=response.request
            )

        async def __aiter__(self) -> AsyncIterator[bytes]:
            yield _as_error(self._response.status_code, await self._response.aread())

        async def aclose(self) -> None:
            await self._response.aclose()

    async def bound(response: Any) -> None:
        if response.request.url == url:
            on_answer(response.status_code)
        if not response.headers.get("content-type", "").startswith("text/event-stream"):
            response.stream = Bounded(response.stream)
        is_session = response.status_code == _NOT_FOUND and "mcp-session-id" in response.request.headers
        if response.status_code > UNAUTHORIZED and response.request.method == "POST" and not is_session:
            response.stream = Explained(response)
            response.headers = httpx2.Headers({"content-type": "application/json"} | _kept(response.headers))

    return bound


def _kept(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers that do not describe the body."""
    return {name: value for name, value in headers.items() if not name.lower().startswith("content-")}


def _as_error(status: int, body: bytes) -> bytes:
    """A body as an error of the protocol, if it is none: with the status, and its beginning."""
    from mcp_types import INTERNAL_ERROR, METHOD_NOT_FOUND, JSONRPCError, jsonrpc_message_adapter

    with contextlib.suppress(ValueError):
        if isinstance(jsonrpc_message_adapter.validate_json(body, by_name=False), JSONRPCError):
            return body
    said = one_line(clean_text(body[: 10 * REASON_CHARS].decode("utf-8", "replace")), REASON_CHARS)
    code = METHOD_NOT_FOUND if status == _NOT_FOUND else INTERNAL_ERROR
    error = {"code": code, "message": f"HTTP {status}: {said or responses.get(status, 'no reason')}"}
    return json.dumps({"jsonrpc": "2.0", "id": None, "error": error}).encode()


_VARIABLE = re.compile(r"\$\{([A-Za-z_]\w*)(?::-([^}]*))?\}")


def expanded(server: McpServer, env: Mapping[str, str] = os.environ) -> McpServer:
    """The server with its variables replaced. A provider's key never is. Raises ToolError for one that is not set."""
    pairs = (*server.env, *server.headers)
    texts = (server.command, *server.args, server.url, *(text for _, text in pairs))
    names = {match[1] for text in texts for match in _VARIABLE.finditer(text)}
    if not names:
        return server
    known = command_environment(env, names)

    def value(match: re.Match[str]) -> str:
        if match[1] not in known and match[2] is None:
            raise ToolError(f"the variable {match[1]} is not set, or holds a provider's key")
        return known.get(match[1], match[2])

    def filled(text: str) -> str:
        return _VARIABLE.sub(value, text)

    return replace(
        server,
        command=filled(server.command),
        args=tuple(map(filled, server.args)),
        env=tuple((name, filled(text)) for name, text in server.env),
        url=filled(server.url),
        headers=tuple((name, filled(text)) for name, text in server.headers),
    )


def load_sdk() -> Any:
    from mcp.client.client import Client

    # Without a handler, Python writes the SDK's warnings to the terminal.
    logging.getLogger("mcp").addHandler(logging.NullHandler())
    return Client


def one_reason(error: BaseException) -> str:
    """The first error of a group, in one line; with the address, if its server cannot be reached."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    said = one_line(clean_text(reason_of(error)[: 10 * REASON_CHARS]), REASON_CHARS) or type(error).__name__
    try:
        url = error.request.url  # type: ignore[attr-defined]
    except (AttributeError, RuntimeError):  # no error of HTTP, or one without a request
        return said
    return f"{url.scheme}://{url.netloc.decode()}: {said}"
