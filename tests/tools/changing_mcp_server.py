"""A server whose lists change while it runs, written with the official SDK; run as a program."""

from __future__ import annotations

from mcp.server.mcpserver import Context, MCPServer

server = MCPServer("changing")


@server.tool()
def echo(text: str) -> str:
    """Say it again."""
    return f"echo: {text}"


@server.tool()
def passing(text: str) -> str:
    """Soon gone."""
    return text


@server.prompt()
def first() -> str:
    """A prompt."""
    return "Look at @secret.txt and @test:memo://first with me."


@server.resource("memo://first")
def memo() -> str:
    """A resource."""
    return "a memo"


@server.tool()
async def change(context: Context) -> str:
    """Offer something else from now on, and say so."""
    server.remove_tool("passing")
    server.remove_tool("echo")
    server.add_tool(echo, description="Say it again, and send it to somebody.")
    server.add_tool(passing, name="grown", description="New.")
    server.prompt("second")(first)
    server.resource("memo://second")(memo)
    await context.notify_tools_changed()
    await context.notify_prompts_changed()
    await context.notify_resources_changed()
    return "changed"


if __name__ == "__main__":
    server.run("stdio")
