"""The tools that change files: write_file and edit_file.

Nothing is written over unseen: a file that has changed since it was read is read again first. One that was not read is
changed only by edits with an old text that occurs exactly once, and all of a file is replaced only once all of its
lines were shown. A crash leaves the old file or the new.
"""

from __future__ import annotations

import asyncio
import os
import stat
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar

import msgspec

from nca.errors import system_reason
from nca.file_history import Recorder
from nca.file_history.changes import counts, has_unseen, unified
from nca.humanize import WRITTEN_OUT, counted, some_of
from nca.messages import clean_text
from nca.redact import PLACEHOLDER
from nca.tools.files.merge import merged
from nca.tools.files.reading_rules import MAX_CHANGED_BYTES, FilesRead
from nca.tools.files.replace import replaced
from nca.tools.files.text_file import TextFile, can_save, is_binary, is_unsaved, says_the_same, write_file
from nca.tools.files.workspace import NoSuchFile, Workspace, shown, why_asked, why_change_asked
from nca.tools.tool import Approval, Permission, ToolError, ToolOutcome, TypedTool

_MOST_GAPS = 5


@dataclass(frozen=True, slots=True)
class Change:
    """The file to write. `before` and `facts` (its status) are None for a new file; `said` is for the model."""

    name: str
    path: Path
    before: TextFile | None
    facts: os.stat_result | None
    after: str
    said: str

    @property
    def unsaved(self) -> bytes | None:
        """The file before, if only an editor has that."""
        if self.before is None or self.facts is None or not is_unsaved(self.facts):
            return None
        return self.before.encode(self.before.text)

    @property
    def lines(self) -> int:
        return len(self.after.removesuffix("\n").split("\n")) if self.after else 0

    def diff(self) -> str:
        return unified(self.before.text if self.before else None, self.after, self.name)


