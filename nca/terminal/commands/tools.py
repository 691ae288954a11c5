"""/tools: list the model's tools with their permissions, tokens and calls; show one in detail.
/jobs: show the commands that the model runs in the background, and their output; stop one.
/mcp: show the MCP servers and what each offers; restart one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.style import Style
from rich.text import Text

from nca.agent.tool_selection import BUILT_IN, ToolCount, tool_counts
from nca.config.servers import McpServer
from nca.config.tables import TOOLS
from nca.errors import UsageError
from nca.humanize import counted, duration, short_tokens
from nca.terminal.commands.command import App, Command, Suggestion, beginning_with, nearest
from nca.terminal.render.layout import WHOLE, Parted, fitting_table, new_table
from nca.terminal.render.sanitize import one_line, to_terminal
from nca.tools.mcp.connection import Connection
from nca.tools.mcp.tool import tool_name
from nca.tools.permissions import decide

if TYPE_CHECKING:
    from nca.tools.shell.jobs import Job, Jobs


_DECISIONS = {"allow": "runs", "ask": "asks", "deny": "denied"}
_RESULTS = "result tokens"
NAME_CELLS = 24
"""Of a tool's name, which nca's own tools are shorter than; the other columns give way to it."""
MOST_OF_A_SERVER = 6
"""A server with more tools than this is one row; its name lists them."""


class ToolsCommand(Command):
    name = "tools"

    def needs_person(self, app: App, argument: str) -> str:
        return "gives the model a tool" if argument.split()[:1] == ["on"] else ""

    def only_shows(self, argument: str) -> bool:
        return argument.split()[:1] not in (["on"], ["off"])

    async def run(self, app: App, argument: str) -> None:
        counts = counts_of(app)
        wanted = argument.strip()
        first, _, name = wanted.partition(" ")
        # As settings take them: by Claude Code's names too.
        wanted, name = (TOOLS.get(one, one) for one in (wanted, name.strip()))
        if not wanted:
            _show_all(app, counts)
        elif first in ("on", "off") and name in {one.name for one in counts}:
            _switch(app, name, is_on=first == "on")
        elif of_server := [one for one in counts if one.source == wanted and wanted != BUILT_IN]:
            app.output.show(_table(app, of_server))
        elif one := next((one for one in counts if one.name == wanted), None):
            _show_one(app, one)
        else:
            names = [one_line(one.name) for one in counts]
            word, meant = (f"{first} ", name) if first in ("on", "off") and name else ("", wanted)
            near = nearest(meant, names)
            there = f"Did you mean /tools {word}{near}?" if near else f"Valid: {', '.join(names) or 'none'}."
            raise UsageError(f"There is no tool {one_line(meant, 60)}.", advice=there)

    def complete(self, app: App, argument: str) -> Iterable[Suggestion]:
        # Names only: their size takes a look through the whole log, and this runs at every key.
        tools = [tool["function"] for tool in app.conversation.toolbox.definitions()]
        sources = _sources(app)
        named = [(tool["name"], tool["description"].partition(". ")[0]) for tool in tools]
        first, blank, rest = argument.partition(" ")
        if blank and first in ("on", "off"):
            return beginning_with(rest, named)
        servers = dict.fromkeys(sources[tool["name"]] for tool in tools if tool["name"] in sources)
        named += [(server, "the tools of this server") for server in servers]
        return beginning_with(argument, named)


def counts_of(app: App) -> list[ToolCount]:
    conversation = app.conversation
    parts = conversation.context.stats().parts
    return tool_counts(
        conversation.toolbox,
        conversation.context.next_request().tools,
        conversation.context.entries,
        definitions_tokens=parts["tool_definitions"] + parts["mcp_tools"],
        sources=_sources(app),
    )


def _sources(app: App) -> dict[str, str]:
    """The server of each tool that is one's."""
    return {
        tool_name(one.server.name, offer.name): one.server.name
        for one in app.conversation.servers.connections
        for offer in one.listing.offers
    }


