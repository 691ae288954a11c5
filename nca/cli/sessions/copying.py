"""`nca sessions copy`: copy sessions between two stores, such as a file and PostgreSQL."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Annotated

import typer

from nca.cli.startup import named_place, open_session_store, store_place
from nca.terminal.render.humanize import counted
from nca.terminal.render.sanitize import one_line

if TYPE_CHECKING:
    from nca.sessions import Store

_PLACE = "Default: your store. Else a URL of PostgreSQL, or a file."


def copy_sessions(
    session_ids: Annotated[list[str] | None, typer.Argument(metavar="[ID]...", help="Default: all sessions.")] = None,
    to: Annotated[str, typer.Option("--to", metavar="PLACE", help=_PLACE)] = "",
    source: Annotated[str, typer.Option("--from", metavar="PLACE", help=_PLACE)] = "",
) -> int:
    """Copy sessions to another store, each exactly and under its id. Those that are there already stay as they are."""
    from nca.errors import NcaError, UsageError

    begins = named_place("--from", source) if source else store_place()
    ends = named_place("--to", to) if to else store_place()
    if begins == ends:
        raise UsageError("--from and --to are the same store.", advice="Example: --to postgresql://ada@db.example/nca")
    copied = same = 0
    problems: list[str] = []
    with (
        open_session_store(read_only=True, place=begins) as here,
        open_session_store(read_only=False, place=ends) as there,
    ):
        ids = [here.find(one).id for one in session_ids or ()] or [info.id for info in here.list(None)[::-1]]
        for session_id in ids:
            try:
                is_new = _copy(here, there, session_id)
            except NcaError as error:
                problems.append(f"{session_id}: {error}")
            else:
                copied, same = copied + is_new, same + (not is_new)
    typer.echo(f"Copied {counted(copied, 'session')}." + (f" {same:,} were there already." if same else ""))
    for problem in problems:
        typer.echo(f"nca: {one_line(problem)}", err=True)
    return 1 if problems else 0


def _copy(here: Store, there: Store, session_id: str) -> bool:
    """Whether it was copied; not if it is there. Raises StoreError if another session has its id, or it differs."""
    from nca.errors import SessionNotFound, StoreError

    copy = here.exact_copy_of(session_id)
    try:
        known = there.find(session_id)
    except SessionNotFound:
        known = None
    if known is not None and known.id == session_id:
        if there.copy_of(session_id).entries != copy.entries:
            raise StoreError("The other store has it with other messages.", advice="`nca sessions show` shows each.")
        return False
    begins, ends = here.outputs_folder(session_id), there.outputs_folder(session_id)
    if begins and ends and begins.is_dir():
        shutil.copytree(begins, ends, dirs_exist_ok=True)
    there.add(copy, keeps_id=True)
    return True
