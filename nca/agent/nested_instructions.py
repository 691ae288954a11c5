"""Instructions of folders below the working directory, and rules for some files: the model gets them with the files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from nca.agent.project_instructions import (
    NESTED_BYTES,
    ProjectInstructions,
    nested_instructions,
    rule_files,
    rule_instructions,
)
from nca.agent.project_root import Project, real_home
from nca.config.tables import PermissionRule
from nca.context.file_reads import file_use
from nca.messages import ToolCall
from nca.redact import Redactor
from nca.tools.files.reading_rules import Reading
from nca.tools.permissions import reading_rule


class NestedInstructions:
    """Which folders' instructions and which rules the model has in view."""

    def __init__(self, directory: Path, redactor: Redactor, reading: Reading, *, has_own: bool = False) -> None:
        """has_own: the rules of the person's own `~/.claude` count."""
        self._redactor, self._reading = redactor, reading
        self._directory = Path(os.path.realpath(directory))
        self._home = real_home() if has_own else None
        self._rules: dict[Path, dict[Path, tuple[PermissionRule, ...]]] = {}
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
        for folder, file in self._rules_about(self._directory / use.path):
            self._shown.add(file)
            found.append(rule_instructions(folder, file, NESTED_BYTES, self._redactor, self._reading))
        told = [line for one in found for line in one.notices if line not in self._told]
        self._told.update(told)
        return ProjectInstructions("\n\n".join(one.text for one in found if one.text), tuple(told))

    def _rules_about(self, path: Path) -> Iterator[tuple[Path, Path]]:
        """The rules with `paths` that cover a file and are not in view, each with its folder."""
        real = Path(os.path.realpath(path))
        top = Project.around(self._directory, real_home()).top
        folders = [folder for folder in reversed(real.parents) if folder.is_relative_to(top)]
        for folder in filter(None, (self._home, *folders) if real.is_relative_to(self._directory) else ()):
            if folder not in self._rules:
                self._rules[folder] = rule_files(folder, self._directory if folder == self._home else None).with_paths
            for file, rules in self._rules[folder].items():
                if file not in self._shown and reading_rule(rules, real, self._directory):
                    yield folder, file
