"""The plan of a rewind, file by file, with its obstacles, before anything changes.

A file is touched only if it holds what this session last left there, and nobody else changed it in between.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from nca.errors import StoreDamaged, StoreError
from nca.file_history.changes import FileChange, Read, without_session
from nca.file_history.disk import has_other_names, look, nearest_folder
from nca.safe_files import open_folder
from nca.sessions.file_record import ABSENT, BACKGROUND, RWX, Change, FileState

_MADE = ("restored", "deleted", "folders")
"""The tuples of a plan that are carried out as they are."""
_IN_THE_WAY = "{} is in the way"


@dataclass(frozen=True)
class PlannedChange(FileChange):
    """The way from the current content, `before`, to the coming one, `after`.

    reason      why it is left as it is, or ""
    is_unnamed  nca cannot tell who made the change: a command that does not mention the file ran meanwhile
    base        what the session left there last
    without     what would be there without the session, as far as that can be merged
    is_merged   `after` is a merge with a later change by somebody else: not stored yet
    recorded    all that the record has of it since then
    """

    reason: str = ""
    is_unnamed: bool = False
    base: FileState = ABSENT
    without: FileState = ABSENT
    is_merged: bool = False
    recorded: tuple[FileState, ...] = ()

    def contents(self) -> Iterator[bytes]:
        """What is there, and what was or will be."""
        for state in dict.fromkeys((self.before, self.after, *self.recorded)):
            with suppress(StoreError):
                yield self.read(state) if state.kind == "file" and state.sha256 else b""

    @property
    def is_folder(self) -> bool:
        return {self.before.kind, self.after.kind} <= {"folder", "absent"}


@dataclass(frozen=True, slots=True)
class Choice:
    """The person's choice for files that need one.

    take    those that somebody changed since, and that get their older state anyway
    keep    those that stay as they are
    merges  those that get a merge, as `FileHistory.merged` gave it
    """

    take: frozenset[str] = frozenset()
    keep: frozenset[str] = frozenset()
    merges: tuple[PlannedChange, ...] = ()


Unsaved = Callable[[Mapping[Path, Iterable[bytes]]], Container[Path]]
"""Of files with contents that are on the disk or stored: those of which an editor has another text. Blocks."""
UNSAVED = "the editor has lines of it that are not saved"
LINKED = "it has hard links, which would be parted"
EVERYTHING_CERTAIN = Choice()
"""Leave what somebody changed since."""


@dataclass(frozen=True)
class Rewound:
    """What becomes, or became, of each file. Each tuple is ordered by path.

    restored    files that get an earlier content, mode or link target; also those that are gone now
    deleted     files that were not there
    left        files that someone else changed, or that have hard links; a choice may take the older state
    blocked     files that cannot be restored as things are; `reason` names the obstacle
    not_stored  files without a stored earlier or present content: a rewind could not be taken back
    unset       files and folders that had special bits then which nca does not set; `reason` names these
    """

    restored: tuple[PlannedChange, ...] = ()
    deleted: tuple[PlannedChange, ...] = ()
    left: tuple[PlannedChange, ...] = ()
    blocked: tuple[PlannedChange, ...] = ()
    not_stored: tuple[PlannedChange, ...] = ()
    unset: tuple[PlannedChange, ...] = ()


@dataclass(frozen=True)
class RewindPlan(Rewound):
    """What a rewind would do.

    folders     folders that are made again, or removed if nothing is left in them
    unrecorded  what commands may have changed that is not recorded, and so is not taken back, in words
    unknown     files that calls wrote and of which there is no record here, as in a fork or in another folder
    """

    folders: tuple[PlannedChange, ...] = ()
    unrecorded: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether all is as it was then, as far as nca can make it so."""
        return not (self.restored or self.deleted or self.left or self.blocked or self.not_stored or self.folders)

    @property
    def touches_files(self) -> bool:
        """Whether there is a file or folder that could change."""
        return bool(self.restored or self.deleted or self.left or self.blocked or self.folders)

    def chosen(self, choice: Choice) -> RewindPlan:
        """The plan with what the person wants. Blocked paths are tried again: their obstacles may go now."""
        merged = {one.path for one in choice.merges}
        taken = [one for one in self.left if one.path in choice.take - merged]
        left = [one for one in self.left if one.path not in choice.take | merged]
        blocked = [one for one in self.blocked if not one.is_folder]
        wanted = [*self.restored, *self.deleted, *taken, *choice.merges, *blocked]
        files = [one for one in wanted if one.path not in choice.keep]
        return replace(
            self,
            restored=tuple(one for one in files if one.after.kind != "absent"),
            deleted=tuple(one for one in files if one.after.kind == "absent"),
            left=(*left, *(replace(one, reason="kept") for one in wanted if one.path in choice.keep)),
            blocked=(),
            folders=(*self.folders, *(one for one in self.blocked if one.is_folder)),
        )

    def diff(self) -> str:
        """The changes to come, as one unified diff. Raises StoreError."""
        return "\n".join(one.diff() for one in sorted((*self.restored, *self.deleted), key=lambda one: one.path))


