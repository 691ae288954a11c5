"""What nca keeps about each project in a JSON file of the person's: an object with a row for each folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def read_rows(path: Path, most_bytes: int) -> dict[str, Any]:
    """The rows by folder, in the order of the file; {} if the file is missing or cannot be read."""
    try:
        with path.open("rb") as file:
            data = json.loads(file.read(most_bytes))
    except (OSError, ValueError, RecursionError):
        return {}
    projects = data.get("projects") if isinstance(data, dict) else None
    return projects if isinstance(projects, dict) else {}


def write_rows(path: Path, rows: dict[str, Any]) -> None:
    """Replace the file atomically. Raises OSError."""
    from nca.atomic_write import write_atomically

    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    write_atomically(path, json.dumps({"version": 1, "projects": rows}, indent=1).encode())
