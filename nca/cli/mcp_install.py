"""`nca mcp install`: add nca to the MCP servers of another agent, after asking."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nca.cli.typed_answer import agrees
from nca.errors import UsageError
from nca.terminal.render.sanitize import one_line, to_terminal

if TYPE_CHECKING:
    from nca.mcp_server.install import Plan
    from nca.mcp_server.scope import Scope

Everything = Annotated[bool, typer.Option("--all", help="The sessions of all projects.")]
Directories = Annotated[
    list[Path] | None,
    typer.Option("--directory", help="The sessions in this folder and below it. May be given more than once."),
]


def scope_of(everything: bool, directories: Sequence[Path] | None) -> Scope:
    """What a client may see that is served from here. Raises UsageError."""
    from nca.mcp_server.scope import Scope

    if everything and directories:
        raise UsageError("--all and --directory exclude each other.")
    if everything:
        return Scope()
    return Scope.of_directories(directories) if directories else Scope.of_project(Path.cwd())


def install(
    agent: Annotated[str, typer.Argument(help="claude, codex, gemini, opencode, cursor or vscode.")],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Add it without asking.")] = False,
    everything: Everything = False,
    directory: Directories = None,
) -> None:
    """Let another agent search your sessions: show what is added to its settings and where, ask, and add it.

    Without --all or --directory, the agent sees the sessions of the project that you start it in.
    """
    from nca.mcp_server.clients import client_named
    from nca.mcp_server.install import own_command, plan, write

    scope = scope_of(everything, directory)
    words = ["--all"] if everything else [f"--directory={one.expanduser().absolute()}" for one in directory or ()]
    wanted = plan(client_named(agent), own_command(os.environ, words), os.environ)
    file, title = one_line(str(wanted.file), 4_000), wanted.client.title
    if wanted.is_there:
        typer.echo(f"{title} has nca already, in {file}.")
        return
    if wanted.problem:
        typer.echo(f"nca: {file} was left alone: {one_line(wanted.problem)}. Add this yourself:", err=True)
        _show(wanted)
        raise typer.Exit(1)
    what = "is made" if wanted.before is None else "gets this; everything else in it stays as it is"
    typer.echo(f"{title} keeps its MCP servers in {file}. The file {what}:")
    _show(wanted)
    if words:
        typer.echo(f"{title} can then read your sessions of {one_line(str(scope), 4_000)}.")
    else:
        typer.echo(
            f"{title} can then read your sessions of the project that you start it in. More: --all, --directory."
        )
    if not yes and not _agrees():
        typer.echo(f"Nothing was changed. Without the question: nca mcp install {agent} --yes")
        raise typer.Exit(1)
    backup = write(wanted)
    kept = f" Before that it was copied to {one_line(str(backup), 4_000)}." if backup else ""
    typer.echo(f"Added nca to {file}.{kept} {title} uses it when it starts the next time.")


def _show(wanted: Plan) -> None:
    typer.echo("")
    for line in to_terminal(wanted.shown).splitlines():
        typer.echo(f"  {line}")
    typer.echo("")


def _agrees() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty() and agrees("Add it?")