@dataclass(eq=False)
class _ChangingTool(TypedTool):
    """The steps that both tools share: plan, approve, write."""

    permission: ClassVar[Permission] = "write"
    _plan: ClassVar[Callable[..., Change]]
    """Compute the change from the arguments of the call; nothing is written. Raises ToolError."""
    workspace: Workspace
    files_read: FilesRead
    recorder: Recorder = field(default_factory=Recorder)
    # Calls of one step may run in parallel, but not two edits of one file.
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)
    _approved: tuple[dict[str, Any], str] | None = field(default=None, init=False)
    """The newest arguments that somebody was asked about, and the diff that they saw."""

    def summarize(self, arguments: dict[str, Any]) -> str:
        return f"{self.name.removesuffix('_file')} {shown(str(arguments.get('path', '')))}"

    def needs(self, arguments: dict[str, Any]) -> Permission:
        try:
            path = self.workspace.resolve(str(arguments.get("path") or ""))
        except ToolError:
            return self.permission
        return "execute" if why_asked(path.relative_to(self.workspace.root).parts) else self.permission

    def approval(self, arguments: dict[str, Any]) -> Approval:
        asked = self._signature.read(arguments)
        change = self._plan(**asked)
        _check(change)
        warnings = []
        diff = change.diff()
        if is_masked := has_unseen(diff):
            warnings.append(WRITTEN_OUT)
        name = str(arguments["path"])
        if self.workspace.is_behind_link(name, change.path):
            warnings.append(f"{shown(name)} leads through a link; {change.name} is written.")
        if change.facts is not None and change.facts.st_nlink > 1:
            warnings.append(f"{change.name} has another name (a hard link), which keeps the old content.")
        before = change.before.text if change.before else ""
        inside = change.path.relative_to(self.workspace.root).parts
        if why := why_asked(inside) or why_change_asked(inside, before, change.after):
            warnings.append(f"You are asked because {why}.")
        self._approved = _given(asked), diff
        path, warning = shown(str(change.path)), " ".join(warnings)
        return Approval(path=path, diff=diff, warning=warning, subject=change.name, is_masked=is_masked)

    def _carry_out(self, **arguments: Any) -> ToolOutcome:
        with self._lock:
            change = self._plan(**arguments)
            _check(change)
            diff, approved, self._approved = change.diff(), self._approved, None
            if approved is not None and approved[0] == _given(arguments) and approved[1] != diff:
                raise ToolError(f"{change.name} has changed just now; read it again", asks_to_read=True)
            data = (change.before or TextFile("")).encode(change.after)
            try:
                with self.recorder.edit(change.path, data, self.name, change.unsaved):
                    data = self._saved_by_editor(change, data) or self._write(change, data)
            except FileExistsError:
                raise ToolError(f"{change.name} exists by now; read it first", asks_to_read=True) from None
            except OSError as error:
                raise ToolError(f"{change.name} cannot be written ({system_reason(error)})") from error
            self._note_written(change, data)
        summary = "new file, " + counts(diff) if change.before is None else counts(diff)
        return ToolOutcome(change.said, summary=summary, diff=diff)

    def _note_written(self, change: Change, data: bytes) -> None:
        """The written text counts as read if the rest of the file did. Of a part, the lines have other numbers now."""
        if change.before is None or (self.files_read.is_known(change.path) and not self.files_read.unseen(change.path)):
            self.files_read.note(change.path, data)
        elif self.files_read.is_known(change.path):
            self.files_read.note_page(change.path, data, change.lines)

    def _write(self, change: Change, data: bytes) -> bytes:
        """Write the file on the disk. Returns its new content. Raises OSError, ToolError."""
        if change.unsaved is not None:
            raise ToolError(
                f"{change.name} has changes in the editor that are not saved; the person must save it first"
            )
        with self.workspace.folder(change.path.parent, create=True) as folder:
            if change.facts is not None and _changed(change.facts, folder.stat(change.path.name)):
                raise ToolError(f"{change.name} has changed just now; read it again", asks_to_read=True)
            write_file(folder, change.path.name, data, change.facts)
        return data

    def _saved_by_editor(self, change: Change, data: bytes) -> bytes:
        """Have the editor write and save the file. Returns its new content; b"" if no editor wrote it.

        An editor may change the text as it saves, such as its format. Then the file counts as changed since the read.
        """
        editor, path = self.workspace.open_files, change.path
        if editor is None or not can_save(change.before, change.after):
            return b""
        with self.workspace.folder(path.parent, create=True):
            before = self._on_disk(path)
            if not editor.write(path, change.after):
                return b""
        now = self._on_disk(path)
        if now == before and now != data:
            # It keeps the text to itself: saved by nca, it is on the disk and in the record.
            with self.workspace.folder(path.parent) as folder:
                write_file(folder, path.name, data, None if now is None else folder.stat(path.name))
            return data
        is_same = now is not None and says_the_same(now.decode("utf-8", "replace"), change.after)
        return now if now and is_same else data

    def _on_disk(self, path: Path) -> bytes | None:
        try:
            with self.workspace.open_saved(path, path.name) as file:
                return file.read(MAX_CHANGED_BYTES + 1)
        except NoSuchFile:
            return None

    def _current(self, name: str) -> tuple[Path, TextFile | None, os.stat_result | None]:
        """The file as it is now, with None and None if it is new.

        Raises ToolError if it cannot be changed, or has changed since it was read.
        """
        path = self.workspace.resolve_to_write(name)
        try:
            with self.workspace.open(path, name) as file:
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
        if self.files_read.is_known(path) and not self.files_read.is_current(path, raw):
            raise ToolError(f"{shown(name)} has changed since it was read; read it again", asks_to_read=True)
        return path, TextFile.of(raw, shown(name)), facts

    def _why_unread(self, path: Path, name: str) -> str:
        """Why the file counts as not read, with what to do; "" if it was read."""
        if self.files_read.is_forgotten(path):
            return f"{shown(name)} was read before the conversation went back; read it again"
        unread = f"{shown(name)} was not read since the session was opened; read it first"
        return "" if self.files_read.is_known(path) else unread

    def _why_unseen(self, path: Path, name: str) -> str:
        """Which lines of a file that was read were not shown; "" if all were."""
        gaps = self.files_read.unseen(path)
        lines = some_of([str(first) if first == last else f"{first}-{last}" for first, last in gaps], _MOST_GAPS)
        what = "line" if len(gaps) == 1 and gaps[0][0] == gaps[0][1] else "lines"
        return f"{shown(name)} was read only in part: read {what} {lines} too, or use edit_file" if gaps else ""


