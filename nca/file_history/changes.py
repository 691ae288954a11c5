"""What a session changed, by file, as diffs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

from nca.file_history.diffs import unified
from nca.sessions.file_states import Change, FileState

_PROBED_BYTES = 8192

Read = Callable[[FileState], bytes]
"""The stored content of a state. Raises StoreDamaged, StoreError."""


@dataclass(frozen=True)
class FileChange:
    """The net change of one path. `path` is relative to the workspace; bytes that are no UTF-8 are lone surrogates.

    is_mixed  somebody else may have had a part in it
    """

    path: str
    before: FileState
    after: FileState
    is_mixed: bool
    read: Read

    @property
    def name(self) -> str:
        """The path on one line, with escapes for what cannot be printed."""
        return self.path if self.path.isprintable() else ascii(self.path)[1:-1]

    def diff(self) -> str:
        """A unified diff; one line for what has no lines. Raises StoreError."""
        return self._diff

    @property
    def added(self) -> int:
        return self._count("+")

    @property
    def removed(self) -> int:
        return self._count("-")

    @cached_property
    def _diff(self) -> str:
        old, new = self.before, self.after
        if unstored := old.why or new.why:
            return f"{self.name}: not stored ({unstored})"
        if old.sha256 == new.sha256 and old.kind == new.kind:
            return f"{self.name}: mode {old.mode:o} → {new.mode:o}"
        if {old.kind, new.kind} - {"absent", "file"}:
            return f"{self.name}: {self._named(old)} → {self._named(new)}"
        contents = [self.read(state) if state.kind == "file" else None for state in (old, new)]
        if any(content and b"\0" in content[:_PROBED_BYTES] for content in contents):
            return f"{self.name}: binary, {old.size:,} → {new.size:,} bytes"
        before, after = (None if content is None else content.decode("utf-8", "replace") for content in contents)
        return unified(before, after, self.name)

    def _named(self, state: FileState) -> str:
        return f"link to {self.read(state).decode('utf-8', 'replace')}" if state.kind == "link" else state.kind

    def _count(self, sign: str) -> int:
        lines = self._diff.split("\n")
        return sum(line[:1] == sign for line in lines[2:]) if lines[0].startswith("--- ") else 0


def net_changes(journal: Iterable[Change], read: Read) -> tuple[FileChange, ...]:
    """The net change of each file or link, by path; folders are none, and neither is what is again as it was."""
    by_path = groupby(sorted(journal, key=lambda one: (one.path, one.number)), key=lambda one: one.path)
    found = []
    for path, group in by_path:
        changes = list(group)
        before, after = changes[0].before, changes[-1].after
        if not before.is_same(after) and {before.kind, after.kind} - {"folder", "absent"}:
            found.append(FileChange(path, before, after, any(one.is_mixed for one in changes), read))
    return tuple(found)
