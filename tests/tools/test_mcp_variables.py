"""`${NAME}` in the definition of an MCP server."""

from __future__ import annotations

import pytest

from nca.config.servers import McpServer
from nca.tools.mcp.transports import expanded
from nca.tools.tool import ToolError

ENV = {"HOME": "/home/me", "TRACKER_TOKEN": "t-1", "OPENAI_API_KEY": "sk-secret-secret-secret"}


def test_variables_are_filled_in_everywhere() -> None:
    server = McpServer(
        "a", "${HOME}/bin/a", ("--token=${TRACKER_TOKEN}", "${PORT:-80}", "$HOME"), (("T", "${TRACKER_TOKEN}"),)
    )
    found = expanded(server, ENV)
    assert (found.command, found.args, found.env) == (
        "/home/me/bin/a",
        ("--token=t-1", "80", "$HOME"),
        (("T", "t-1"),),
    )
    web = McpServer(
        "b", url="https://${HOST:-example.org}/mcp", headers=(("Authorization", "Bearer ${TRACKER_TOKEN}"),)
    )
    assert expanded(web, ENV).url == "https://example.org/mcp"
    assert expanded(web, ENV).headers == (("Authorization", "Bearer t-1"),)


@pytest.mark.parametrize("text", ["${OPENAI_API_KEY}", "${NOT_SET}"])
def test_a_providers_key_and_what_is_not_set_are_refused(text: str) -> None:
    with pytest.raises(ToolError, match="is not set, or holds a provider's key"):
        expanded(McpServer("a", "a", (text,)), ENV)
    assert expanded(McpServer("a", "a", (text.replace("}", ":-none}"),)), ENV).args == ("none",)