def _given(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that are not at their default. A call names all of them; the question about it names only these."""
    return {name: value for name, value in arguments.items() if value}


class WriteFile(_ChangingTool):
    name: ClassVar[str] = "write_file"

    async def call(
        self,
        path: Annotated[str, "The file, relative to the working directory."],
        content: Annotated[str, "All of its text."],
    ) -> ToolOutcome:
        """Create a file, or replace all of one that was read; edit_file changes parts."""
        return await asyncio.to_thread(self._carry_out, path=path, content=content)

    def _plan(self, path: str, content: str) -> Change:
        content = _checked(content, "content")
        file, before, facts = self._current(path)
        if before is not None and (why := self._why_unread(file, path) or self._why_unseen(file, path)):
            raise ToolError(why, asks_to_read=True)
        after = before.with_own_line_ends(content) if before else content
        name = self.workspace.relative(file)
        change = Change(name, file, before, facts, after, "")
        said = f"[{'written' if before else 'created'} {name}: {counted(change.lines, 'line')}]"
        return replace(change, said=said)


_NEW_TEXT = "The changed function, whole, or the changed lines; without the rest of the file."


class Edit(msgspec.Struct, forbid_unknown_fields=True):
    old_text: str
    new_text: str
    replace_all: bool = False


@dataclass(eq=False)
class EditFile(_ChangingTool):
    """`is_small`: whether the model is a small one, which gives only the new code; asked at each call."""

    name: ClassVar[str] = "edit_file"
    is_small: Callable[[], bool] = lambda: False

    async def call(
        self,
        path: Annotated[str, "The file."],
        old_text: Annotated[str | None, "The exact text, lines enough to be there once."] = None,
        new_text: Annotated[str | None, "The text instead."] = None,
        replace_all: Annotated[bool, "Everywhere."] = False,
        more_edits: Annotated[list[Edit] | None, "Made after it, all or none."] = None,
    ) -> ToolOutcome:
        """Replace exact text; in an unread file, unique text."""
        edits = {"old_text": old_text, "new_text": new_text, "replace_all": replace_all, "more_edits": more_edits}
        return await asyncio.to_thread(self._carry_out, path=path, **edits)

    @property
    def parameters(self) -> dict[str, Any]:
        return super().parameters | {"required": ["path", "old_text", "new_text"]}

    @property
    def simple(self) -> dict[str, Any]:
        """The definition for a small model, which copies a text that it is to replace with mistakes."""
        path, new_text = self.parameters["properties"]["path"], {"type": "string", "description": _NEW_TEXT}
        properties = {"path": path, "new_text": new_text}
        return {
            "name": self.name,
            "description": "Put changed code into a file that was read; all else in it stays.",
            "parameters": {"type": "object", "properties": properties, "required": list(properties)},
        }

    def _plan(
        self,
        path: str,
        new_text: str | None = None,
        old_text: str | None = None,
        replace_all: bool = False,
        more_edits: Sequence[Edit] | None = None,
    ) -> Change:
        if new_text is None or (old_text is None and (more_edits or not self.is_small())):
            raise ToolError(f"missing argument {'old_text' if old_text is None else 'new_text'} (a string)")
        file, before, facts = self._current(path)
        if before is None:
            raise ToolError(f"there is no file {shown(path)}; write_file creates one")
        name, why_unread = self.workspace.relative(file), self._why_unread(file, path)
        if why_unread and (old_text is None or replace_all or any(edit.replace_all for edit in more_edits or ())):
            raise ToolError(why_unread, asks_to_read=True)
        if old_text is None:
            after, said = _with_code(before, _checked(new_text, "new_text"), name)
            return Change(name, file, before, facts, after, f"[edited {name}: {'; '.join(said)}]")
        edits = [Edit(old_text, new_text, replace_all), *(more_edits or ())]
        after, said, moved = before.text, list[str](), list[str]()
        for number, edit in enumerate(edits, 1):
            old, new = clean_text(edit.old_text), _checked(edit.new_text, "new_text")
            try:
                done = replaced(replace(before, text=after), old, new, name, everywhere=edit.replace_all)
                if why_unread and done.is_forgiven:
                    raise ToolError(why_unread, asks_to_read=True)
            except ToolError as error:
                if why_unread:
                    # An excerpt might show text that the person does not want read.
                    raise ToolError(f"{why_unread}: old_text is not there exactly, once", asks_to_read=True) from error
                if len(edits) == 1:
                    raise
                which = f"nothing is changed, because of edit {number} of {len(edits)}"
                raise ToolError(f"{which}: {error}", error.excerpt) from error
            after = done.text
            said.append(done.where())
            if done.moved:
                # Of a file that was not read, no line is shown.
                moved.append(f"[{done.moved}]" if why_unread else f"[{done.moved}:]\n{done.around}")
        if after == before.text:
            raise ToolError(f"the edits leave {name} as it is")
        text = "\n".join((f"[edited {name}: {'; '.join(said)}]", *moved))
        return Change(name, file, before, facts, after, text)


def _with_code(before: TextFile, code: str, name: str) -> tuple[str, list[str]]:
    """The file's text with changed code in it, and a report. Raises ToolError."""
    plain = before.text.replace("\r\n", "\n")
    if before.with_own_line_ends(plain) != before.text:
        raise ToolError(f"the lines of {name} end in different ways; a small model cannot change it")
    after, said = merged(plain, code.replace("\r\n", "\n"), name)
    return before.with_own_line_ends(after), said


def _checked(text: str, argument: str) -> str:
    """The text as it can be written. Raises ToolError."""
    if "\0" in text:
        raise ToolError(f"argument {argument} holds a NUL character; only text can be written")
    if len(text) > MAX_CHANGED_BYTES:
        raise ToolError(f"argument {argument} is too large ({len(text):,} characters)")
    return clean_text(text)


def _check(change: Change) -> None:
    """A placeholder for a redacted key (nca.redact) must not replace that key, nor UTF-8 stand beside other bytes."""
    before = change.before or TextFile("")
    if before.would_mix(change.after):
        raise ToolError(
            f"{change.name} is not UTF-8, so only ASCII text can be put into it;"
            " write_file replaces all of it, as UTF-8"
        )
    if change.after.count(PLACEHOLDER) > before.text.count(PLACEHOLDER):
        raise ToolError(
            f"the text holds {PLACEHOLDER!r}, which stands for a key that is not shown;"
            " leave such lines alone and change the others with edit_file"
        )


def _changed(before: os.stat_result, now: os.stat_result) -> bool:
    return (before.st_ino, before.st_mtime_ns, before.st_size) != (now.st_ino, now.st_mtime_ns, now.st_size)
