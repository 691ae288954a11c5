"""/mcp: show the MCP servers and what each offers; restart one."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from rich.style import Style
from rich.text import Text

from nca.config.servers import McpServer
from nca.errors import UsageError
from nca.humanize import counted
from nca.terminal.commands.command import App, Command, Suggestion, beginning_with
from nca.terminal.render.layout import WHOLE, fitting_table, new_table
from nca.terminal.render.sanitize import one_line
from nca.tools.mcp.connection import Connection
from nca.tools.mcp.tool import tool_name

_ACTIONS = {"login": "log in to a server", "restart": "restart a server"}
_STYLES = {"ready": "accent", "failed": "failure"}


class McpCommand(Command):
    name = "mcp"
    usage = "/mcp\n/mcp NAME\n/mcp login NAME\n/mcp restart NAME"
    about = "MCP servers and their state; NAME shows what one offers"

    def needs_person(self, app: App, argument: str) -> str:
        return "starts a server" if argument.partition(" ")[0] in _ACTIONS else ""

    async def run(self, app: App, argument: str) -> None:
        servers = app.conversation.servers
        word, _, name = argument.partition(" ")
        if not argument:
            _show_all(app, servers.connections)
            for one in servers.connections:
                _show_errors(app, one)
        elif word not in _ACTIONS:
            _show_one(app, servers.find(argument), servers.left_out)
        elif not name.strip():
            raise UsageError(f"/mcp {word} needs a server's name.", advice="/mcp shows them.")
        elif app.conversation.session.is_read_only:
            raise UsageError("This session is read-only; no server is started.")
        else:
            if word == "login":
                await _log_in(app, servers.find(name.strip()).server)
            _show_one(app, await servers.restart(name.strip()), servers.left_out)

    def complete(self, app: App, argument: str) -> Iterable[Suggestion]:
        names = app.conversation.servers.names
        word, blank, rest = argument.partition(" ")
        if not blank:
            words = [*_ACTIONS.items(), *((name, "what it offers") for name in names)]
            return beginning_with(word, words)
        return beginning_with(rest, ((name, "") for name in names)) if word in _ACTIONS else ()


async def _log_in(app: App, server: McpServer) -> None:
    # The SDK's types come with it.
    from nca.tools.mcp.oauth import log_in

    def show(address: str) -> None:
        app.output.show("Log in on this page. If there is a browser, it opens the page. Ctrl-C stops waiting.")
        shown = one_line(address, len(address))
        # A link, because the address is broken into lines.
        app.output.show(Text(shown, Style(link=shown)))

    if not await log_in(server, show):
        app.output.show(Text(f"{server.name} needs no login."))


def _show_all(app: App, connections: tuple[Connection, ...]) -> None:
    if not connections:
        app.output.show("No MCP servers. To add one: nca mcp add NAME -- COMMAND, or nca mcp add NAME --url URL.")
        return
    columns = {
        "server": [Text(one.server.name) for one in connections],
        "state": [Text(_state(one), _STYLES.get(one.state, "quiet")) for one in connections],
        "": [Text(one_line(_about(one), 200)) for one in connections],
        "started with": [Text(one_line(str(one.server), 200), "quiet") for one in connections],
    }
    app.output.show(fitting_table(columns, gives_way="started with", least=WHOLE, wraps=True))


def _show_one(app: App, one: Connection, left_out: Collection[str]) -> None:
    said = ", ".join(filter(None, (_state(one), _about(one))))
    app.output.show(Text(one_line(f"{one.server.name}: {said}", 400)))
    table = new_table()
    for offer in one.listing.offers:
        name = tool_name(one.server.name, offer.name)
        about = "(does not fit this window)" if name in left_out else one_line(offer.description, 100)
        table.add_row(Text(one_line(name)), Text(about, "quiet"))
    for prompt in one.listing.prompts:
        name = f"/mcp:{one.server.name}:{prompt.name}"
        table.add_row(Text(one_line(name, 100)), Text(one_line(prompt.description or "", 100), "quiet"))
    for resource in one.listing.resources:
        name = f"@{one.server.name}:{resource.uri}"
        table.add_row(Text(one_line(name, 200)), Text(one_line(resource.description or resource.name, 100), "quiet"))
    if table.row_count:
        app.output.show(table)
    _show_errors(app, one)


def _show_errors(app: App, one: Connection) -> None:
    lines = one.error_lines
    if one.state == "failed" and lines:
        app.output.show(Text(f"The end of the error output of {one_line(one.server.name)}:"))
        for line in lines:
            app.output.show(Text(f"  {one_line(line, 200)}", "quiet"))


def _state(one: Connection) -> str:
    return one.state if one.server.enabled else "off (enabled = false)"


def _about(one: Connection) -> str:
    if one.state == "failed":
        return one.reason
    if one.state != "ready":
        return ""
    offered = (("tool", one.listing.offers), ("prompt", one.listing.prompts), ("resource", one.listing.resources))
    return ", ".join(counted(len(what), name) for name, what in offered if what or name == "tool")
