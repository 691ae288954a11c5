"""`nca store init`: prepare a PostgreSQL database for sessions."""

from __future__ import annotations

from typing import Annotated

import typer

app = typer.Typer(name="store", help="Prepare a PostgreSQL database for sessions.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Keeps `init` a command of its own."""


@app.command()
def init(
    team: Annotated[
        bool,
        typer.Option("--team", help="For several people: each changes only their own sessions, and can read all."),
    ] = False,
) -> None:
    """Create or migrate the tables in the database that session.store names. It may run again at any time."""
    from nca.cli.startup import store_place
    from nca.errors import UsageError
    from nca.sessions.postgres import prepare
    from nca.terminal.render.sanitize import one_line

    url = store_place().url
    if not url:
        raise UsageError(
            "session.store is not set: sessions are in a file, which needs no preparation.",
            advice="`nca config set --user session.store postgresql://USER@HOST/DATABASE` sets it.",
        )
    found = prepare(url, for_team=team)
    typer.echo(f"Prepared {one_line(found.where)}: PostgreSQL {found.version}, schema {found.schema}.")
    if team:
        typer.echo("Add each person's role to the team: GRANT nca_team TO ada;")
