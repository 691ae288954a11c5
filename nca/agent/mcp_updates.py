"""Take up the tools of MCP servers, and the resources that a message names, before a turn begins."""

from __future__ import annotations

from nca.agent.mentions import mentions
from nca.agent.user_input import UserInput
from nca.agent.window import Window
from nca.tools.mcp.servers import Servers
from nca.tools.toolbox import Toolbox
from nca.words import Words


async def join_servers(servers: Servers, said: Words, toolbox: Toolbox, window: Window, user_input: UserInput) -> None:
    """Tools change only here, because within a turn every request must begin with the same bytes.

    Raises UsageError for a resource that cannot be read.
    """
    if not servers.names:
        return
    tools = await servers.join()
    if tools is not None:
        toolbox.take_outside(tools)
        window.take_tools()
    if window.tools:
        offered = {tool["function"]["name"] for tool in window.tools}
        servers.note_left_out(tool.name for tool in toolbox.outside if tool.name not in offered)
    typed = " ".join(match[0] for match in mentions(said))
    for name, text in await servers.mentioned(typed):
        user_input.share(name, text, "tool")
