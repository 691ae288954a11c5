"""Instructions of folders below the working directory: the model gets them when its work goes there."""

from __future__ import annotations

import os
from pathlib import Path

from nca.agent.project_instructions import NESTED_BYTES, ProjectInstructions, nested_instructions
from nca.context.file_reads import file_use
from nca.messages import ToolCall
from nca.redact import Redactor
from nca.tools.files.reading_rules import Reading


class NestedInstructions:
    """Which folders' instructions the model has in view."""

    def __init__(self, directory: Path, redactor: Redactor, reading: Reading) -> None:
        self._redactor, self._reading = redactor, reading
        self._directory = Path(os.path.realpath(directory))
        self._shown: set[Path] = set()
        self._view_id = 0
        self._told: set[str] = set()

    def for_call(self, call: ToolCall, view_id: int) -> ProjectInstructions:
        """What goes with the result of a call on a file, where there is something new, and what a person should know.

        After a compaction the model may no longer see them, so they come again.
        """
        use = file_use(call)
        if use is None or "\0" in use.path:
            return ProjectInstructions()
        if view_id != self._view_id:
            self._shown.clear()
            self._view_id = view_id
        found = []
        for folder in reversed((self._directory / use.path).parents):
            if folder == self._directory or not folder.is_relative_to(self._directory) or folder in self._shown:
                continue
            self._shown.add(folder)
            found.append(nested_instructions(self._directory, folder, NESTED_BYTES, self._redactor, self._reading))
        told = [line for one in found for line in one.notices if line not in self._told]
        self._told.update(told)
        return ProjectInstructions("\n\n".join(one.text for one in found if one.text), tuple(told))
