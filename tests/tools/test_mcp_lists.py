"""Lists of a server that change while it runs, announced in both ways that the protocol has had."""

from __future__ import annotations

import asyncio
import sys

import pytest

from nca.config.schema import McpSettings
from nca.config.servers import McpServer
from nca.events import Event, Notice
from nca.tools.mcp.servers import Servers
from nca.tools.tool import ToolError
from tests.testing.forks import standing
from tests.tools.test_mcp import ROOT, connected

ENV = (("PYTHONPATH", str(ROOT)),)
OLD = McpServer(name="old", command=sys.executable, args=("-m", "tests.tools.old_mcp_server"), env=ENV)


def changing_server(name: str = "it") -> McpServer:
    program, *args = standing("tests.tools.changing_mcp_server")
    return McpServer(name=name, command=program, args=tuple(args), env=ENV)


async def test_all_lists_are_read_again_once_it_says_so() -> None:
    async with connected(changing_server()) as server:
        assert [offer.name for offer in server.listing.offers] == ["echo", "passing", "change"]
        before, prompts = server.listing, list[int]()
        server.on_listing = lambda: prompts.append(len(server.listing.prompts))
        assert (await server.call("change", {})).text == "changed"
        while server.listing.resources == before.resources:
            await asyncio.sleep(0.01)
        assert [offer.name for offer in server.listing.offers] == ["change", "echo", "grown"]
        assert [prompt.name for prompt in server.listing.prompts] == ["first", "second"]
        assert prompts[-1] == 2
        assert [resource.uri for resource in server.listing.resources] == ["memo://first", "memo://second"]
        assert await server.resource("memo://second") == "a memo"


async def test_an_older_protocol_tells_without_being_asked() -> None:
    async with connected(OLD) as server:
        # A tool that can only be run as a task would be offered in vain.
        assert [offer.name for offer in server.listing.offers] == ["grow", "deaf", "echo", "ask"]
        await server.call("grow", {})
        while len(server.listing.offers) == 4:
            await asyncio.sleep(0.01)
        assert server.listing.offers[-1].name == "grown5"
        await server.call("grow", {})
        while len(server.listing.offers) == 5:
            await asyncio.sleep(0.01)


async def test_what_has_changed_is_taken_up_with_the_next_message_and_told() -> None:
    events: list[Event] = []
    servers = Servers(lambda: McpSettings(servers=(changing_server(), OLD)), ROOT, lambda: False, events.append)
    try:
        tools = await servers.join()
        assert tools is not None
        assert [tool.name for tool in tools if tool.server_name == "it"] == [
            "mcp__it__echo",
            "mcp__it__passing",
            "mcp__it__change",
        ]
        assert await servers.join() is None
        assert events == []
        connection = servers.find("it")
        await connection.call("change", {})
        # The word of it comes on another way than the answer.
        while (changed := await servers.join()) is None:
            await asyncio.sleep(0.01)
        assert [tool.name for tool in changed if tool.server_name == "it"] == [
            "mcp__it__change",
            "mcp__it__echo",
            "mcp__it__grown",
        ]
        (said,) = [event.message for event in events if isinstance(event, Notice)]
        assert said == "The MCP server it has changed its tools: 1 new, 1 changed, 1 gone. /mcp it shows them."
        assert await servers.join() is None
    finally:
        await servers.close()


async def test_what_was_allowed_is_the_tool_as_it_was() -> None:
    servers = Servers(lambda: McpSettings(servers=(changing_server(),)), ROOT, lambda: False, lambda _: None)
    try:
        before = {tool.name: tool.approval({}).subject for tool in await servers.join() or ()}
        await servers.find("it").call("change", {})
        while (changed := await servers.join()) is None:
            await asyncio.sleep(0.01)
        after = {tool.name: tool.approval({}).subject for tool in changed}
        assert after["mcp__it__change"] == before["mcp__it__change"]
        assert after["mcp__it__echo"] != before["mcp__it__echo"]
        await servers.restart("it")
        again = {tool.name: tool.approval({}).subject for tool in servers.tools()}
        assert again == before
    finally:
        await servers.close()


async def test_one_that_reads_nothing_more_costs_its_time_and_no_more() -> None:
    """More than a pipe holds is waiting then; the SDK would take five seconds to give that up."""
    async with connected(OLD) as server:
        object.__setattr__(server.server, "timeout_seconds", 0.3)
        try:
            with pytest.raises(ToolError, match="did not answer"):
                await server.call("deaf", {})
            asking = asyncio.create_task(server.call("echo", {"text": "x" * 1_000_000}))
            with pytest.raises(ToolError, match="did not answer"):
                await asking
            assert server._asking, "what was given up goes on beside it"
            object.__setattr__(server.server, "timeout_seconds", 600.0)
            asking = asyncio.create_task(server.call("echo", {"text": "x" * 1_000_000}))
            await asyncio.sleep(0.1)
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
            assert server.state == "ready"
        finally:
            object.__setattr__(server.server, "timeout_seconds", 60.0)
    assert not server._asking
