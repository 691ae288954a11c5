"""`nca sessions usage` and `vacuum`: what nca takes on the disk, and how to give room back."""

from __future__ import annotations

import json

import typer

from nca.cli.disk_usage import disk_parts
from nca.cli.flags import AsJson
from nca.cli.startup import open_session_store, store_place
from nca.terminal.render.humanize import byte_size
from nca.terminal.render.sanitize import one_line
from nca.terminal.render.sessions import title

_TITLE_CHARS = 60


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
