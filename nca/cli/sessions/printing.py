"""Output that several `nca sessions` commands share."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import typer

from nca.terminal.render.humanize import counted
from nca.terminal.render.sessions import title

if TYPE_CHECKING:
    from nca.sessions import SessionInfo

_TITLE_CHARS = 60


def short_title(info: SessionInfo) -> str:
    """The session's name, or else its first message, cut to fit a line."""
    return title(info, _TITLE_CHARS)


def print_new_session(info: SessionInfo) -> None:
    """Print a new session's id to standard output for scripts, and how to resume it to standard error."""
    typer.echo(info.id)
    typer.echo(f"{counted(info.messages, 'message')}. Resume with: nca loop --resume {info.id}", err=True)


def print_json(value: Any) -> None:
    """Print indented JSON. It is ASCII only, so stored text cannot send control characters to the terminal."""
    typer.echo(json.dumps(value, indent=2))
