"""One server of a conversation: off, starting, ready or failed; and what is asked of it.

A task of its own holds the connection from beginning to end. Whatever a server does, a question to it ends within its
time with an answer or a ToolError of one line.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING, Any, Literal

from nca.config.servers import McpServer
from nca.messages import clean_text
from nca.tools.environment import command_environment
from nca.tools.mcp.results import described, outcome_of, text_of_resource
from nca.tools.mcp.stdio import ServerProcess
from nca.tools.mcp.tool import Offer
from nca.tools.tool import ToolError, ToolOutcome

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams
    from mcp.client.client import Client
    from mcp_types import Prompt, Resource

State = Literal["off", "starting", "ready", "failed"]
MOST_TOOLS = 200
_MOST_PAGES = 50
_STOP_SECONDS = 3.0
_REASON_CHARS = 200


class Connection:
    """`state` and, where it failed, `reason` in one line. `offers`, `prompts` and `resources` are what it listed."""

    def __init__(self, server: McpServer, directory: Path, can_see: Callable[[], bool]) -> None:
        self.server = server
        self.state: State = "off"
        self.reason = ""
        self.offers: tuple[Offer, ...] = ()
        self.prompts: tuple[Prompt, ...] = ()
        self.resources: tuple[Resource, ...] = ()
        self._directory = directory
        self._can_see = can_see
        self._task: asyncio.Task[None] | None = None
        self._client: Client | None = None
        self._process: ServerProcess | None = None
        self._stop = asyncio.Event()
        self._settled = asyncio.Event()

    @property
    def errors(self) -> str:
        """The end of what the program wrote to its error output."""
        return clean_text(self._process.errors) if self._process is not None else ""

    def start(self) -> None:
        if self.state == "off" and self.server.enabled:
            self.state = "starting"
            self._task = asyncio.create_task(self._run())

    async def settled(self) -> None:
        """Until it is ready, or has failed."""
        if self.state == "starting":
            await self._settled.wait()

    async def stop(self) -> None:
        """End it, its whole group of processes too."""
        task, self._task = self._task, None
        self._stop.set()
        if task is not None:
            await asyncio.wait([task], timeout=0 if self.state == "starting" else _STOP_SECONDS)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        self.state, self.reason, self.offers, self.prompts, self.resources = "off", "", (), (), ()
        self._stop, self._settled = asyncio.Event(), asyncio.Event()

    async def call(self, tool: str, arguments: dict[str, Any]) -> ToolOutcome:
        """Raises ToolError in one line, whatever happened to the server."""
        result = await self._asked(lambda client: client.call_tool(tool, arguments))
        return await asyncio.to_thread(outcome_of, result, can_see=self._can_see())

    async def prompt(self, name: str, arguments: dict[str, str]) -> str:
        """The prompt's messages as one text. Raises ToolError."""
        result = await self._asked(lambda client: client.get_prompt(name, arguments))
        return "\n\n".join(described(message.content) for message in result.messages)

    async def resource(self, uri: str) -> str:
        """The resource's text. Raises ToolError."""
        result = await self._asked(lambda client: client.read_resource(uri))
        return text_of_resource(result.contents)

    async def _asked(self, question: Callable[[Client], Awaitable[Any]]) -> Any:
        name, seconds = self.server.name, self.server.timeout_seconds
        if self._client is None or self.state != "ready":
            why = self.reason or self.state
            raise ToolError(f"the MCP server {name} is not running ({why}); the person can: /mcp restart {name}")
        try:
            async with asyncio.timeout(seconds):
                return await question(self._client)
        except TimeoutError:
            raise ToolError(f"the MCP server {name} did not answer within {seconds:g} seconds") from None
        except Exception as error:
            # The SDK raises errors of its own, of pydantic, of anyio and of HTTP: all of them mean that no answer came.
            ended = self._process.reason if self._process is not None else ""
            if ended:
                self._fail(ended)
            raise ToolError(f"the MCP server {name}: {ended or one_reason(error)}") from error

    async def _run(self) -> None:
        try:
            await self._connected()
        except TimeoutError:
            self._fail(f"it did not start within {self.server.timeout_seconds:g} seconds")
        except Exception as error:  # noqa: BLE001  whatever a server or the SDK does, the chat goes on
            ended = self._process.reason if self._process is not None else ""
            self._fail(ended or one_reason(error))
        finally:
            self._client = None
            self._settled.set()

    async def _connected(self) -> None:
        """From the start to the end of the connection."""
        # Half a second of imports; on a thread, so that nobody who types has to wait for them.
        client_class = await asyncio.to_thread(_load_sdk)
        async with asyncio.timeout(self.server.timeout_seconds) as limit:
            async with client_class(self._transport(), cache=None) as client:
                await self._list(client)
                limit.reschedule(None)
                self._client = client
                self.state = "ready"
                self._settled.set()
                await self._until_stopped()
            if not self._stop.is_set():
                self._fail(self._process.reason if self._process else "it is gone")

    async def _until_stopped(self) -> None:
        waiting = [asyncio.create_task(self._stop.wait())]
        if self._process is not None:
            waiting.append(asyncio.create_task(self._process.ended.wait()))
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in waiting:
                task.cancel()
        if not self._stop.is_set():
            self.state = "failed"

    async def _list(self, client: Client) -> None:
        self.offers = tuple(
            Offer(
                tool.name,
                tool.description or (tool.title or ""),
                tool.input_schema,
                is_read_only=bool(tool.annotations and tool.annotations.read_only_hint),
            )
            for tool in await _pages(client.list_tools, "tools")
        )
        offered = client.server_capabilities
        # A server without prompts or resources is as good as one whose list cannot be read.
        from mcp import MCPError

        with contextlib.suppress(MCPError):
            self.prompts = tuple(await _pages(client.list_prompts, "prompts")) if offered.prompts else ()
        with contextlib.suppress(MCPError):
            self.resources = tuple(await _pages(client.list_resources, "resources")) if offered.resources else ()

    def _transport(self) -> contextlib.AbstractAsyncContextManager[TransportStreams]:
        server = self.server
        self._process = None
        if server.url:
            from nca.tools.mcp.web import connect_web

            return connect_web(server.url, self._headers(), server.timeout_seconds)
        environment = {**command_environment(os.environ, server.environment), **dict(server.env)}
        program = which(server.command, path=environment.get("PATH")) or server.command
        directory = self._directory / Path(server.cwd).expanduser()
        self._process = ServerProcess((program, *server.args), directory, environment)
        return self._process.connect()

    def _headers(self) -> Mapping[str, str]:
        headers, variable = dict(self.server.headers), self.server.token_variable
        if variable:
            token = command_environment(os.environ, [variable]).get(variable)
            if not token:
                raise ToolError(f"the variable {variable} is not set, or holds a provider's key")
            headers["Authorization"] = f"Bearer {token}"
        return headers

    def _fail(self, reason: str) -> None:
        self.state, self.reason = "failed", reason


async def _pages(ask: Any, field: str) -> list[Any]:
    """All pages of a list, as far as the bounds go."""
    found: list[Any] = []
    cursor: str | None = None
    for _ in range(_MOST_PAGES):
        page = await ask(cursor=cursor)
        found += getattr(page, field)
        cursor = page.next_cursor
        if cursor is None or len(found) >= MOST_TOOLS:
            break
    return found[:MOST_TOOLS]


def _load_sdk() -> Any:
    from mcp.client.client import Client

    # Without a handler Python writes the SDK's warnings to the terminal.
    logging.getLogger("mcp").addHandler(logging.NullHandler())
    return Client


def one_reason(error: BaseException) -> str:
    """The innermost of a group of errors, in one line."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, OSError) and error.strerror:
        where = f": {error.filename}" if error.filename else ""
        return f"{error.strerror}{where}"
    line = " ".join(clean_text(str(error)[: 10 * _REASON_CHARS]).split()) or type(error).__name__
    return line if len(line) <= _REASON_CHARS else line[: _REASON_CHARS - 1] + "…"
