"""All servers of a conversation: started with its first message, taken up between turns, ended with it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from nca.config.schema import McpSettings
from nca.errors import UsageError
from nca.events import Listener, Notice
from nca.tools.mcp.connection import Connection
from nca.tools.mcp.tool import McpTool
from nca.tools.tool import Tool, ToolError

_MENTION = re.compile(r"(?:(?<=\s)|^)@([A-Za-z0-9][A-Za-z0-9_-]*):([^\s\"'`<>]+)")


class Servers:
    """Nothing runs before `begin` or `join`; both may be called again.

    directory  where programs are started, unless their settings name another
    """

    def __init__(self, settings: McpSettings, directory: Path, can_see: Callable[[], bool], emit: Listener) -> None:
        self.connections = tuple(Connection(server, directory, can_see) for server in settings.servers)
        self._wait_seconds = settings.wait_seconds
        self._emit = emit
        self._told: set[str] = set()
        self._taken: list[tuple[str, str, dict[str, Any]]] = []

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(one.server.name for one in self.connections)

    def begin(self) -> None:
        """Start what is not running yet, and return at once."""
        for one in self.connections:
            one.start()

    async def join(self) -> list[Tool] | None:
        """All tools there are now, once the servers are ready or the patience is over; None: the same as before.

        A server is waited for once; where it takes longer, its tools come with a later message. One that was ready
        and has ended since is started again.
        """
        for one in self.connections:
            if one.state == "failed" and one.offers:
                await one.stop()
                self._told.discard(one.server.name)
        self.begin()
        starting = [one for one in self.connections if one.state == "starting" and one.server.name not in self._told]
        if starting:
            tasks = [asyncio.create_task(one.settled()) for one in starting]
            try:
                await asyncio.wait(tasks, timeout=self._wait_seconds)
            finally:
                for task in tasks:
                    task.cancel()
        self._tell()
        tools = self.tools()
        told = [(tool.name, tool.description, tool.parameters) for tool in tools]
        if told == self._taken:
            return None
        self._taken = told
        return tools

    def tools(self) -> list[Tool]:
        """The tools of all servers that are ready, and of those that have failed since: a call says why."""
        tools: dict[str, Tool] = {}
        for one in self.connections:
            for offer in one.offers:
                tool = McpTool(one.server, offer, one.call)
                tools.setdefault(tool.name, tool)
        return list(tools.values())

    async def restart(self, name: str) -> Connection:
        """End and start it again; its tools are taken up with the next message. Raises UsageError."""
        one = self.find(name)
        await one.stop()
        self._told.discard(name)
        one.start()
        await one.settled()
        if one.state == "failed":
            self._told.add(name)
        return one

    def find(self, name: str) -> Connection:
        """Raises UsageError for a server that there is not."""
        for one in self.connections:
            if one.server.name == name:
                return one
        known = ", ".join(self.names) or "none; [mcp.servers.NAME] in config.toml makes one"
        raise UsageError(f"There is no MCP server {name[:40]!r}.", advice=f"There are: {known}.")

    async def prompt(self, server: str, name: str, words: str) -> str:
        """A server's prompt as text, its arguments in their order from `words`, the last one to the end.

        Raises UsageError.
        """
        one = self.find(server)
        one.start()
        await one.settled()
        known = {prompt.name: prompt for prompt in one.prompts}
        if name not in known:
            listed = ", ".join(known) or one.reason or "none"
            raise UsageError(f"{server} has no prompt {name[:60]!r}.", advice=f"There are: {listed}.")
        wanted = known[name].arguments or []
        given = words.split(None, len(wanted) - 1) if wanted else []
        missing = [argument.name for argument in wanted[len(given) :] if argument.required]
        if missing:
            raise UsageError(f"/mcp:{server}:{name} needs {', '.join(missing)}.", advice="Nothing was sent.")
        arguments = {argument.name: word for argument, word in zip(wanted, given, strict=False)}
        try:
            return await one.prompt(name, arguments)
        except ToolError as error:
            raise UsageError(str(error), advice="Nothing was sent.") from error

    async def mentioned(self, text: str) -> list[tuple[str, str]]:
        """The resources that the text names as `@server:uri`, each with its text. Raises UsageError."""
        found: dict[str, str] = {}
        for match in _MENTION.finditer(text):
            server, uri = match[1], match[2].rstrip(".,;!?)")
            if server not in self.names or f"{server}:{uri}" in found:
                continue
            try:
                found[f"{server}:{uri}"] = await self.find(server).resource(uri)
            except ToolError as error:
                raise UsageError(f"@{server}:{uri}: {error}", advice="Nothing was sent.") from error
        return list(found.items())

    async def close(self) -> None:
        """End all of them, at the same time."""
        await asyncio.gather(*(one.stop() for one in self.connections), return_exceptions=True)

    def _tell(self) -> None:
        """What became of a server that was to start; once."""
        for one in self.connections:
            name = one.server.name
            if one.state == "failed" and one.reason and f"{name} {one.reason}" not in self._told:
                self._told |= {name, f"{name} {one.reason}"}
                self._emit(Notice(f"The MCP server {name} failed: {one.reason}. /mcp shows more."))
            elif one.state == "starting" and name not in self._told:
                self._told.add(name)
                self._emit(Notice(f"The MCP server {name} is still starting; its tools come with a later message."))
