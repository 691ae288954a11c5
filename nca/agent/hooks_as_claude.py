"""What hooks get, as Claude Code writes it: the names of tools, their arguments, and the conversation as a file."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from nca.config.claude_permissions import TOOLS
from nca.context.history import History
from nca.messages import Entry
from nca.safe_files import PRIVATE
from nca.shapes.anthropic import new_blocks
from nca.tools.tool import ToolOutcome

_NAMES = {own: theirs for theirs, own in TOOLS.items()}
_KEYS = {
    "shell": {"timeout_seconds": "timeout"},
    "read_file": {"path": "file_path"},
    "write_file": {"path": "file_path"},
    "edit_file": {"path": "file_path", "old_text": "old_string", "new_text": "new_string"},
    "grep": {"max_results": "head_limit"},
    "task": {"question": "prompt", "agent": "subagent_type"},
    "skill": {"name": "skill"},
}
_MILLISECONDS = "timeout"
"""The one argument in another unit: nca's is in seconds."""


def claude_name(tool: str) -> str:
    """Names of MCP servers' tools are the same in both."""
    return _NAMES.get(tool, tool)


def claude_input(tool: str, arguments: Mapping[str, Any], directory: Path) -> dict[str, Any]:
    """The arguments by Claude's names. Its paths of files are absolute."""
    keys = _KEYS.get(tool, {})
    return {keys.get(name, name): _shown(keys.get(name, name), value, directory) for name, value in arguments.items()}


def own_arguments(
    tool: str, updated: Mapping[str, Any], arguments: Mapping[str, Any], directory: Path
) -> dict[str, Any]:
    """nca's arguments for an input that a hook gives back. What it left as it was is as the model wrote it."""
    shown = claude_input(tool, arguments, directory)
    names = {theirs: own for own, theirs in _KEYS.get(tool, {}).items()}
    return {
        (own := names.get(name, name)): arguments[own]
        if own in arguments and shown.get(name) == value
        else _in_seconds(name, value)
        for name, value in updated.items()
    }


def claude_response(tool: str, outcome: ToolOutcome, shown_input: Mapping[str, Any]) -> dict[str, Any]:
    """What came of a call: its text, and the fields of Claude's that scripts look for."""
    response: dict[str, Any] = {"success": not outcome.is_error, "content": outcome.text}
    if tool == "shell":
        response |= {"stdout": outcome.text, "stderr": "", "interrupted": False}
    if "file_path" in shown_input:
        response["filePath"] = shown_input["file_path"]
    return response


def _shown(name: str, value: Any, directory: Path) -> Any:
    if name == "file_path" and isinstance(value, str):
        return os.path.join(directory, os.path.expanduser(value))  # noqa: PTH111, PTH118  Path raises for some names
    return value * 1000 if name == _MILLISECONDS and isinstance(value, int) else value


def _in_seconds(name: str, value: Any) -> Any:
    return max(1, value // 1000) if name == _MILLISECONDS and isinstance(value, int) else value


class Transcript:
    """What the model saw when the first hook ran, and every message since. The file lasts as long as the chat."""

    def __init__(self, session_id: str, folder: Path | None) -> None:
        """folder: the session's; None: there is no file."""
        self._session_id = session_id
        self._path = folder / "transcript.jsonl" if folder is not None else None
        self._head = -1

    def brought_up(self, history: History) -> str:
        """The path of the file with all messages so far; of an empty one where it cannot be written."""
        if self._path is None:
            return os.devnull
        is_first = self._head < 0
        entries: Iterable[Entry] = history.visible() if is_first else history.entries[self._head :]
        text = "".join(self._line(entry) for entry in entries if entry.message.role != "system")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            flags = os.O_WRONLY | os.O_CREAT | (os.O_TRUNC if is_first else os.O_APPEND)
            with os.fdopen(os.open(self._path, flags, PRIVATE), "w", encoding="utf-8", errors="replace") as file:
                file.write(text)
        except OSError:
            self._path = None
            return os.devnull
        self._head = history.head
        return str(self._path)

    def close(self) -> None:
        """Delete the file."""
        if self._path is not None and self._head >= 0:
            with suppress(OSError):
                self._path.unlink(missing_ok=True)
                self._path.parent.rmdir()

    def _line(self, entry: Entry) -> str:
        role = "assistant" if entry.message.role == "assistant" else "user"
        message = {"role": role, "content": new_blocks(entry.message)}
        said = {"type": role, "sessionId": self._session_id, "message": message}
        return json.dumps(said, ensure_ascii=False, separators=(",", ":")) + "\n"