def plan_rewind(root: Path, journal: Sequence[Change], read: Read, most_bytes: int, unsaved: Unsaved) -> RewindPlan:
    """The plan that takes back all changes in the journal."""
    found: dict[str, list[PlannedChange]] = {}
    by_path = sorted(journal, key=lambda one: (one.path, one.number))
    for path, group in groupby(by_path, key=lambda one: one.path):
        changes = list(group)
        then = changes[0].before
        now, content = look(root, path, most_bytes)
        without, reads = without_session(changes, read)
        if now.is_same(then) or without.is_same(changes[-1].after):
            # All is as it was, or what differs is somebody else's.
            continue
        target = _settable(then, now)
        is_mixed = any(one.is_mixed for one in changes)
        if not now.is_same(changes[-1].after):
            reads = _reading(now, content, reads)
        kind, reason = _verdict(root, now, target, changes)
        if not now.is_same(target):
            is_unnamed = any(one.is_unnamed for one in changes)
            base, recorded = changes[-1].after, tuple(state for one in changes for state in (one.before, one.after))
            planned = PlannedChange(
                *(path, now, target, is_mixed, reads, reason, is_unnamed, base, without), recorded=recorded
            )
            found.setdefault(kind, []).append(planned)
        if kind in ("restored", "folders") and (bits := then.missing(target.mode)):
            found.setdefault("unset", []).append(PlannedChange(path, now, then, is_mixed, reads, bits))
    made = [one for kind in _MADE for one in found.get(kind, ())]
    in_the_way = obstacles(root, made, unsaved)
    for kind in _MADE:
        found[kind] = [one for one in found.get(kind, ()) if one.path not in in_the_way]
    found["blocked"] = [replace(one, reason=in_the_way[one.path]) for one in made if one.path in in_the_way]
    ordered: Any = {kind: tuple(sorted(changes, key=lambda one: one.path)) for kind, changes in found.items()}
    return RewindPlan(**ordered)


def _settable(then: FileState, now: FileState) -> FileState:
    """The state without special bits: nobody who looks at a rewind expects it to make a program setuid.

    A folder that is there keeps those that it has: its group's files depend on them.
    """
    kept = now.mode if now.kind == then.kind == "folder" else 0
    return msgspec.structs.replace(then, mode=then.mode & (RWX | kept))


def _reading(now: FileState, content: bytes, read: Read) -> Read:
    """Reads stored content, and current content, which is not stored yet."""
    return lambda state: content if state.is_same(now) else read(state)


