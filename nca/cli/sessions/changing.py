"""`nca sessions rename`, `fork`, `delete` and `backup`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from nca.cli.sessions.shown import SessionId, line, open_to_read, open_to_write

_TITLE_CHARS = 60


def rename_session(
    session_id: SessionId,
    name: Annotated[str, typer.Argument(help="Any text on one line; an empty one takes the name away.")],
) -> None:
    """Give a session a name, by which every command finds it too."""
    with open_to_write() as store, store.open_session(session_id) as session:
        session.rename(name)
        info = session.info
    typer.echo(f"{info.id} is now {line(info.name)!r}" if info.name else f"{info.id} has no name now")


def fork_session(
    session_id: SessionId,
    at: Annotated[int | None, typer.Option(metavar="N", help="Only up to message N, as `show` numbers them.")] = None,
    name: Annotated[str, typer.Option(help="A name for the copy.")] = "",
) -> None:
    """Copy a session, so that both can go on; prints the copy's id."""
    with open_to_write() as store:
        info = store.fork(session_id, at=at, name=name)
    typer.echo(info.id)
    typer.echo(f"{info.messages:,} messages; nca loop --resume {info.id} goes on.", err=True)


def delete_session(
    session_id: SessionId,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Remove a session for good, with the long outputs that it kept."""
    from nca.errors import UsageError

    with open_to_read() as store:
        info = store.find(session_id)
    if not yes:
        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            raise UsageError("There is nobody to ask here.", advice="--yes deletes the session without asking.")
        title = line(info.name or info.title or "(empty)", _TITLE_CHARS)
        if not typer.confirm(f"Delete {info.id}, “{title}”, {info.messages:,} messages, for good?"):
            typer.echo("nothing was deleted")
            return
    with open_to_write() as store:
        store.delete(info.id)
    typer.echo(f"{info.id} is deleted")


def back_up_sessions(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file that does not exist yet.")],
) -> None:
    """Copy the whole database into a file, also while it is in use."""
    from nca.errors import UsageError

    with open_to_read() as store:
        if store.path is None or not store.path.exists():
            raise UsageError("There are no sessions to back up.")
        store.back_up(file)
        count = len(store.list(None))
    typer.echo(f"{count:,} sessions in {line(str(file))}")
