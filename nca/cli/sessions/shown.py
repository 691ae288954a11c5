"""What the commands about sessions share: the store, and stored texts as a terminal may have them."""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from nca.sessions import Store

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
SessionId = Annotated[str, typer.Argument(metavar="ID", help="The id, the beginning of it, or the name.")]


def open_to_read() -> Store:
    """The store on disk; nothing is written and no lock is taken. An empty one where there is none."""
    return _open(read_only=True)


def open_to_write() -> Store:
    """The store on disk; made where there is none."""
    return _open(read_only=False)


def line(text: str, limit: int = 0) -> str:
    from nca.terminal.sanitize import one_line

    return one_line(text, limit)


def when(at: float) -> str:
    """Local time; a clock that was far off is no reason to show nothing."""
    try:
        return time.strftime("%Y-%m-%d %H:%M", time.localtime(at))
    except (OverflowError, ValueError, OSError):
        return "at an unknown time"


def print_json(value: Any) -> None:
    """ASCII only, so that no stored text can reach the terminal as a control character."""
    typer.echo(json.dumps(value, indent=2))


def _open(*, read_only: bool) -> Store:
    from nca.config.paths import data_dir
    from nca.sessions import Store

    return Store.open(data_dir(os.environ) / "sessions.db", read_only=read_only)
