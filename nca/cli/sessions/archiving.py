"""`nca sessions archive` and `restore`."""

from __future__ import annotations

from typing import Annotated

import typer

from nca.cli.flags import SessionId
from nca.cli.sessions.changing import print_new_session
from nca.cli.startup import open_session_store
from nca.terminal.render.sanitize import one_line


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
