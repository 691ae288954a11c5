"""MCP servers that a client names for a session."""

from __future__ import annotations

import re
from collections.abc import Sequence

from acp.schema import AcpMcpServer, HttpMcpServer, McpServerStdio, SseMcpServer

from nca.config.servers import McpServer
from nca.errors import UsageError
from nca.terminal.render.sanitize import one_line

_NAME_CHARS = 32


def servers_of(
    given: Sequence[HttpMcpServer | SseMcpServer | AcpMcpServer | McpServerStdio],
) -> tuple[McpServer, ...]:
    """The servers as settings. Raises UsageError for one that nca cannot use."""
    found: dict[str, McpServer] = {}
    for one in given:
        name = _name(one.name, found)
        try:
            if isinstance(one, McpServerStdio):
                env = tuple((pair.name, pair.value) for pair in one.env)
                found[name] = McpServer(name=name, command=one.command, args=tuple(one.args), env=env)
            elif isinstance(one, HttpMcpServer):
                headers = tuple((pair.name, pair.value) for pair in one.headers)
                found[name] = McpServer(name=name, url=one.url, headers=headers)
            else:
                raise ValueError("valid are a program and an HTTP address")
        except ValueError as error:
            raise UsageError(f"MCP server {one_line(one.name, 40)!r}: {error}.") from error
    return tuple(found.values())


def _name(wanted: str, taken: dict[str, McpServer]) -> str:
    """A name that can be part of a tool's name."""
    plain = re.sub(r"[^A-Za-z0-9_-]+", "-", wanted).strip("-_")[:_NAME_CHARS] or "server"
    name, count = plain, 1
    while name in taken:
        count += 1
        name = f"{plain[: _NAME_CHARS - len(str(count)) - 1]}-{count}"
    return name
