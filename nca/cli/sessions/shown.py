"""What the commands about sessions share: the store, and stored texts as a terminal may have them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nca.terminal.render.sanitize import one_line

if TYPE_CHECKING:
    from nca.sessions import SessionInfo, Store

_TITLE_CHARS = 60
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
SessionId = Annotated[str, typer.Argument(metavar="ID", help="The id, the beginning of it, or the name.")]


def open_to_read() -> Store:
    """The store on disk; nothing is written and no lock is taken. An empty one where there is none."""
    return _open(read_only=True)


def open_to_write() -> Store:
    """The store on disk; made where there is none."""
    return _open(read_only=False)


def title(info: SessionInfo) -> str:
    """The session's name, else what was said first, as much as a line has room for."""
    from nca.terminal.render import session_lines

    return one_line(session_lines.title(info), _TITLE_CHARS)


def messages(count: int) -> str:
    from nca.terminal.render import wording

    return wording.messages(count)


def say_made(info: SessionInfo) -> None:
    """The id of a session that is new, for a script, and for a person what to do with it."""
    typer.echo(info.id)
    typer.echo(f"{messages(info.messages)}; nca loop --resume {info.id} goes on.", err=True)


def when(at: float) -> str:
    from nca.terminal.render import session_lines

    return session_lines.when(at)


def print_json(value: Any) -> None:
    """ASCII only, so that no stored text can reach the terminal as a control character."""
    typer.echo(json.dumps(value, indent=2))


def _open(*, read_only: bool) -> Store:
    from nca.cli.opening import store_path
    from nca.sessions import Store

    return Store.open(store_path(), read_only=read_only)
