"""`nca sessions rename`, `pin`, `unpin`, `fork`, `delete` and `backup`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from nca.cli.sessions.shown import SessionId, messages, open_to_read, open_to_write, say_made, title
from nca.terminal.render.sanitize import one_line


def rename_session(
    session_id: SessionId,
    name: Annotated[str, typer.Argument(help="Any text on one line; an empty one takes the name away.")],
) -> None:
    """Give a session a name, by which every command finds it too."""
    with open_to_write() as store, store.open_session(session_id) as session:
        session.rename(name)
        info = session.info
    typer.echo(f"{info.id} is now {one_line(info.name)!r}" if info.name else f"{info.id} has no name now")


def pin_session(session_id: SessionId) -> None:
    """Keep a session, however old it gets and however many there are."""
    _set_pinned(session_id, is_pinned=True)


def unpin_session(session_id: SessionId) -> None:
    """Let a session go when its time has come (session.retention_days, session.max_sessions)."""
    _set_pinned(session_id, is_pinned=False)


def fork_session(
    session_id: SessionId,
    at: Annotated[int | None, typer.Option(metavar="N", help="Only up to message N, as `show` numbers them.")] = None,
    name: Annotated[str, typer.Option(help="A name for the copy.")] = "",
) -> None:
    """Copy a session, so that both can go on; prints the copy's id."""
    with open_to_write() as store:
        info = store.fork(session_id, at=at, name=name)
    say_made(info)


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
        if not typer.confirm(f"Delete {info.id}, “{title(info)}”, {messages(info.messages)}, for good?"):
            typer.echo("nothing was deleted")
            return
    with open_to_write() as store:
        store.delete(info.id)
    typer.echo(f"{info.id} is deleted")


def _set_pinned(session_id: str, *, is_pinned: bool) -> None:
    with open_to_write() as store, store.open_session(session_id) as session:
        session.set_pinned(is_pinned)
        info = session.info
    typer.echo(f"{info.id}, “{title(info)}”, {'stays until it is deleted' if is_pinned else 'is no longer pinned'}")


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
    typer.echo(f"{count:,} sessions in {one_line(str(file))}")