def _verdict(root: Path, now: FileState, target: FileState, changes: Sequence[Change]) -> tuple[str, str]:
    """In which tuple of the plan the path is, and why."""
    if unstored := target.why or now.why:
        return "not_stored", unstored
    if {now.kind, target.kind} <= {"folder", "absent"}:
        return "folders", ""
    if not now.is_same(changes[-1].after):
        return "left", "changed since, and not by this session"
    if not all(one.after.is_same(next_one.before) for one, next_one in pairwise(changes)):
        return "left", "changed in between, and not by this session"
    if mixed := next((one for one in changes if one.is_mixed), None):
        is_job = mixed.actor.startswith(BACKGROUND)
        while_what = mixed.actor.removeprefix(BACKGROUND).removeprefix(": ")
        running = f"changed while this ran on in the background: {while_what}"
        return "left", running if is_job else "somebody else may have changed it at the same time"
    if has_other_names(root, changes[0].path):
        return "left", LINKED
    return ("deleted" if target.kind == "absent" else "restored"), ""


def obstacles(root: Path, changes: Iterable[PlannedChange], unsaved: Unsaved) -> dict[str, str]:
    """The paths that cannot be restored while all others are, each with its obstacle.

    Only folders may be above a file, a folder in which something stays can become nothing else, and what may not be
    written stays as it is, as does what an editor has otherwise.
    """
    made = {one.path: one for one in changes}
    files = {root / path: one.contents() for path, one in made.items() if _may_be_open(one)}
    theirs = unsaved(files) if files else ()
    found = {path: UNSAVED for path in made if root / path in theirs}
    made = {path: one for path, one in made.items() if path not in found}
    may_write: dict[tuple[str, ...], bool] = {}
    # An obstacle for one path may keep another one from being made.
    while blocked := {path: why for path, one in made.items() if (why := _obstacle(root, one, made, may_write))}:
        found |= blocked
        for path in blocked:
            del made[path]
    return found


def _may_be_open(one: PlannedChange) -> bool:
    """Whether an editor may have text under the path: behind a link it has another file's."""
    return not one.is_folder and one.before.kind in ("file", "absent")


def _obstacle(
    root: Path, one: FileChange, made: Mapping[str, FileChange], may_write: dict[tuple[str, ...], bool]
) -> str:
    above = PurePosixPath(one.path).parent
    if one.after.kind != "absent":
        for up in [*above.parents, above] if str(above) != "." else []:
            if str(up) != "." and _kind_then(root, str(up), made) not in ("folder", "absent"):
                return _IN_THE_WAY.format(up)
    if (
        one.before.kind == "folder"
        and one.after.kind in ("file", "link")
        and (inside := _stays_in(root, one.path, made))
    ):
        return _IN_THE_WAY.format(inside)
    if one.before.kind == one.after.kind == "folder":
        return ""
    if one.after.kind in ("file", "link"):
        try:
            one.read(one.after)
        except StoreDamaged as error:
            return error.message[:1].lower() + error.message[1:]
    there = nearest_folder(root, above.parts)
    if there not in may_write:
        may_write[there] = "/".join(there) in made or _may_write(root, there)
    return "" if may_write[there] else "permission denied"


def _kind_then(root: Path, path: str, made: Mapping[str, FileChange]) -> str:
    """The content of a path once all changes are made."""
    return made[path].after.kind if path in made else look(root, path, 0)[0].kind


def _stays_in(root: Path, folder: str, made: Mapping[str, FileChange]) -> str:
    """Something that will still be in a folder when all changes are made; "" if nothing will."""
    waiting = [folder]
    while waiting:
        here = waiting.pop()
        with suppress(OSError), open_folder(str(root), here.split("/")) as opened, opened.entries() as entries:
            for entry in entries:
                inner = f"{here}/{entry.name}"
                if inner not in made or made[inner].after.kind != "absent":
                    return inner
                if made[inner].before.kind == "folder":
                    waiting.append(inner)
    return ""


def _may_write(root: Path, parts: tuple[str, ...]) -> bool:
    try:
        with open_folder(str(root), parts) as folder:
            return os.access(".", os.W_OK | os.X_OK, dir_fd=folder.handle, effective_ids=True)
    except FileNotFoundError:
        return True  # a command has removed the whole workspace: it is made again
    except OSError:
        return False
