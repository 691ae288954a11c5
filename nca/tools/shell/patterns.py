"""Patterns such as `src/*.py`: a command that has them is judged as if the files' names had been typed.

A shell would look the names up anew. So a command that runs because of this judgement runs with the names that were
judged, and a file that comes later, a link say, is none of them.
"""

from __future__ import annotations

import os
import shlex
from itertools import islice
from pathlib import Path

from nca.tools.files.workspace import Workspace
from nca.tools.shell.command_words import ANY_TEXT, command_list
from nca.tools.tool import ToolError

_MOST_ENTRIES = 5_000
"""Of a folder: to look at this many takes 10 ms."""


def without_patterns(command: str, *, workspace: Workspace, directory: Path) -> str:
    """The command with the names of files for each pattern; as it is if it has none, or one that is not understood.

    Understood is `*` in the last part of a path. Its folder is in the project, and at least one file fits. Names are as
    bash finds them, without those that begin with a dot, in the order of their characters. One that could be taken for
    an option is not understood. Too many make a command that is too long to be judged.
    """
    if "*" not in command:
        return command
    lines: list[str] = []
    for stage in command_list(command, takes_patterns=True) or ():
        words = list(stage.words[:1])
        for word in stage.words[1:]:
            names = _names(word, workspace, directory) if ANY_TEXT in word else [word]
            if not names:
                return command
            words += names
        if ANY_TEXT in words[0]:
            return command
        lines.append(f"{shlex.join(words)}{stage.errors} {stage.operator}")
    return " ".join(lines).rstrip() or command


def _names(word: str, workspace: Workspace, directory: Path) -> list[str]:
    """The paths that a word with a pattern stands for; [] if it must not be taken for any."""
    folder, slash, last = word.rpartition("/")
    if ANY_TEXT in folder or ANY_TEXT * 2 in last or word.startswith("-") or last.startswith("."):
        return []
    try:
        with os.scandir(workspace.resolve(str(directory / f"{folder}{slash}"))) as entries:
            found = [entry.name for entry in islice(entries, _MOST_ENTRIES + 1)]
    except (ToolError, OSError):
        return []
    fitting = sorted(f"{folder}{slash}{name}" for name in found if name[0] != "." and _fits(name, last.split(ANY_TEXT)))
    is_plain = all(name.isascii() and name.isprintable() and name[0] != "-" for name in fitting)
    return fitting if is_plain and len(found) <= _MOST_ENTRIES else []


def _fits(name: str, parts: list[str]) -> bool:
    """Whether a name is these parts with any text between them."""
    first, *middle, last = parts
    at, end = len(first), len(name) - len(last)
    if at > end or not (name.startswith(first) and name.endswith(last)):
        return False
    for part in middle:
        at = name.find(part, at, end) + len(part)
        if at < len(part):
            return False
    return True
