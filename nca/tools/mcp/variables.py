"""Environment variables in the definition of an MCP server: `${NAME}` and `${NAME:-otherwise}`, as in `.mcp.json`."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import replace

from nca.config.servers import McpServer
from nca.tools.shell.environment import command_environment
from nca.tools.tool import ToolError

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
