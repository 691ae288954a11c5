"""What MCP servers give to a turn, taken up before it begins: their tools, and the resources that the text names."""

from __future__ import annotations

from nca.agent.user_input import Incoming
from nca.agent.window import Window
from nca.tools.mcp.servers import Servers
from nca.tools.toolbox import Toolbox


async def take_up(servers: Servers, text: str, toolbox: Toolbox, window: Window, incoming: Incoming) -> None:
    """Tools change only here: within a turn every request begins with the same bytes.

    Raises UsageError for a resource that cannot be read.
    """
    if not servers.names:
        return
    tools = await servers.join()
    if tools is not None:
        toolbox.take_outside(tools)
        window.take_tools()
    if window.tools:
        told = {tool["function"]["name"] for tool in window.tools}
        servers.note_left_out(tool.name for tool in toolbox.outside if tool.name not in told)
    incoming.servers = servers.names
    for name, said in await servers.mentioned(text):
        incoming.share(name, said)
