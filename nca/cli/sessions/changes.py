"""`nca sessions changes`: what a session changed in the files. It writes nothing and takes no lock."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from nca.cli.flags import AsJson, SessionId
from nca.cli.startup import open_session_store

if TYPE_CHECKING:
    from nca.file_history.changes import FileChange


def show_changes(
    session_id: SessionId,
    patch: Annotated[
        bool, typer.Option("--patch", help="Print the changes as a patch, for git apply or patch.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show the files that a session changed, against what they were at its beginning."""
    import json
    import os
    from pathlib import Path

    from nca.file_history.changes import net_changes
    from nca.terminal.render.rewinds import path, totals
    from nca.terminal.render.sanitize import to_terminal

    with open_session_store(read_only=True) as store:
        info = store.find(session_id)
        changes: tuple[FileChange, ...] = ()
        if store.has_file_records:
            record = store.file_records.of(info.id, Path(os.path.realpath(info.directory)))
            changes = net_changes(record.changes(), record.content)
        if patch:
            for one in changes:
                typer.echo(to_terminal(one.diff()))
        elif as_json:
            rows = [{"path": path(one), "added": one.added, "removed": one.removed} for one in changes]
            typer.echo(json.dumps(rows))
        else:
            for one in changes:
                typer.echo(f"+{one.added:,} −{one.removed:,}  {path(one)}")
            typer.echo(f"{totals(changes)}." if changes else "This session changed no file that is recorded.")
