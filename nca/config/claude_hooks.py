"""The hooks and the status line in Claude Code's settings files (nca.config.claude_files), as documents."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nca.config.claude_files import claude_files
from nca.config.document import Document, shown_name, shown_path
from nca.config.hooks import EVENTS, Hook
from nca.config.tables import read_row
from nca.config.value_types import InvalidValue


def claude_hooks(folder: Path, notes: list[str]) -> Iterator[Document]:
    """One document for each file with hooks, below a project or the user's home. Adds to `notes` what was left out."""
    for path, data in claude_files(folder, notes):
        events = data.get("hooks")
        if isinstance(events, dict) and (tables := list(_tables(events, path, notes))):
            yield Document(path, "", {"hooks": tables})


def claude_status(folder: Path, notes: list[str]) -> Document | None:
    """The command of `statusLine` below the user's home, as a document; None if there is none that nca can run."""
    found = None
    for path, data in claude_files(folder, notes):
        line = data.get("statusLine")
        if isinstance(line, dict) and line.get("type", "command") == "command" and isinstance(line.get("command"), str):
            found = Document(path, "", {"terminal": {"status_command": line["command"]}})
    return found


def _tables(events: dict[str, Any], path: Path, notes: list[str]) -> Iterator[dict[str, Any]]:
    """Each hook that nca can run as a table of `[[hooks]]`."""
    if unknown := [shown_name(event) for event in events if event not in EVENTS]:
        notes.append(f"{shown_path(path)}: hooks for {', '.join(unknown)} do not run: nca has no such event.")
    for event in filter(events.__contains__, EVENTS):
        groups = events[event]
        for group in groups if isinstance(groups, list) else ():
            entries = group.get("hooks") if isinstance(group, dict) else None
            for entry in entries if isinstance(entries, list) else ():
                try:
                    yield _table(event, group.get("matcher") or "", entry)
                except ValueError as error:
                    notes.append(f"{shown_path(path)}: a hook for {event} does not run: {error}.")


def _table(event: str, matcher: Any, entry: Any) -> dict[str, Any]:
    """Raises ValueError, with the reason, for a hook that nca cannot run."""
    if not isinstance(entry, dict) or entry.get("type", "command") != "command":
        raise ValueError("only hooks of type command do")
    if entry.get("if"):
        raise ValueError("nca does not read its condition (`if`)")
    table = {
        "event": event,
        "matcher": matcher,
        "command": entry.get("command", ""),
        "args": entry.get("args") or [],
        "timeout_seconds": entry.get("timeout") or 0,
        "background": entry.get("async") is True,
    }
    try:
        return read_row(Hook, table, "").plain()
    except InvalidValue as invalid:
        raise ValueError(str(invalid).strip(" :.")) from None
