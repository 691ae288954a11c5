"""`nca hooks`: nca's memory inside other agents, through their own hooks."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nca.cli import flags
from nca.cli.early_questions import agrees, can_ask
from nca.cli.mcp import other_agents
from nca.cli.printing import echo
from nca.errors import ConfigError
from nca.humanize import counted, local_time
from nca.terminal.render.sanitize import one_line

if TYPE_CHECKING:
    from nca.agent_hooks.agents import Change
    from nca.agent_hooks.server import Line

app = typer.Typer(
    name="hooks",
    help="Give another agent nca's memory: after a compaction it gets back what it lost.",
    no_args_is_help=True,
)
_PATH_CHARS = 4_000
_FIRST_WORDS = 100


def _agents() -> Iterable[str]:
    from nca.agent_hooks.agents import AGENTS

    return AGENTS


AgentName = Annotated[
    str, typer.Argument(help="claude, codex, gemini or opencode.", autocompletion=flags.one_of(_agents))
]
Project = Annotated[bool, typer.Option("--project", help="In this project's settings, not in your own.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Change the file without asking.")]


@app.command()
def install(agent: AgentName, project: Project = False, yes: Yes = False) -> None:
    """Add nca's hooks to another agent's settings: show the change, ask, and write it."""
    from nca.agent_hooks.agents import agent_named, installed, settings_file

    known = agent_named(agent)
    change = installed(known, os.environ, settings_file(known, os.environ, Path.cwd() if project else None))
    if not change.is_needed:
        echo(f"{known.title} already has nca's hooks, in {_shown(change.file)}.")
        return
    _ask_and_write(change, f"{known.title} keeps its hooks in this file", yes=yes)
    echo(f"{known.title} calls nca from its next session on. To see what it is told: nca hooks log")
    if known.note:
        echo(known.note)


@app.command()
def uninstall(agent: AgentName, project: Project = False, yes: Yes = False) -> None:
    """Remove nca's hooks from another agent's settings, and nothing else."""
    from nca.agent_hooks.agents import agent_named, settings_file, uninstalled

    known = agent_named(agent)
    change = uninstalled(known, settings_file(known, os.environ, Path.cwd() if project else None))
    if not change.is_needed:
        echo(f"{known.title} has no nca hooks in {_shown(change.file)}.")
        return
    _ask_and_write(change, f"These hooks are removed from {known.title}", yes=yes)


@app.command()
def status() -> None:
    """Show which agents call nca, from which file, and whether the program that they call is there."""
    from nca.agent_hooks.agents import AGENTS, folder_of, problem_of, programs, settings_file
    from nca.agent_hooks.server import Log

    lines = Log(folder_of(os.environ)).lines()
    for known in AGENTS.values():
        found = False
        for project in (None, Path.cwd()):
            file = settings_file(known, os.environ, project)
            try:
                commands = programs(known, file)
            except ConfigError as error:
                echo(f"{known.name}: {one_line(str(error), _PATH_CHARS)}")
                continue
            for command in commands:
                found = True
                problem = problem_of(command)
                echo(one_line(f"{known.name}: in {file}{f'; {problem}' if problem else ''}", _PATH_CHARS))
        if not found:
            echo(f"{known.name}: not installed. To install: nca hooks install {known.name}")
        told = [line for line in lines if line.agent == known.name and line.text]
        if told:
            echo(f"  handed over {counted(len(told), 'time')}, last {local_time(told[-1].at)}")


@app.command()
def log(
    number: Annotated[int, typer.Option("--last", "-n", min=1, help="So many of the newest lines.")] = 20,
    full: Annotated[bool, typer.Option("--full", help="Show each text that nca handed over, whole.")] = False,
) -> None:
    """Show what nca handed over: when, to which session, how long the agent waited for it, and what failed."""
    from nca.agent_hooks.agents import folder_of
    from nca.agent_hooks.server import Log

    lines = Log(folder_of(os.environ)).lines()
    if not lines:
        echo("No hook has called nca yet, or there was nothing to say. See: nca hooks status")
    for line in lines[-number:]:
        echo(one_line(_described(line), _PATH_CHARS))
        if full and line.text:
            for row in line.text.splitlines():
                echo(f"  {row}")


@app.command(hidden=True)
def serve(folder: Annotated[Path, typer.Argument()]) -> None:
    """Answer the hooks of other agents until none comes any more. The hooks themselves start this."""
    from nca.agent_hooks.server import Server
    from nca.models.providers import known_secrets
    from nca.redact import Redactor

    first = b"" if sys.stdin is None or sys.stdin.isatty() else sys.stdin.buffer.read()
    Server(folder, Redactor(known_secrets(os.environ)).text).serve(first)


@app.command(hidden=True)
def index() -> None:
    """Bring the index of other agents' sessions up to date."""
    if hasattr(os, "nice"):
        os.nice(10)
    other_agents().index()


def _ask_and_write(change: Change, what: str, *, yes: bool) -> None:
    import difflib

    from nca.mcp_server.install import remove, replace

    echo(f"{what}: {_shown(change.file)}\n")
    before, after = (change.before or "").splitlines(), change.after.splitlines()
    for line in difflib.unified_diff(before, after, lineterm="", n=1):
        if not line.startswith(("---", "+++")):
            echo(f"  {line}")
    echo("")
    if not yes and not (can_ask() and agrees("Make this change?")):
        echo("Nothing was changed. To skip the question: add --yes")
        raise typer.Exit(1)
    if not change.after:
        remove(change.file, change.before)
        echo(f"Removed {_shown(change.file)}.")
        return
    backup = replace(change.file, change.before, change.after)
    kept = f" The old version is in {_shown(backup)}." if backup else ""
    echo(f"Changed {_shown(change.file)}.{kept}")


def _described(line: Line) -> str:
    from nca.agent_hooks.handover import START

    parts = [local_time(line.at), line.agent, line.event, line.session[:8], line.directory]
    if line.problem:
        said = f"nothing: {line.problem}"
    else:
        waited = f"{line.ms} ms" if line.ms is not None else "unknown time"
        said = f"{len(line.text):,} characters in {waited}: {one_line(line.text.removeprefix(START), _FIRST_WORDS)}"
    return f"{' '.join(filter(None, parts))}: {said}"


def _shown(file: Path) -> str:
    return one_line(str(file), _PATH_CHARS)
