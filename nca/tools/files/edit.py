"""Tools that change files: write_file and edit_file.

Both only touch what was read in this session and has not changed since, and leave either the old file or the new one.
"""

from __future__ import annotations

import asyncio
import os
import stat
import threading
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

from nca.messages import clean_text
from nca.redact import REDACTED
from nca.tools.files.atomic import write_file
from nca.tools.files.diffs import counts, unified
from nca.tools.files.read_files import MAX_CHANGED_BYTES, FilesRead
from nca.tools.files.replace import replaced
from nca.tools.files.text_file import TextFile, is_binary
from nca.tools.files.workspace import NoSuchFile, Workspace, shown
from nca.tools.tool import Approval, Permission, ToolError, ToolOutcome, TypedTool

MAX_OUTCOME_DIFF_LINES = 400
"""What a person is shown of a change that was made; what they approve is shown in whole."""

_REDACTED = REDACTED.rstrip("]")


@dataclass(frozen=True, slots=True)
class Change:
    """What a call will do. `before` and `facts` are None where the file is new."""

    name: str
    path: Path
    before: TextFile | None
    facts: os.stat_result | None
    after: str
    said: str
    """What the model is told when it is done."""

    @property
    def data(self) -> bytes:
        return (self.before or TextFile("")).encode(self.after)

    def diff(self) -> str:
        return unified(self.before.text if self.before else None, self.after, self.name)


class _ChangingTool(TypedTool, ABC):
    """What both have in common: plan, approve, carry out."""

    permission: ClassVar[Permission] = "write"

    def __init__(self, workspace: Workspace, files_read: FilesRead) -> None:
        self._workspace = workspace
        self._files_read = files_read
        # Calls of one step may run side by side; two edits of one file must not.
        self._lock = threading.Lock()

    def needs(self, arguments: dict[str, Any]) -> Permission:
        try:
            path = self._workspace.resolve(str(arguments.get("path") or ""))
        except ToolError:
            return self.permission
        return "execute" if self._workspace.is_run_by_others(path) else self.permission

    def approval(self, arguments: dict[str, Any]) -> Approval:
        change = self._plan(self._signature.read(arguments))
        _check_redacted(change)
        warnings = []
        if self._workspace.is_behind_link(str(arguments["path"]), change.path):
            warnings.append(f"{shown(str(arguments['path']))} leads through a link; this is written: {change.name}")
        if self._workspace.is_run_by_others(change.path):
            warnings.append("other programs run what stands in this file without asking")
        return Approval(
            path=shown(str(change.path)),
            diff=clean_text(change.diff()),
            warning="; ".join(warnings),
            subject=change.name,
        )

    @abstractmethod
    def _plan(self, arguments: dict[str, Any]) -> Change:
        """The change as it stands now; nothing is written. Raises ToolError."""

    def _carry_out(self, arguments: dict[str, Any]) -> ToolOutcome:
        with self._lock:
            change = self._plan(arguments)
            _check_redacted(change)
            data = change.data
            try:
                with self._workspace.folder(change.path.parent, create=True) as folder:
                    if change.facts is not None and _changed(change.facts, folder.stat(change.path.name)):
                        raise ToolError(f"{change.name} has changed just now; read it again")
                    write_file(folder, change.path.name, data, change.facts)
            except FileExistsError:
                raise ToolError(f"{change.name} exists by now; read it first") from None
            except OSError as error:
                raise ToolError(f"{change.name} cannot be written ({error.strerror})") from error
            self._files_read.note(change.path, data)
        diff = change.diff()
        summary = "new file, " + counts(diff) if change.before is None else counts(diff)
        return ToolOutcome(change.said, summary=summary, diff=_cut(diff))

    def _current(self, name: str) -> tuple[Path, TextFile | None, os.stat_result | None]:
        """The file as it is, None where there is none. Raises ToolError where the model does not know it as it is."""
        path = self._workspace.resolve_to_write(name)
        try:
            with self._workspace.open(path, name) as file:
                facts = os.fstat(file.fileno())
                raw = file.read(MAX_CHANGED_BYTES + 1)
        except NoSuchFile:
            return path, None, None
        if len(raw) > MAX_CHANGED_BYTES:
            raise ToolError(f"{shown(name)} is too large to be changed here ({facts.st_size:,} bytes)")
        if is_binary(raw):
            raise ToolError(f"{shown(name)} is a binary file ({facts.st_size:,} bytes)")
        if not facts.st_mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH):
            raise ToolError(f"{shown(name)} is read-only")
        if not self._files_read.is_known(path):
            raise ToolError(f"{shown(name)} was not read in this session; read it first")
        if not self._files_read.is_current(path, raw):
            raise ToolError(f"{shown(name)} has changed since it was read; read it again")
        return path, TextFile.of(raw, shown(name)), facts


