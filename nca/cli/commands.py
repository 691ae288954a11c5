"""All commands, as Typer parses them. Their modules import only what that needs."""

from __future__ import annotations

from functools import cache
from typing import Annotated

import typer
from typer.core import TyperGroup
from typer.main import get_group

from nca.cli import acp, bench, compact, completion, config, doctor, loop, mcp, models, run, sessions


def _group(
    version: Annotated[bool, typer.Option("--version", "-V", help="Print the version.")] = False,
) -> None:
    """For the help: `nca.cli.app` prints the version before anything is imported."""


@cache
def build() -> TyperGroup:
    """Built once in a process, because that takes far longer than parsing."""
    app = typer.Typer(
        name="nca",
        help="A chat agent for the terminal. Its context never overflows and nothing is lost.",
        epilog="Without a command, nca opens the chat: `nca -m MODEL`, `nca -c`.",
        no_args_is_help=False,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_group)
    app.command("loop")(loop.loop)
    app.command("run")(run.run)
    app.command("acp")(acp.acp)
    app.command("compact")(compact.compact)
    app.command("bench")(bench.bench)
    app.command("doctor")(doctor.doctor)
    app.command("completion")(completion.completion)
    app.add_typer(sessions.app, name="sessions")
    app.add_typer(config.app, name="config")
    app.add_typer(models.app, name="models")
    app.add_typer(mcp.app, name="mcp")
    return get_group(app)
