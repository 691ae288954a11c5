"""`nca sessions list`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from nca.cli.flags import AsJson
from nca.cli.sessions.printing import print_json, short_title
from nca.cli.startup import open_session_store
from nca.terminal.render.humanize import local_time
from nca.terminal.render.sanitize import one_line

if TYPE_CHECKING:
    from nca.sessions import SessionInfo

_LISTED = 50


def list_sessions(
    as_json: AsJson = False,
    everything: Annotated[bool, typer.Option("--all", help=f"List all sessions, not only the last {_LISTED}.")] = False,
) -> None:
    """List sessions, most recently used first."""
    with open_session_store(read_only=True) as store:
        infos = store.list(None if everything else _LISTED + 1)
    shown = infos if everything else infos[:_LISTED]
    if as_json:
        import msgspec

        print_json(msgspec.to_builtins(shown))
        return
    if not shown:
        typer.echo("No sessions yet.")
    for info in shown:
        typer.echo(_row(info))
    if len(infos) > len(shown):
        typer.echo("… and older ones. `nca sessions list --all` lists every session.")


def _row(info: SessionInfo) -> str:
    pin = "*" if info.is_pinned else " "
    about = f"{short_title(info)}  {one_line(info.model)}".rstrip()
    return f"{info.id} {pin} {local_time(info.updated_at)}  {info.messages:>6,}  {about}"
