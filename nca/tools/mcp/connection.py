"""The connection to one MCP server: its state, its lists, and requests to it.

A separate task holds the connection from start to end. Whatever a server does, a request to it ends within its timeout
with an answer or a ToolError of one line.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Collection, Coroutine, Mapping
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING, Any, Literal

from nca.config.servers import McpServer
from nca.humanize import one_line
from nca.messages import clean_text
from nca.models.providers import known_secrets
from nca.redact import Redactor
from nca.tools.mcp import results
from nca.tools.mcp.oauth import Logins, stored_login
from nca.tools.mcp.requests import Host, Requests
from nca.tools.mcp.transports import (
    REASON_CHARS,
    UNAUTHORIZED,
    ServerProcess,
    connect_web,
    expanded,
    load_sdk,
    one_reason,
)
from nca.tools.programs import command_environment
from nca.tools.tool import ToolError, ToolOutcome, progress_listener

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams
    from mcp.client.client import Client

State = Literal["off", "starting", "ready", "failed"]
_STOP_SECONDS = 3.0
_RENEW_PAUSE_SECONDS = 1.0
"""Pause between two reads of the lists, for a server that reports changes all the time."""
_ERROR_LINES = 5


class Connection:
    """`reason` says in one line why the server failed, `needs_login` whether a login would help.

    `listing` is what it offers, as last read.
    """

    def __init__(
        self,
        server: McpServer,
        directory: Path,
        can_see: Callable[[], bool],
        host: Host | None = None,
        env: Mapping[str, str] = os.environ,
    ) -> None:
        """host: who answers the server's own requests; None: it may send none. env: it leads to the stored logins."""
        self.server = server
        self.state: State = "off"
        self.reason = ""
        self.needs_login = False
        self.listing = results.Listing()
        self.on_listing: Callable[[], None] = lambda: None
        """Called when the listing was read."""
        self._status = 0
        self._directory, self._env = directory, env
        self._can_see = can_see
        self._requests = Requests(server.name, host, can_see, server.folders) if host is not None else None
        self._task: asyncio.Task[None] | None = None
        self._client: Client | None = None
        self._process: ServerProcess | None = None
        self._stop = asyncio.Event()
        self._settled = asyncio.Event()
        self._stale: set[results.ListKind] = set()
        self._is_stale = asyncio.Event()
        self._renewing = asyncio.Lock()
        self._asking: set[asyncio.Task[Any]] = set()

    @property
    def _ended(self) -> str:
        """Why the program has ended, or ""."""
        return self._process.reason if self._process is not None else ""

    @property
    def errors(self) -> str:
        """The end of the program's error output, without the keys of this machine and of the server."""
        if self._process is None:
            return ""
        known = known_secrets({**os.environ, **dict(expanded(self.server).env)})
        return Redactor(known).text(clean_text(self._process.errors))

    @property
    def error_lines(self) -> list[str]:
        """The last lines of it."""
        return [line for line in self.errors.splitlines() if line.strip()][-_ERROR_LINES:]

    @property
    def why(self) -> str:
        """The reason with the program's last output."""
        last = "".join(self.error_lines[-1:])
        return f"{self.reason}: {one_line(last, REASON_CHARS)}" if last and self.reason == self._ended else self.reason

    def start(self) -> None:
        if self.state == "off" and self.server.enabled:
            self.state = "starting"
            self._task = asyncio.create_task(self._run())

    async def settled(self) -> None:
        """Wait until it is ready or has failed."""
        if self.state == "starting":
            await self._settled.wait()

    async def stop(self) -> None:
        """End the connection, and the server's whole process group."""
        task, self._task = self._task, None
        self._stop.set()
        if task is not None:
            await asyncio.wait([task], timeout=0 if self.state == "starting" else _STOP_SECONDS)
            task.cancel()
            await asyncio.gather(task, *self._asking, return_exceptions=True)
        self.state, self.reason, self.listing = "off", "", results.Listing()
        self.needs_login, self._status = False, 0
        self._stale.clear()
        self._stop, self._settled = asyncio.Event(), asyncio.Event()

    async def renew(self) -> None:
        """Read the lists again that have changed, as the server said. A list that cannot be read stays as it is."""
        async with self._renewing:
            if self.state != "ready":
                return
            self._is_stale.clear()
            kinds, self._stale = self._stale, set()
            if not kinds:
                return
            try:
                self.listing = await self._request(lambda client: results.read_lists(client, kinds, self.listing))
                self.on_listing()
            except ToolError:
                return
            except asyncio.CancelledError:
                self._mark(kinds)
                raise

    async def call(self, tool: str, arguments: dict[str, Any]) -> ToolOutcome:
        """Call a tool. Raises ToolError in one line, whatever happened to the server."""
        say = progress_listener.get()

        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            say(results.progress_line(progress, total, message))

        with self._requests or contextlib.nullcontext():
            result = await self._request(
                lambda client: client.call_tool(tool, arguments, progress_callback=on_progress)
            )
        return await asyncio.to_thread(results.outcome_of, result, can_see=self._can_see())

    async def prompt(self, name: str, arguments: dict[str, str]) -> str:
        """The prompt's messages as one text. Raises ToolError."""
        result = await self._request(lambda client: client.get_prompt(name, arguments))
        return "\n\n".join(results.described(message.content) for message in result.messages)

    async def resource(self, uri: str) -> str:
        """The resource's text. Raises ToolError."""
        result = await self._request(lambda client: client.read_resource(uri))
        return results.text_of_resource(result.contents)

    async def _request(self, question: Callable[[Client], Coroutine[Any, Any, Any]]) -> Any:
        name, seconds = self.server.name, self.server.timeout_seconds
        if self._client is None or self.state != "ready":
            why = self.reason or self.state
            advice = "" if self.needs_login else f"; the person can: /mcp restart {name}"
            raise ToolError(f"the MCP server {name} is not running ({why}){advice}")
        try:
            return await self._in_time(question(self._client), seconds)
        except TimeoutError:
            raise ToolError(f"the MCP server {name} did not answer within {seconds:g} seconds") from None
        except Exception as error:
            # The SDK raises its own errors and those of pydantic, anyio and HTTP. All of them mean that no answer came.
            ended = self._ended
            if ended or self._status == UNAUTHORIZED:
                self._fail(ended or one_reason(error))
            raise ToolError(f"the MCP server {name}: {ended or self.reason or one_reason(error)}") from error

    async def _in_time(self, asking: Coroutine[Any, Any, Any], seconds: float) -> Any:
        """Raises TimeoutError, or what the request raises.

        Does not wait for a cancelled request: the SDK takes five more seconds to notify a server that does not read its
        input, and neither the timeout nor Ctrl-C should wait for that.
        """
        task = asyncio.create_task(asking)
        self._asking.add(task)
        task.add_done_callback(self._forget)
        try:
            while True:
                asked = self._requests.count if self._requests else 0
                done, _ = await asyncio.wait({task}, timeout=seconds)
                # While the person or the model answers the server, its time does not run.
                if done or self._requests is None or not (self._requests.is_waiting or self._requests.count > asked):
                    break
        finally:
            task.cancel()
        if not done:
            raise TimeoutError
        if task.cancelled():
            # Cancelled by the SDK, because the connection was closed. Nobody has stopped the turn.
            raise ConnectionError("the connection was closed")
        return task.result()

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._asking.discard(task)
        if not task.cancelled():
            # Retrieve the exception, or asyncio warns about a request that nobody waits for any more.
            task.exception()

    async def _run(self) -> None:
        try:
            await self._connected()
        except TimeoutError:
            self._fail(f"it did not start within {self.server.timeout_seconds:g} seconds")
        except Exception as error:  # noqa: BLE001  whatever a server or the SDK does, the chat goes on
            self._fail(self._ended or one_reason(error))
        finally:
            self._client = None
            self._settled.set()

    async def _connected(self) -> None:
        """Hold the connection from start to end."""
        # The imports take half a second; on a thread, so that typing does not stall.
        client_class = await asyncio.to_thread(load_sdk)
        async with asyncio.timeout(self.server.timeout_seconds) as limit:
            answers = self._requests.callbacks if self._requests is not None else {}
            async with client_class(self._transport(), cache=None, message_handler=self._hear, **answers) as client:
                self.listing = await results.read_lists(client, results.ALL_KINDS, results.Listing())
                limit.reschedule(None)
                self._client = client
                self.state = "ready"
                self._settled.set()
                self.on_listing()
                await self._until_stopped(client)
            if not self._stop.is_set():
                self._fail(self._process.reason if self._process else "the connection ended")

    async def _until_stopped(self, client: Client) -> None:
        """Wait until it is stopped or the program ends, and keep the lists up to date meanwhile."""
        ends = [asyncio.create_task(self._stop.wait())]
        if self._process is not None:
            ends.append(asyncio.create_task(self._process.ended.wait()))
        beside = [
            asyncio.create_task(self._renew_when_stale()),
            asyncio.create_task(results.keep_listening(client, lambda: self._mark(results.ALL_KINDS))),
        ]
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (*ends, *beside):
                task.cancel()
            await asyncio.gather(*ends, *beside, return_exceptions=True)
        if not self._stop.is_set():
            self.state = "failed"

    async def _hear(self, message: object) -> None:
        """Called by the SDK for every message that is not an answer."""
        kind = results.CHANGED.get(getattr(message, "method", ""))
        if kind is not None:
            self._mark({kind})

    def _mark(self, kinds: Collection[results.ListKind]) -> None:
        self._stale |= set(kinds)
        self._is_stale.set()

    async def _renew_when_stale(self) -> None:
        while True:
            await self._is_stale.wait()
            await self.renew()
            await asyncio.sleep(_RENEW_PAUSE_SECONDS)

    def _transport(self) -> contextlib.AbstractAsyncContextManager[TransportStreams]:
        server = expanded(self.server)
        self._process = None
        if server.url:
            auth = None if server.has_own_token else stored_login(server.url, Logins(self._env))
            return connect_web(
                server.url, self._headers(server), server.timeout_seconds, auth=auth, on_answer=self._note_status
            )
        environment = {**command_environment(os.environ, server.environment), **dict(server.env)}
        program = which(server.command, path=environment.get("PATH")) or server.command
        directory = self._directory / Path(server.cwd).expanduser()
        self._process = ServerProcess((program, *server.args), directory, environment)
        return self._process.connect()

    def _headers(self, server: McpServer) -> Mapping[str, str]:
        headers, variable = dict(server.headers), server.token_variable
        if variable:
            token = command_environment(os.environ, [variable]).get(variable)
            if not token:
                raise ToolError(f"the variable {variable} is not set, or holds a provider's key")
            headers["Authorization"] = f"Bearer {token}"
        return headers

    def _note_status(self, status: int) -> None:
        self._status = status

    def _fail(self, reason: str) -> None:
        self.state, self.reason = "failed", reason
        if self._status == UNAUTHORIZED:
            self.needs_login = not self.server.has_own_token
            login = f"it needs a login: /mcp login {self.server.name}"
            self.reason = login if self.needs_login else "it refused the token in its settings"
