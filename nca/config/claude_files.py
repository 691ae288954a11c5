"""Claude Code's names of tools, and its settings files as JSON objects.

The files are `.claude/settings.json` and `.claude/settings.local.json`.

They were written for another program: what nca cannot use of them is a note, no error.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from nca.config.document import read_bytes, shown_path
from nca.errors import ConfigError

FILES = (".claude/settings.json", ".claude/settings.local.json")
TOOLS: Mapping[str, str] = {
    "Bash": "shell",
    "Read": "read_file",
    "Write": "write_file",
    "Edit": "edit_file",
    "Grep": "grep",
    "Glob": "glob",
    "LS": "list_directory",
    "WebFetch": "fetch_url",
    "TodoWrite": "todo",
    "Task": "task",
    "Skill": "skill",
}
"""nca's tools by Claude Code's names for them."""


class ClaudeFile(NamedTuple):
    path: Path
    data: dict[str, Any]


def claude_files(folder: Path, notes: list[str]) -> Iterator[ClaudeFile]:
    """The files below a project or the user's home that can be read; a note for each that cannot.

    Whoever reads a file twice gets the same note twice, which is then shown once.
    """
    for path in (folder / name for name in FILES):
        try:
            raw = read_bytes(path)
            data = json.loads(raw.decode("utf-8-sig")) if raw is not None else {}
        except (ConfigError, ValueError, RecursionError) as error:
            why = str(error) if isinstance(error, ConfigError) else f"{shown_path(path)}: it is no JSON."
            notes.append(f"{why} Its hooks and permissions do not hold; correct the file.")
            continue
        if isinstance(data, dict):
            yield ClaudeFile(path, data)
        else:
            notes.append(f"{shown_path(path)}: it is no JSON object. Its hooks and permissions do not hold.")
