"""Ask the MCP server as other agents do: the official SDK's client, and the program over standard input and output."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from mcp import StdioServerParameters
from mcp.client.client import Client
from mcp.client.stdio import stdio_client
from mcp_types import ListRootsResult, Root, TextContent
from pydantic import FileUrl

from nca.messages import Message, ToolCall
from nca.sessions import Store
from tests.cli.command import environment
from tests.testing.forks import standing


@asynccontextmanager
async def served(
    home: Path, *words: str, cwd: Path | None = None, roots: Sequence[Path] | None = None, **extra: str
) -> AsyncIterator[Client]:
    """A client of `nca mcp`, or of `nca mcp serve`, with `home` as its home directory.

    cwd    where it starts the server; its home directory unless it is given
    roots  what an older client names as its roots
    """
    command, *args = standing("nca", "mcp", *words)
    program = StdioServerParameters(command=command, args=args, env=environment(home, **extra), cwd=cwd or home)
    if roots is None:
        async with Client(stdio_client(program)) as client:
            yield client
        return

    async def named(context: Any) -> ListRootsResult:
        return ListRootsResult(roots=[Root(uri=FileUrl(one.as_uri())) for one in roots])

    async with Client(stdio_client(program), mode="legacy", list_roots_callback=named) as client:
        yield client


async def asked(client: Client, tool: str, **arguments: Any) -> str:
    """The text of a call that succeeds."""
    text, is_error = await tried(client, tool, **arguments)
    assert not is_error, text
    return text


async def tried(client: Client, tool: str, **arguments: Any) -> tuple[str, bool]:
    result = await client.call_tool(tool, arguments)
    [content] = result.content
    assert isinstance(content, TextContent)
    return content.text, bool(result.is_error)


def store_of(home: Path) -> Path:
    return home / "nca" / "data" / "sessions.db"


def talk(store: Store, directory: str, *texts: str, name: str = "") -> str:
    """A session of questions and answers, in turn. Returns its id."""
    with store.create(directory=directory, model="m", name=name) as session:
        session.log.append([Message("assistant" if place % 2 else "user", text) for place, text in enumerate(texts)])
        return session.info.id


def ran(command: str, output: str) -> Sequence[Message]:
    """A call of the shell and what came of it."""
    call = ToolCall("c1", "shell", f'{{"command": "{command}"}}')
    return [Message("assistant", "", tool_calls=(call,)), Message("tool", output, tool_call_id="c1", name="shell")]
