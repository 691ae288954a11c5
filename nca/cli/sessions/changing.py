"""`nca sessions rename`, `pin`, `unpin`, `fork`, `archive`, `restore`, `delete`, `backup`, `usage` and `vacuum`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nca.cli.early_questions import agrees
from nca.cli.flags import AsJson, SessionId
from nca.cli.startup import open_session_store, store_place
from nca.cli.store import disk_parts
from nca.humanize import byte_size, counted
from nca.terminal.render.sanitize import one_line
from nca.terminal.render.sessions import title

if TYPE_CHECKING:
    from nca.sessions import SessionInfo

_TITLE_CHARS = 60


def rename_session(
    session_id: SessionId,
    name: Annotated[str, typer.Argument(help="The new name. An empty name removes it.")],
) -> None:
    """Name a session. Every command accepts the name in place of the id."""
    with open_session_store(read_only=False) as store, store.open_session(session_id) as session:
        session.rename(name)
        info = session.info
    typer.echo(f"Renamed {info.id} to {one_line(info.name)!r}." if info.name else f"Removed the name of {info.id}.")


def pin_session(session_id: SessionId) -> None:
    """Never archive a session by itself, no matter how old it is or how many there are."""
    _set_pinned(session_id, is_pinned=True)


def unpin_session(session_id: SessionId) -> None:
    """Let a session be archived again (session.retention_days, session.max_sessions)."""
    _set_pinned(session_id, is_pinned=False)


def fork_session(
    session_id: SessionId,
    at: Annotated[int | None, typer.Option(metavar="N", help="Copy up to message N, as `show` numbers them.")] = None,
    name: Annotated[str, typer.Option(help="A name for the copy.")] = "",
) -> None:
    """Copy a session and print the copy's id."""
    with open_session_store(read_only=False) as store:
        info = store.fork(session_id, at=at, name=name)
    print_new_session(info)


def delete_session(
    session_id: SessionId,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Delete without asking.")] = False,
) -> None:
    """Delete a session permanently, with its stored tool outputs. `archive` keeps it in a file instead."""
    from nca.errors import UsageError

    with open_session_store(read_only=True) as store:
        info = store.find(session_id)
    if not yes:
        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            raise UsageError("Cannot ask for confirmation here.", advice="Use --yes to delete without asking.")
        count = counted(info.messages, "message")
        if not agrees(f"Permanently delete {info.id}, “{title(info, _TITLE_CHARS)}”, {count}?"):
            typer.echo("Nothing was deleted.")
            return
    with open_session_store(read_only=False) as store:
        store.delete(info.id)
    typer.echo(f"Deleted {info.id}.")


def back_up_sessions(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file that does not exist yet.")],
) -> None:
    """Copy the whole database to a file. This is safe while nca is running."""
    from nca.errors import UsageError

    with open_session_store(read_only=True) as store:
        count = len(store.list(None))
        if not (store.can_take_over or (store.path and store.path.exists())):
            raise UsageError("There are no sessions to back up.")
        store.back_up(file)
    typer.echo(f"Backed up {counted(count, 'session')} to {one_line(str(file))}.")


def print_new_session(info: SessionInfo) -> None:
    """Print a new session's id to standard output for scripts, and how to resume it to standard error."""
    typer.echo(info.id)
    typer.echo(f"{counted(info.messages, 'message')}. Resume with: nca loop --resume {info.id}", err=True)


def _set_pinned(session_id: str, *, is_pinned: bool) -> None:
    with open_session_store(read_only=False) as store, store.open_session(session_id) as session:
        session.set_pinned(is_pinned)
        info = session.info
    typer.echo(f"{'Pinned' if is_pinned else 'Unpinned'} {info.id}, “{title(info, _TITLE_CHARS)}”.")


def archive_session(session_id: SessionId) -> None:
    """Move a session to a compressed file, out of lists and search. `restore` brings it back."""
    from nca.transcripts.archives import archive

    with open_session_store(read_only=False) as store:
        path, info = archive(store, session_id)
    typer.echo(f"Archived {info.id} to {one_line(str(path))}. To bring it back: nca sessions restore {info.id}")


def restore_session(
    archive: Annotated[str, typer.Argument(metavar="ID|FILE", help="An archived session, or an archive's file.")],
) -> None:
    """Bring an archived session back, with everything that it had."""
    from nca.transcripts.archives import restore

    with open_session_store(read_only=False) as store:
        info = restore(store, archive)
    print_new_session(info)


def show_usage(as_json: AsJson = False) -> None:
    """Show what takes how much on the disk, and the largest sessions. It writes nothing."""
    with open_session_store(read_only=True) as store:
        sizes = store.sizes()
        parts = disk_parts(sizes)
        largest = [(store.find(session_id), size_bytes) for session_id, size_bytes in sizes.largest]
    total = sum(part.size_bytes for part in parts)
    if as_json:
        rows = [{"id": info.id, "bytes": size_bytes} for info, size_bytes in largest]
        found = {"total_bytes": total, "parts": [part._asdict() for part in parts], "largest_sessions": rows}
        typer.echo(json.dumps(found, indent=2))
        return
    typer.echo(f"{byte_size(total)} in all, in {one_line(str(store_place().path.parent))}")
    for part in parts:
        typer.echo(f"  {part.name:<13} {byte_size(part.size_bytes):>10}  {one_line(part.detail)}")
    if largest:
        typer.echo("The largest sessions, without what the index takes for them:")
    for info, size_bytes in largest:
        typer.echo(f"  {info.id:<13} {byte_size(size_bytes):>10}  {title(info, _TITLE_CHARS)}")


def vacuum_sessions() -> None:
    """Give back the room that the databases no longer need. Everything that is kept stays as it is."""
    path, url = store_place()
    if not (url or path.exists()):
        typer.echo("No sessions yet.")
        return
    with open_session_store(read_only=False) as store:
        before = store.sizes().total
        store.vacuum()
        after = store.sizes().total
    freed = max(0, before - after)
    typer.echo(
        f"{byte_size(before)} → {byte_size(after)}: {byte_size(freed)} given back. All sessions are as they were."
    )