def _switch(app: App, name: str, *, is_on: bool) -> None:
    before = app.conversation.loaded.settings.tools.off
    off = [one for one in before if not fnmatchcase(name, one)]
    # Of a name with `*` the other tools stay off.
    fitting = [one for one in before if one not in (*off, name)]
    off += [tool for tool in app.conversation.toolbox.names if any(fnmatchcase(tool, one) for one in fitting)]
    off = [one for one in dict.fromkeys(off) if one != name]
    app.conversation.set("tools.off", [*off, *([] if is_on else [name])])
    said = (
        "again with the next request" if is_on else f"no longer in this chat; /tools on {one_line(name)} gives it back"
    )
    app.output.show(f"The model gets {one_line(name)} {said}.")


def _show_all(app: App, counts: Sequence[ToolCount]) -> None:
    if not counts:
        app.output.show("The model has no tools.")
        return
    by_source: dict[str, list[ToolCount]] = {}
    for one in counts:
        by_source.setdefault(one.source, []).append(one)
    listed = [one for of in by_source.values() if of[0].source == BUILT_IN or len(of) <= MOST_OF_A_SERVER for one in of]
    app.output.show(_table(app, listed))
    for source, of in by_source.items():
        if of[0] not in listed:
            tokens, calls = sum(one.definition_tokens for one in of), sum(one.calls for one in of)
            name = one_line(source, 40)
            said = f"{name}: {len(of)} tools, {tokens:,} tokens, {counted(calls, 'call')}"
            app.output.show(f"{said}; /tools {name} lists them.")
    weight = sum(one.definition_tokens for one in counts)
    mode = app.conversation.approvals.mode
    app.output.show(f"All tools: {weight:,} tokens of each request. Permission mode: {mode} (/permissions).")


def _table(app: App, counts: Sequence[ToolCount]) -> RenderableType:
    """Calls and results are of the whole session."""
    columns = {
        "tool": [Text(one_line(one.name), "accent") for one in counts],
        "needs": [Text(f"{one.permission}, {_decision(app, one)}") for one in counts],
        "tokens": [_weight(app, one) for one in counts],
    }
    if any(one.calls for one in counts):
        columns["calls"] = [Text(f"{one.calls:,}" if one.calls else "") for one in counts]
        columns["failed"] = [Text(f"{one.failures:,}" if one.failures else "") for one in counts]
        columns[_RESULTS] = [Text(short_tokens(one.result_tokens) if one.result_tokens else "") for one in counts]
    if any(one.source != BUILT_IN for one in counts):
        columns["from"] = [Text(one_line(one.source, 30), "quiet") for one in counts]
    numbers = ("tokens", "calls", "failed", _RESULTS)
    return fitting_table(columns, numbers=numbers, gives_way="tool", least=NAME_CELLS)


def _weight(app: App, one: ToolCount) -> Text:
    if one.is_offered:
        return Text(f"{one.definition_tokens:,}")
    return Text("off" if app.conversation.loaded.settings.tools.is_off(one.name) else "not sent", "quiet")


def _decision(app: App, one: ToolCount) -> str:
    return _DECISIONS[decide(app.conversation.approvals.mode, one.permission)]


def _show_one(app: App, one: ToolCount) -> None:
    told = f"{one.definition_tokens:,} tokens of each request" if one.is_offered else "not sent to this model"
    refused = f" ({one.refused:,} not allowed)" if one.refused else ""
    decision, mode = _decision(app, one), app.conversation.approvals.mode
    app.output.show(
        Group(
            Text(one_line(one.name), "accent"),
            Parted(one_line(f"{one.source} · {one.permission}: {decision} in mode {mode} · {told}"), "quiet"),
            Text(
                f"{counted(one.calls, 'call')}, {one.failures:,} failed{refused},"
                f" about {one.result_tokens:,} tokens of results",
                "quiet",
            ),
            Text(to_terminal(one.description)),
        )
    )