class WriteFile(_ChangingTool):
    name: ClassVar[str] = "write_file"

    async def call(
        self,
        path: Annotated[str, "The file, relative to the working directory."],
        content: Annotated[str, "All of its text."],
    ) -> ToolOutcome:
        """Create a file, or replace all of one that was read; edit_file changes parts."""
        return await asyncio.to_thread(self._carry_out, {"path": path, "content": content})

    def summarize(self, arguments: dict[str, Any]) -> str:
        return f"write {shown(str(arguments.get('path', '')))}"

    def _plan(self, arguments: dict[str, Any]) -> Change:
        name, content = arguments["path"], clean_text(arguments["content"])
        _check(content, "content")
        path, before, facts = self._current(name)
        after = before.with_own_line_ends(content) if before else content
        shown_name = self._workspace.relative(path)
        what = "written" if before else "created"
        lines = after.count("\n") + (not after.endswith("\n") and bool(after))
        return Change(shown_name, path, before, facts, after, f"[{what} {shown_name}: {lines:,} lines]")


class EditFile(_ChangingTool):
    name: ClassVar[str] = "edit_file"

    async def call(
        self,
        path: Annotated[str, "The file."],
        old_text: Annotated[str, "The exact text, lines enough to be there once."],
        new_text: Annotated[str, "The text instead."],
        replace_all: Annotated[bool, "Everywhere."] = False,
    ) -> ToolOutcome:
        """Replace exact text in a file that was read."""
        arguments = {"path": path, "old_text": old_text, "new_text": new_text, "replace_all": replace_all}
        return await asyncio.to_thread(self._carry_out, arguments)

    def summarize(self, arguments: dict[str, Any]) -> str:
        return f"edit {shown(str(arguments.get('path', '')))}"

    def _plan(self, arguments: dict[str, Any]) -> Change:
        name, old, new = arguments["path"], clean_text(arguments["old_text"]), clean_text(arguments["new_text"])
        _check(new, "new_text")
        path, before, facts = self._current(name)
        if before is None:
            raise ToolError(f"there is no file {shown(name)}; write_file creates one")
        shown_name = self._workspace.relative(path)
        after, places = replaced(before, old, new, shown_name, everywhere=bool(arguments.get("replace_all")))
        where = f"line {places[0]}" if len(places) == 1 else f"{len(places)} places"
        return Change(shown_name, path, before, facts, after, f"[edited {shown_name}: {where}]")


def _check(text: str, argument: str) -> None:
    if "\0" in text:
        raise ToolError(f"argument {argument} holds a NUL character; only text can be written")
    if len(text) > MAX_CHANGED_BYTES:
        raise ToolError(f"argument {argument} is too large ({len(text):,} characters)")


def _check_redacted(change: Change) -> None:
    """What stands for a key must not take the key's place (nca.redact)."""
    before = change.before.text if change.before else ""
    if change.after.count(_REDACTED) > before.count(_REDACTED):
        raise ToolError(
            f"the text holds {_REDACTED!r}, which stands for a key that is not shown;"
            " leave such lines alone and change the others with edit_file"
        )


def _changed(before: os.stat_result, now: os.stat_result) -> bool:
    return (before.st_ino, before.st_mtime_ns, before.st_size) != (now.st_ino, now.st_mtime_ns, now.st_size)


def _cut(diff: str) -> str:
    lines = diff.split("\n")
    if len(lines) <= MAX_OUTCOME_DIFF_LINES:
        return diff
    return "\n".join([*lines[:MAX_OUTCOME_DIFF_LINES], f"… {len(lines) - MAX_OUTCOME_DIFF_LINES:,} more lines"])
