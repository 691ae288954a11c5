"""Carry out a rewind so that a crash at any point loses nothing.

The journal has every step, with the contents before and after, before the first file is touched. Each step leaves a
file as it was or as it should be, and can be repeated; a rewind that was cut off is finished at the next start.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from nca.atomic_write import PRIVATE
from nca.errors import StoreDamaged
from nca.file_history.changes import Read
from nca.file_history.disk import look_in
from nca.file_history.scope import Scope
from nca.safe_open import Folder, open_folder
from nca.sessions.file_states import RWX, Change, FileState

_NEW_FOLDER = 0o700
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class _NotDone(Exception):
    """A step was not made. The message says why, in a few words."""


def finish_rewind(scope: Scope, begun: Sequence[Change]) -> dict[str, str]:
    """Carry out what was begun, now or before a crash. Returns the paths that were left, with the reasons."""
    if not begun:
        return {}
    reasons = carry_out(scope.root, begun, scope.record.content, scope.limits().max_file_bytes)
    done = [one for one in begun if one.path not in reasons]
    scope.record.finish(done, dropped=[one for one in begun if one.path in reasons])
    return reasons


def carry_out(root: Path, steps: Sequence[Change], read: Read, most_bytes: int) -> dict[str, str]:
    """Make each path what its change has as `after`. Returns the paths that were left, with the reasons.

    What goes is removed first, the innermost first. Then folders are made, the outermost first, then files. Folders get
    their modes last, because no file can be made in one that is read-only.
    """
    left: dict[str, str] = {}
    inward = sorted(steps, key=lambda one: one.path.count("/"))
    folders = [one for one in inward if one.after.kind == "folder"]
    files = [one for one in inward if one.after.kind in ("file", "link")]
    turning = [one for one in inward if one.before.kind not in ("absent", one.after.kind)]
    # A file that becomes a link, or a link a file, is replaced in one step.
    gone = [one for one in turning if {"absent", "folder"} & {one.before.kind, one.after.kind}]
    for action, changes in ((_remove, gone[::-1]), (_make, folders), (_write, files), (_set_mode, folders[::-1])):
        for one in changes:
            if one.path not in left and (reason := _attempt(action, root, one, read, most_bytes)):
                left[one.path] = reason
    for above in {PurePosixPath(one.path).parent for one in steps}:
        with suppress(OSError), open_folder(str(root), above.parts) as folder:
            folder.sync()
    return left


def _attempt(action: _Action, root: Path, one: Change, read: Read, most_bytes: int) -> str:
    """Why the step could not be made, or ""."""
    where = PurePosixPath(one.path)
    try:
        with open_folder(str(root), where.parent.parts, create=action is not _remove) as folder:
            action(_Place(folder, where.name, most_bytes), one, read)
    except (FileNotFoundError, NotADirectoryError) as error:
        return "" if action is _remove else (error.strerror or str(error)).lower()
    except _NotDone as error:
        return str(error)
    except StoreDamaged as error:
        return error.message
    except OSError as error:
        return (error.strerror or str(error)).lower()
    return ""


@dataclass(frozen=True, slots=True)
class _Place:
    """An entry of an open folder."""

    folder: Folder
    name: str
    most_bytes: int

    def state(self) -> FileState:
        return look_in(self.folder, self.name, self.most_bytes)[0]


_Action = Callable[[_Place, Change, Read], None]


def _remove(place: _Place, one: Change, read: Read) -> None:
    now = place.state()
    if now.kind in (one.after.kind, "absent"):
        return
    _check(now, one)
    (os.rmdir if now.kind == "folder" else os.unlink)(place.name, dir_fd=place.folder.handle)


def _make(place: _Place, one: Change, read: Read) -> None:
    if place.state().kind == "absent":
        os.mkdir(place.name, _NEW_FOLDER, dir_fd=place.folder.handle)


def _write(place: _Place, one: Change, read: Read) -> None:
    here, temporary = place.folder.handle, f".nca-rewind-{one.number}.tmp"
    if place.state().is_same(one.after):
        return
    content = read(one.after)
    try:
        if one.after.kind == "link":
            os.symlink(content, temporary, dir_fd=here)
        else:
            _write_file(place, temporary, content, one.after.mode)
        # Right before it is replaced.
        _check(place.state(), one)
        os.replace(temporary, place.name, src_dir_fd=here, dst_dir_fd=here)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=here)
        raise


def _write_file(place: _Place, temporary: str, content: bytes, mode: int) -> None:
    with os.fdopen(place.folder.create(temporary, PRIVATE), "wb") as file:
        file.write(content)
        file.flush()
        # Only an administrator may give files away.
        with suppress(FileNotFoundError, PermissionError):
            replaced = place.folder.stat(place.name)
            os.fchown(file.fileno(), replaced.st_uid, replaced.st_gid)
        os.fchmod(file.fileno(), mode & RWX)
        os.fsync(file.fileno())


def _set_mode(place: _Place, one: Change, read: Read) -> None:
    now = place.state()
    if one.before.kind == "folder" and not now.is_same(one.before):
        return
    handle = os.open(
        place.name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=place.folder.handle
    )
    try:
        # A new folder may have its group's bit from the folder above; one that was there, what the plan kept.
        kept = one.after.mode if one.before.kind == "folder" else now.mode
        os.fchmod(handle, one.after.mode & RWX | kept & now.mode & ~RWX)
    finally:
        os.close(handle)


def _check(now: FileState, one: Change) -> None:
    """Raises _NotDone unless there is what the journal has; nothing may be there where the step has begun."""
    is_begun = now.kind == "absent" and one.before.kind != one.after.kind
    if not now.is_same(one.before) and not is_begun:
        raise _NotDone("changed meanwhile, and not by this session")
