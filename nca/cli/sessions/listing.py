"""`nca sessions list`. Looking writes nothing and takes no lock."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from nca.cli.sessions.shown import AsJson, open_to_read, print_json, title, when
from nca.terminal.render.sanitize import one_line

if TYPE_CHECKING:
    from nca.sessions import SessionInfo

_LISTED = 50


def list_sessions(
    as_json: AsJson = False,
    everything: Annotated[bool, typer.Option("--all", help=f"All sessions, not only the newest {_LISTED}.")] = False,
) -> None:
    """List sessions, the one used last first."""
    with open_to_read() as store:
        infos = store.list(None if everything else _LISTED + 1)
    shown = infos if everything else infos[:_LISTED]
    if as_json:
        import msgspec

        print_json([msgspec.to_builtins(info) for info in shown])
        return
    if not shown:
        typer.echo("no sessions yet")
        return
    for info in shown:
        typer.echo(_row(info))
    if len(infos) > len(shown):
        typer.echo("… and older ones: `nca sessions list --all` shows every session.")


def _row(info: SessionInfo) -> str:
    pin = "*" if info.is_pinned else " "
    model = one_line(info.model)
    return f"{info.id} {pin} {when(info.updated_at)}  {info.messages:>6,}  {title(info)}  {model}".rstrip()
