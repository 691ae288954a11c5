"""Tools and their arguments as Claude Code names them, for hooks, whose scripts were written for those names."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nca.config.claude_files import TOOLS
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
