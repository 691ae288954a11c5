"""`nca mcp`: list, add and remove MCP servers; log in to them and out; be one for other agents."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nca import __version__
from nca.cli import flags
from nca.cli.early_questions import agrees, can_ask
from nca.cli.printing import echo
from nca.cli.startup import load_settings, store_place
from nca.config.paths import cache_dir, project_config_file, user_config_file, user_home
from nca.errors import UsageError
from nca.terminal.render.sanitize import one_line

if TYPE_CHECKING:
    from nca.config.servers import McpServer
    from nca.mcp_server.history import Scope
    from nca.mcp_server.install import Plan
    from nca.mcp_server.other_agents import OtherAgents
    from nca.tools.mcp.connection import Connection

Everything = Annotated[bool, typer.Option("--all", help="The sessions of all projects.")]
Directories = Annotated[
    list[Path] | None,
    typer.Option("--directory", help="The sessions in this folder and below it. May be given more than once."),
]


def scope_of(everything: bool, directories: Sequence[Path] | None) -> Scope:
    """The sessions that a client of this server may see. Raises UsageError."""
    from nca.mcp_server.history import Scope

    if everything and directories:
        raise UsageError("--all and --directory exclude each other.")
    if everything:
        return Scope()
    return Scope.of_directories(directories) if directories else Scope.of_project(Path.cwd())


def _clients() -> Iterable[str]:
    from nca.mcp_server.install import CLIENTS

    return (client.name for client in CLIENTS)


def install(
    agent: Annotated[
        str,
        typer.Argument(
            help="claude, codex, gemini, opencode, cursor or vscode.", autocompletion=flags.one_of(_clients)
        ),
    ],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Add it without asking.")] = False,
    everything: Everything = False,
    directory: Directories = None,
) -> None:
    """Let another agent search your sessions: show what is added to its settings and where, ask, and add it.

    Without --all or --directory, the agent sees the sessions of the project that you start it in.
    """
    from nca.mcp_server.install import client_named, own_command, plan, write

    scope = scope_of(everything, directory)
    words = ["--all"] if everything else [f"--directory={one.expanduser().absolute()}" for one in directory or ()]
    wanted = plan(client_named(agent), own_command(os.environ, words), os.environ)
    file, title = one_line(str(wanted.file), 4_000), wanted.client.title
    if wanted.is_there:
        echo(f"{title} already has nca, in {file}.")
        return
    if wanted.problem:
        echo(f"nca: {file} was not changed: {one_line(wanted.problem)}. Add this yourself:", err=True)
        _show(wanted)
        raise typer.Exit(1)
    what = "is made" if wanted.before is None else "gets this; everything else in it stays as it is"
    echo(f"{title} keeps its MCP servers in {file}. The file {what}:")
    _show(wanted)
    if words:
        echo(f"{title} can then read your sessions of {one_line(str(scope), 4_000)}.")
    else:
        echo(f"{title} can then read your sessions of the project that you start it in. More: --all, --directory.")
    if not yes and not (can_ask() and agrees("Add it?")):
        echo(f"Nothing was changed. To skip the question: nca mcp install {agent} --yes")
        raise typer.Exit(1)
    backup = write(wanted)
    kept = f" The old version is in {one_line(str(backup), 4_000)}." if backup else ""
    echo(f"Added nca to {file}.{kept} {title} uses it from its next start.")


def _show(wanted: Plan) -> None:
    echo("")
    for line in wanted.shown.splitlines():
        echo(f"  {line}")
    echo("")


_SHOWN_CHARS = 200

app = typer.Typer(
    name="mcp", help="List, add and remove MCP servers, and log in to them. nca mcp serve is a server itself."
)


@app.callback(invoke_without_command=True)
def mcp(context: typer.Context) -> None:
    if context.invoked_subcommand is not None:
        return
    if sys.stdin.isatty():
        echo(context.get_help())
        return
    serve()


@app.command()
def serve(
    own: Annotated[bool, typer.Option("--own", help="Only nca's own sessions, not those of other agents.")] = False,
    everything: Everything = False,
    directory: Directories = None,
) -> None:
    """Serve MCP over standard input and output: other agents search and read your sessions.

    Without --all or --directory, a client sees the sessions of the project that it starts the server in. `nca mcp`
    alone does the same if standard input is not a terminal.
    """
    import asyncio

    from nca.mcp_server.history import History, OwnStore, Place
    from nca.mcp_server.server import serve
    from nca.models.providers import known_secrets
    from nca.redact import Redactor
    from nca.terminal import signals

    scope = scope_of(everything, directory)
    if sys.stdin.isatty():
        echo(f"A client here sees the sessions of {one_line(str(scope), 4_000)}. Ctrl-C ends the server.", err=True)
    places: list[Place] = [OwnStore(*store_place())]
    if not own:
        others = other_agents()
        others.keep_fresh()
        places.append(others)
    history = History(places, Redactor(known_secrets(os.environ)).text, scope)
    with signals.at_once():  # it only reads: there is nothing to clean up
        asyncio.run(serve(history, __version__))


def other_agents() -> OtherAgents:
    """The sessions of other agents on this machine."""
    from nca.mcp_server.other_agents import OtherAgents
    from nca.transcripts.formats.registry import formats

    index, home = cache_dir(os.environ) / "other-agents.db", user_home(os.environ)
    return OtherAgents(index, formats(), os.environ, home, version=__version__)


app.command()(install)


@app.command(name="list")
def list_(
    check: Annotated[bool, typer.Option("--check", help="Connect to each server and list its tools.")] = False,
) -> None:
    """Show every MCP server, and which file defines it. Values of variables and headers are not shown."""
    import asyncio

    from nca.config.saving import defining_files

    loaded = load_settings({}, None)
    flags.say_notes(loaded.notes)
    servers = loaded.settings.mcp.servers
    files = defining_files(Path.cwd(), os.environ)
    if files and not servers:
        echo("No MCP server is in use.")
    elif not servers:
        echo("No MCP servers. To add one: nca mcp add NAME -- COMMAND, or nca mcp add NAME --url URL.")
    for server in servers:
        echo(f"{server.name}{'' if server.enabled else ' (off)'}: {_described(server)}")
        echo(f"  in {one_line(str(files[server.name][-1]))}")
    if check and not asyncio.run(_all_ready([server for server in servers if server.enabled])):
        raise typer.Exit(1)


@app.command()
def add(
    name: Annotated[str, typer.Argument(help="Its name: 1 to 32 letters, digits, _ and -.")],
    command: Annotated[list[str] | None, typer.Argument(help="The program and its arguments, after --.")] = None,
    url: Annotated[str, typer.Option(help="The address of an HTTP server, instead of a program.")] = "",
    env: Annotated[list[str] | None, typer.Option(metavar="NAME=VALUE", help="A variable for the program.")] = None,
    header: Annotated[list[str] | None, typer.Option(metavar="NAME=VALUE", help="A header of every request.")] = None,
    token_variable: Annotated[str, typer.Option(help="Your variable whose value is sent as bearer token.")] = "",
    client_id: Annotated[
        str, typer.Option(help="The id of nca at its authorization server, if programs cannot register.")
    ] = "",
    user: Annotated[bool, typer.Option("--user", help="Save it in your own file, for all projects (default).")] = False,
    project: Annotated[bool, typer.Option("--project", help="Save it in the project's .nca/config.toml.")] = False,
) -> None:
    """Add an MCP server: nca mcp add NAME -- COMMAND ARGS, or nca mcp add NAME --url URL.

    A value may name one of your variables instead of holding a secret: --header 'X-Key=${MY_KEY}'.
    """
    from nca.config.saving import add_server, defining_files

    if user and project:
        raise UsageError("--user and --project exclude each other.")
    if url and env:
        raise UsageError("--env is for a program; an HTTP server takes --header and --token-variable.")
    if command and (header or token_variable or client_id):
        raise UsageError("--header, --token-variable and --client-id are for an HTTP server; a program takes --env.")
    program, *arguments = command or [""]
    fields = {
        "command": program,
        "args": arguments,
        "env": _pairs("--env", env or ()),
        "url": url,
        "headers": _pairs("--header", header or ()),
        "token_variable": token_variable,
        "client_id": client_id,
    }
    file = project_config_file(Path.cwd()) if project else user_config_file(os.environ)
    with _keeping_trust(file):
        add_server(file, name, {key: value for key, value in fields.items() if value}, is_users_own=not project)
    echo(f"Saved the MCP server {name} in {one_line(str(file))}.")
    # None, if another nca has removed it since.
    counts = next(reversed(defining_files(Path.cwd(), os.environ).get(name, [])), file.absolute())
    if counts != file.absolute():
        echo(f"It has no effect here: {one_line(str(counts))} defines {name}, and wins.", err=True)
        return
    loaded = load_settings({}, None)
    if any(one.name == name for one in loaded.settings.mcp.servers):
        echo("To try it: nca mcp list --check")
        return
    flags.say_notes(loaded.notes)


@app.command()
def remove(name: Annotated[str, typer.Argument(help="The server's name.")]) -> None:
    """Remove an MCP server from the settings file that defines it."""
    from nca.config.saving import file_to_change, remove_server

    file = file_to_change(name, Path.cwd(), os.environ)
    with _keeping_trust(file):
        remove_server(file, name, is_users_own=file == user_config_file(os.environ).absolute())
    echo(f"Removed the MCP server {name} from {one_line(str(file))}.")


@app.command()
def login(name: Annotated[str, typer.Argument(help="The server's name.")]) -> None:
    """Log in to an HTTP server, with the browser."""
    import asyncio

    from nca.tools.mcp.oauth import log_in

    def show(address: str) -> None:
        echo("Log in on this page. If there is a browser, it opens the page. Ctrl-C stops waiting.")
        echo(one_line(address, len(address)))

    wanted = asyncio.run(log_in(_server(name), show))
    echo(f"Logged in to {name}." if wanted else f"{name} needs no login.")


@app.command()
def logout(name: Annotated[str, typer.Argument(help="The server's name.")]) -> None:
    """Forget the login at an HTTP server."""
    from nca.tools.mcp.oauth import Logins
    from nca.tools.mcp.transports import expanded

    was_there = Logins(os.environ).remove(expanded(_server(name)).url)
    echo(f"Logged out of {name}." if was_there else f"There is no login for {name}.")


def _server(name: str) -> McpServer:
    """A server that nca would use here. Raises UsageError."""
    servers = {one.name: one for one in load_settings({}, None).settings.mcp.servers}
    if name not in servers:
        raise UsageError(
            f"There is no MCP server {one_line(name, 40)!r}.", advice=f"Valid: {', '.join(servers) or 'none'}."
        )
    return servers[name]


def _keeping_trust(file: Path) -> contextlib.AbstractContextManager[None]:
    from nca.config.projects import TrustStore

    is_users_own = file.absolute() == user_config_file(os.environ).absolute()
    return contextlib.nullcontext() if is_users_own else TrustStore(os.environ).saving(Path.cwd())


def _pairs(option: str, given: Sequence[str]) -> dict[str, str]:
    """NAME=VALUE, any number of times. Raises UsageError without showing the value."""

    pairs: dict[str, str] = {}
    for number, one in enumerate(given, 1):
        name, equals, value = one.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"{option} number {number} is not NAME=VALUE.")
        pairs[name.strip()] = value
    return pairs


def _described(server: McpServer) -> str:
    """The command line or the address, and the names of the other values sent."""
    from nca.redact import Redactor

    named = {"env": server.env, "headers": server.headers}
    parts = [Redactor().text(str(server))]
    parts += [f"{what}: {', '.join(key for key, _ in pairs)}" for what, pairs in named.items() if pairs]
    if server.token_variable:
        parts.append(f"token from {server.token_variable}")
    return one_line("; ".join(parts), _SHOWN_CHARS)


async def _all_ready(servers: Sequence[McpServer]) -> bool:
    """Connect to all servers at once, print what each offers, and end them."""
    import asyncio

    from nca.tools.mcp.connection import Connection

    connections = [Connection(server, Path.cwd(), lambda: False) for server in servers]
    try:
        for one in connections:
            one.start()
        for one in connections:
            await one.settled()
            _print_state(one)
        return all(one.state == "ready" for one in connections)
    finally:
        await asyncio.gather(*(one.stop() for one in connections), return_exceptions=True)


def _print_state(one: Connection) -> None:
    if one.state != "ready":
        said = f"needs a login: nca mcp login {one.server.name}" if one.needs_login else f"failed: {one.reason}"
        echo(f"{one.server.name}: {one_line(said, _SHOWN_CHARS)}")
        for line in one.error_lines:
            echo(f"  {one_line(line, _SHOWN_CHARS)}")
        return
    names = ", ".join(one_line(offer.name, 80) for offer in one.listing.offers)
    echo(f"{one.server.name}: ready; tools: {names or 'none'}")
