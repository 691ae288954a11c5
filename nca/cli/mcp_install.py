"""`nca mcp install`: add nca to the MCP servers of another agent, after asking."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from nca.cli.typed_answer import agrees
from nca.terminal.render.sanitize import one_line, to_terminal

if TYPE_CHECKING:
    from nca.mcp_server.install import Plan


def install(
    agent: Annotated[str, typer.Argument(help="claude, codex, gemini, opencode, cursor or vscode.")],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Add it without asking.")] = False,
) -> None:
    """Let another agent search your sessions: show what is added to its settings and where, ask, and add it."""
    from nca.mcp_server.clients import client_named
    from nca.mcp_server.install import own_command, plan, write

    wanted = plan(client_named(agent), own_command(os.environ), os.environ)
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
