"""The folders of outputs that were too large for a view: `outputs/ID/` beside the database.

A folder goes with its session, unless another session still names a file in it: a fork has the same messages.
"""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path

from nca.sessions.database import Database


def folder(store: Path, session_id: str) -> Path:
    return _all(store) / session_id


def sweep(database: Database, store: Path | None) -> None:
    """Remove the folders that belong to no session and that no message names."""
    if store is None:
        return
    try:
        found = [entry for entry in _all(store).iterdir() if entry.is_dir() and not entry.is_symlink()]
    except OSError:  # no session has spilled anything yet
        return
    for path in found:
        if not database.row(
            "SELECT 1 WHERE EXISTS (SELECT 1 FROM sessions WHERE id = ?1)"
            " OR EXISTS (SELECT 1 FROM messages WHERE instr(body, ?2))",
            (path.name, f"{path.parent.name}/{path.name}/"),
        ):
            with suppress(OSError):  # what cannot be removed stays, and is tried again
                shutil.rmtree(path)


def _all(store: Path) -> Path:
    return store.parent / "outputs"
