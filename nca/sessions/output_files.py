"""Folders of tool outputs that were too large for the context: `outputs/ID/` beside the database.

A folder is deleted with its session unless another session, such as a fork, still refers to a file in it.
"""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path

from nca.sessions.paths import outputs_of, size_of
from nca.sessions.sql import SessionDatabase


def size(store: Path) -> int:
    """Of all saved outputs, in bytes."""
    return sum(size_of(path) for path in outputs_of(store).rglob("*") if path.is_file())


def sweep(database: SessionDatabase, store: Path | None) -> None:
    """Delete the folders that belong to no session and that no message refers to."""
    if store is None:
        return
    try:
        folders = [entry for entry in outputs_of(store).iterdir() if entry.is_dir() and not entry.is_symlink()]
    except OSError:  # no session has saved an output yet
        return
    for path in folders:
        if not database.row(
            "SELECT 1 WHERE EXISTS (SELECT 1 FROM sessions WHERE id = ?1)"
            " OR EXISTS (SELECT 1 FROM messages WHERE instr(body, ?2) > 0)",
            (path.name, f"{path.parent.name}/{path.name}/"),
        ):
            with suppress(OSError):  # what cannot be deleted now is tried again later
                shutil.rmtree(path)