class JobsCommand(Command):
    name = "jobs"

    def only_shows(self, argument: str) -> bool:
        return argument.split()[:1] != ["stop"]

    async def run(self, app: App, argument: str) -> None:
        jobs = app.conversation.jobs
        match argument.split():
            case []:
                _show_jobs(app, jobs)
            case ["stop", number]:
                job = _find(jobs, number)
                if not job.is_running:
                    raise UsageError(f"Job {job.number} has already ended ({job.state}).")
                await job.stop()
            case [number] if number != "stop":
                job = _find(jobs, number)
                app.output.show(Text(to_terminal(job.recent).rstrip("\n") or "No output."))
                app.output.notice(job.headline()[1:-1])
            case _:
                raise UsageError("/jobs takes a number, or stop and a number.", advice="/jobs shows them.")

    def complete(self, app: App, argument: str) -> Iterable[Suggestion]:
        jobs = app.conversation.jobs.all
        word, blank, rest = argument.partition(" ")
        if not blank:
            known = [(str(job.number), one_line(job.command, 60)) for job in jobs]
            return beginning_with(word, [("stop", "end one"), *known])
        running = [(str(job.number), one_line(job.command, 60)) for job in jobs if job.is_running]
        return beginning_with(rest, running) if word == "stop" else ()


def _find(jobs: Jobs, number: str) -> Job:
    for job in jobs.all:
        if str(job.number) == number:
            return job
    raise UsageError(f"There is no job {one_line(number, 40)}.", advice="/jobs shows them.")


def _show_jobs(app: App, jobs: Jobs) -> None:
    if not jobs.all:
        app.output.show(
            "No command is running in the background. The model starts one for a server or a long build, for example."
        )
        return
    columns = {
        "job": [Text(str(job.number)) for job in jobs.all],
        "state": [Text(job.state, "accent" if job.is_running else "quiet") for job in jobs.all],
        "for": [Text(duration(job.seconds)) for job in jobs.all],
        "command": [Text(one_line(job.command, 200)) for job in jobs.all],
    }
    app.output.show(fitting_table(columns, gives_way="command", wraps=True))


_ACTIONS = {"login": "log in to a server", "restart": "restart a server"}
_STATE_STYLES = {"ready": "accent", "failed": "failure"}


class McpCommand(Command):
    name = "mcp"

    def needs_person(self, app: App, argument: str) -> str:
        return "starts a server" if argument.partition(" ")[0] in _ACTIONS else ""

    def only_shows(self, argument: str) -> bool:
        return argument.partition(" ")[0] not in _ACTIONS

    async def run(self, app: App, argument: str) -> None:
        servers = app.conversation.servers
        word, _, name = argument.partition(" ")
        if not argument:
            _show_servers(app, servers.connections)
            for one in servers.connections:
                _show_errors(app, one)
        elif word not in _ACTIONS:
            _show_server(app, servers.find(argument), servers.left_out)
        elif not name.strip():
            raise UsageError(f"/mcp {word} needs a server's name.", advice="/mcp shows them.")
        elif app.conversation.session.is_read_only:
            raise UsageError("This session is read-only; no server is started.")
        else:
            if word == "login":
                await _log_in(app, servers.find(name.strip()).server)
            _show_server(app, await servers.restart(name.strip()), servers.left_out)

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


def _show_servers(app: App, connections: tuple[Connection, ...]) -> None:
    if not connections:
        app.output.show("No MCP servers. To add one: nca mcp add NAME -- COMMAND, or nca mcp add NAME --url URL.")
        return
    columns = {
        "server": [Text(one.server.name) for one in connections],
        "state": [Text(_state(one), _STATE_STYLES.get(one.state, "quiet")) for one in connections],
        "": [Text(one_line(_about(one), 200)) for one in connections],
        "started with": [Text(one_line(str(one.server), 200), "quiet") for one in connections],
    }
    app.output.show(fitting_table(columns, gives_way="started with", least=WHOLE, wraps=True))


def _show_server(app: App, one: Connection, left_out: Collection[str]) -> None:
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
