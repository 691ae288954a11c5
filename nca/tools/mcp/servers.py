"""All MCP servers of a conversation: started with its first message, read between turns, ended with it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
from collections.abc import Callable, Collection, Coroutine, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nca.config.schema import McpSettings
from nca.errors import UsageError
from nca.events import Listener, Notice
from nca.file_history import Recorder
from nca.humanize import one_line
from nca.tools.mcp.connection import Connection
from nca.tools.mcp.requests import Host
from nca.tools.mcp.results import Listing
from nca.tools.mcp.tool import McpTool
from nca.tools.tool import ToolError

_WORD = r"[^\s\"'`<>]+"
_MENTION = re.compile(rf"(?:(?<=\s)|^)@([A-Za-z0-9][A-Za-z0-9_-]*):({_WORD})")

Listed = tuple[str, str]
"""A tool as the model knows it: its server, and the digest of its listing."""


def can_be_typed(name: str) -> bool:
    """Whether a prompt's name or a resource's address can be one word of a line."""
    return name.isprintable() and re.fullmatch(_WORD, name) is not None


@dataclass(eq=False)
class Servers:
    """Nothing runs before `begin` or `join`, which may be called again.

    settings   asked for the servers now, and before each wait for how long that may take
    directory  the working directory of the programs, unless their settings name another
    recorder   records the files that their tools change
    host       answers what they ask for
    env        leads to the stored logins
    """

    settings: Callable[[], McpSettings]
    directory: Path
    can_see: Callable[[], bool]
    emit: Listener
    recorder: Recorder | None = None
    host: Host | None = None
    env: Mapping[str, str] = field(default_factory=lambda: os.environ)

    def __post_init__(self) -> None:
        servers = self.settings().servers
        given = self.directory, self.can_see, self.host, self.env
        self.connections = tuple(Connection(one, *given) for one in servers)
        self._notified: set[str] = set()
        self._known: dict[str, Listed] = {}
        self.left_out: frozenset[str] = frozenset()
        """Tools that the model is not offered, because its window has no room for them."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(one.server.name for one in self.connections)

    def begin(self) -> None:
        """Start the servers that do not run yet, and return at once."""
        for one in self.connections:
            one.start()

    async def join(self) -> list[McpTool] | None:
        """All tools, once the servers are ready or the time to wait is over; None if they are the same as before.

        Each server is waited for once; if it takes longer, its tools come with a later message. A server that was ready
        and has failed since is started again. Lists that have changed are read again.
        """
        for one in self.connections:
            await self._begin(one)
        renewed = (one.renew() for one in self.connections if one.state == "ready")
        await self._wait(*(self.find(name).settled() for name in self.awaited), *renewed)
        self._notify_states()
        tools = self.tools()
        listed = {tool.name: (tool.server_name, tool.digest) for tool in tools}
        # The order counts too: another order would change the beginning of every request, and lose the cache.
        if list(listed.items()) == list(self._known.items()):
            return None
        self._notify_changes(listed)
        self._known = listed
        return tools

    async def _begin(self, one: Connection) -> None:
        """Start a server that does not run yet, or was ready and has failed since."""
        if one.state == "failed" and one.listing != Listing():
            await one.stop()
            self._notified.discard(one.server.name)
        one.start()

    async def _ready(self, name: str) -> Connection:
        """A server that the person asks for something, once it runs. Raises UsageError if it does not."""
        one = self.find(name)
        await self._begin(one)
        await one.settled()
        if one.state != "ready":
            restart = f"/mcp restart {name} tries again. " * (one.state == "failed" and not one.needs_login)
            why = one.why.rstrip(".") or one.state
            raise UsageError(f"The MCP server {name} is not running ({why}).", advice=f"{restart}Nothing was sent.")
        return one

    @property
    def awaited(self) -> list[str]:
        """The servers for which the next message waits: they are starting, and nobody has waited for them yet."""
        starting = (one.server.name for one in self.connections if one.state == "starting")
        return [name for name in starting if name not in self._notified]

    def tools(self) -> list[McpTool]:
        """The tools of all servers that were ready. If one has failed since, a call says why."""
        tools: dict[str, McpTool] = {}
        for one in self.connections:
            for offer in one.listing.offers:
                tool = McpTool(one.server, offer, one.call, self.recorder)
                tools.setdefault(tool.name, tool)
        return list(tools.values())

    def note_left_out(self, wanted: Collection[str], offered: Collection[str]) -> None:
        """Notify the person which of the tools that are on have no room, if these have changed."""
        before, self.left_out = self.left_out, frozenset(wanted).difference(offered)
        if self.left_out and self.left_out != before:
            count = f"{len(self.left_out)} of {len(wanted)}"
            self.emit(Notice(f"No room for {count} tools of MCP servers in this window; /mcp NAME shows which."))

    async def restart(self, name: str) -> Connection:
        """Restart a server. Its tools come with the next message. Raises UsageError."""
        one = self.find(name)
        await one.stop()
        self._notified.discard(name)
        one.start()
        await one.settled()
        if one.state == "failed":
            self._notified.add(name)
        return one

    def find(self, name: str) -> Connection:
        """The connection to a server. Raises UsageError if there is no such server."""
        for one in self.connections:
            if one.server.name == name:
                return one
        known = ", ".join(self.names) or "none; to add one: nca mcp add NAME -- COMMAND"
        raise UsageError(f"There is no MCP server {one_line(name, 40)!r}.", advice=f"Valid: {known}.")

    def prompts(self) -> Iterator[tuple[str, str, str]]:
        """Each prompt that can be typed: its name after the slash, its arguments in words, and what it is about."""
        for one in self.connections:
            for prompt in filter(lambda each: can_be_typed(each.name), one.listing.prompts):
                given = (each.name if each.required else f"[{each.name}]" for each in prompt.arguments or ())
                about = prompt.description or prompt.title or ""
                yield f"mcp:{one.server.name}:{prompt.name}", " ".join(given), about

    def follow(self, changed: Callable[[], None]) -> None:
        """From now on, call `changed` whenever what a server offers is read."""
        for one in self.connections:
            one.on_listing = changed

    async def prompt(self, server: str, name: str, words: str) -> str:
        """A server's prompt as text. Its arguments are taken from `words`, and the last one gets the rest.

        Raises UsageError.
        """
        one = await self._ready(server)
        await one.renew()
        known = {prompt.name: prompt for prompt in one.listing.prompts}
        if name not in known:
            listed = ", ".join(known) or "none"
            raise UsageError(f"{server} has no prompt {one_line(name, 60)!r}.", advice=f"Valid: {listed}.")
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
        """The resources that the text mentions as `@server:uri`, each with its text. Raises UsageError."""
        found: dict[str, str] = {}
        for match in _MENTION.finditer(text):
            server, uri = match[1], match[2].rstrip(".,;!?)")
            if server not in self.names or f"{server}:{uri}" in found:
                continue
            one = await self._ready(server)
            try:
                found[f"{server}:{uri}"] = await one.resource(uri)
            except ToolError as error:
                raise UsageError(f"@{server}:{uri}: {error}", advice="Nothing was sent.") from error
        return list(found.items())

    async def close(self) -> None:
        """Stop all servers in parallel."""
        await asyncio.gather(*(one.stop() for one in self.connections), return_exceptions=True)

    async def _wait(self, *waiting: Coroutine[Any, Any, None]) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self.settings().wait_seconds):
                await asyncio.gather(*waiting, return_exceptions=True)

    def _notify_changes(self, listed: Mapping[str, Listed]) -> None:
        """Notify the person of servers that changed their tools since the model was told of them."""
        before = self._known
        for one in self.connections:
            name = one.server.name
            old = {tool: said for tool, said in before.items() if said[0] == name}
            new = {tool: said for tool, said in listed.items() if said[0] == name}
            if one.state != "ready" or not old or old == new:
                continue
            counts = len(new.keys() - old.keys()), sum(new[key] != old[key] for key in new.keys() & old.keys())
            said = f"{counts[0]} new, {counts[1]} changed, {len(old.keys() - new.keys())} gone"
            self.emit(Notice(f"The MCP server {name} has changed its tools: {said}. /mcp {name} shows them."))

    def _notify_states(self) -> None:
        """Notify the person once of each server that failed or is slow to start."""
        for one in self.connections:
            name = one.server.name
            if one.state == "failed" and one.reason and f"{name} {one.reason}" not in self._notified:
                self._notified |= {name, f"{name} {one.reason}"}
                failed = f"failed: {one.why.rstrip('.')}. /mcp shows more."
                said = f"needs a login: /mcp login {name}" if one.needs_login else failed
                self.emit(Notice(f"The MCP server {name} {said}"))
            elif name in self.awaited:
                self._notified.add(name)
                said = "is still starting: this message goes without its tools (mcp.wait_seconds)."
                self.emit(Notice(f"The MCP server {name} {said}"))
