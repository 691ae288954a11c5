"""`nca store init`: prepare a PostgreSQL database for sessions; and nca's size on the disk, part by part."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from nca.cli.printing import echo
from nca.cli.startup import store_place
from nca.config.paths import cache_dir
from nca.errors import UsageError
from nca.safe_files import paths_below
from nca.terminal.render.sanitize import one_line

if TYPE_CHECKING:
    from nca.sessions.sizes import StoreSizes

app = typer.Typer(name="store", help="Prepare a PostgreSQL database for sessions.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Keeps `init` a command of its own."""


@app.command()
def init(
    team: Annotated[
        bool, typer.Option("--team", help="For several people: each changes only their own sessions, and can read all.")
    ] = False,
) -> None:
    """Create or migrate the tables in the database that session.store names. It may run again at any time."""
    from nca.sessions.postgres import prepare

    url = store_place().url
    if not url:
        raise UsageError(
            "session.store is not set: sessions are in a file, which needs no preparation.",
            advice="`nca config set --user session.store postgresql://USER@HOST/DATABASE` sets it.",
        )
    found = prepare(url, for_team=team)
    echo(f"Prepared {one_line(found.where)}: PostgreSQL {found.version}, schema {found.schema}.")
    if team:
        echo("Add each person's role to the team: GRANT nca_team TO ada;")


VACUUM = "nca sessions vacuum"
MUCH_UNUSED_BYTES = 200_000_000
"""Free room in the databases that is worth it. Less is soon used again."""


class DiskPart(NamedTuple):
    """A part, its description, and advice."""

    name: str
    size_bytes: int
    detail: str


def disk_parts(store: StoreSizes) -> list[DiskPart]:
    """All parts that take room, largest first."""
    from nca.models.embedded import weights

    aside = ", ".join(path.name for path in store.aside)
    folder = weights.models_dir()
    unused = "freed in the databases, which use it again"
    if store.unused >= MUCH_UNUSED_BYTES:
        unused += f"; {VACUUM} gives it back, while no other nca runs"
    parts = [
        DiskPart("messages", store.messages, "what was said, and what tools showed"),
        DiskPart("summaries", store.summaries, "summaries, views and the history of compactions"),
        DiskPart("search index", store.search_index, "what recall and search look up"),
        DiskPart("unused", store.unused, unused),
        DiskPart("file history", store.file_history, "what /undo needs"),
        DiskPart("outputs", store.outputs, "tool outputs that were too large for the context"),
        DiskPart("archives", store.archives, "archived sessions"),
        DiskPart("set aside", store.set_aside, f"nca no longer needs it; you may delete it: {aside}"),
        DiskPart("weights", folder_bytes(folder), f"embedded models; you may delete the files in {folder}"),
        DiskPart("cache", folder_bytes(cache_dir(os.environ)), "rebuilt when needed"),
    ]
    return sorted((part for part in parts if part.size_bytes), key=lambda part: -part.size_bytes)


def folder_bytes(folder: Path) -> int:
    """The size of all files in a folder; 0 if there is no folder."""
    found = paths_below(folder, "**/*")
    return sum(path.lstat().st_size for path in found if os.path.isfile(path) and not os.path.islink(path))
