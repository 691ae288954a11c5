"""Show what a tool call that needs approval would do."""

from __future__ import annotations

import os
from pathlib import Path

from rich.console import Group, RenderableType
from rich.text import Text

from nca.events import ApprovalAsked
from nca.terminal.render.diffs import diff_lines, left_out
from nca.terminal.render.sanitize import one_line, to_terminal

DIFF_LINES = 200
COMMAND_LINES = 60


def panel(asked: ApprovalAsked) -> RenderableType:
    """The command, path or diff. Long ones are cut, with a line that says so."""
    verb = {"write": "change a file", "execute": "run something", "read": "read"}[asked.needs]
    parts: list[RenderableType] = [Text(f"{one_line(asked.name)} wants to {verb}:", style="bold")]
    if asked.path:
        parts.append(Text(f"  {one_line(asked.path, 4_000)}", style="accent"))
    if asked.command:
        parts += _command(asked.command)
    if asked.directory:
        parts.append(Text(f"  in {one_line(asked.directory, 4_000)}", style="quiet"))
    if asked.diff:
        parts += diff_lines(asked.diff, DIFF_LINES)
    if not (asked.path or asked.command or asked.diff):
        parts.append(Text(f"  {one_line(asked.summary, 400)}"))
    if asked.warning:
        parts.append(Text(one_line(asked.warning, 600), style="failure"))
    return Group(*parts)


def rule_of(asked: ApprovalAsked) -> str:
    """The tool and subject of a rule that allows the call; a path in this directory is shown relative to it."""
    here = f"{Path.cwd()}{os.sep}"
    return f"{one_line(asked.name)} {one_line(asked.subject.removeprefix(here), 80)}"


def _command(command: str) -> list[RenderableType]:
    lines = to_terminal(command).rstrip("\n").split("\n")
    shown = [Text(f"  {line}", style="accent") for line in lines[:COMMAND_LINES]]
    return [*shown, *left_out(len(lines) - COMMAND_LINES)]
