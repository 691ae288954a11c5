"""Restore many paths: all of them, or none.

First every new content is written beside its place, so that room and rights are there before anything changes. Then
each entry is switched in one step. If that fails, or is stopped, the switched entries are switched back. The journal
has all steps, with the contents before and after, so the next start finishes an interrupted one in the same way.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path, PurePosixPath

import msgspec

from nca.errors import StoreDamaged, system_reason
from nca.file_history.changes import Read
from nca.file_history.disk import look, look_in, nearest_folder
from nca.safe_files import PRIVATE, Folder, descriptor, open_folder
from nca.sessions.file_record import RWX, Change, FileState

CHANGED = "changed meanwhile, and not by this session"
MANY = 16
"""From so many files on, one flush of the whole file system takes less time than one for each file."""
_NEW_FOLDER, _OPEN = 0o700, 0o300
_FOLDER = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FULL = frozenset({errno.ENOTEMPTY, errno.EEXIST})


@dataclass(frozen=True, slots=True)
class Watch:
    """Who watches files being restored.

    progress  is told how many of how many steps are made; called in the thread that makes them
    stop      once set, the changes go back, and NotRestored is raised
    """

    progress: Callable[[int, int], None] = lambda done, of: None
    stop: threading.Event = field(default_factory=threading.Event)


class NotRestored(Exception):
    """Nothing was restored.

    path    of the failure; "" if it was stopped
    reason  why, in a few words
    stuck   paths that could not go back, with the reasons
    """

    def __init__(self, path: str, reason: str, stuck: dict[str, str] | None = None) -> None:
        super().__init__(reason)
        self.path, self.reason, self.stuck = path, reason, stuck or {}


def restore(root: Path, steps: Sequence[Change], read: Read, most_bytes: int, watch: Watch) -> dict[str, str]:
    """Make each path what its change has as `after`. Returns the paths that were left, with the reasons.

    A path is left if it is as the change has it neither before nor after, and a folder if something stays in it.
    Raises NotRestored; then every path is as it was, except for those that it names.
    """
    switch = _Switch(root, steps, read, most_bytes, watch)
    try:
        switch.run()
    except NotRestored as failed:
        failed.stuck |= take_back(root, steps, read, most_bytes)
        raise
    return switch.left


def take_back(root: Path, steps: Sequence[Change], read: Read, most_bytes: int) -> dict[str, str]:
    """Restore each path to the `before` of its change, as far as possible. Returns the paths that stay, with reasons.

    Meanwhile changes by others are theirs and stay.
    """
    back = [msgspec.structs.replace(one, before=one.after, after=one.before) for one in steps]
    stuck: dict[str, str] = {}
    while True:
        try:
            _Switch(root, [one for one in back if one.path not in stuck], read, most_bytes, Watch()).run()
        except NotRestored as failed:
            stuck[failed.path] = failed.reason
        else:
            return stuck


class _Switch:
    """One way through the steps; what goes wrong is raised as NotRestored.

    Paths are removed first, the innermost first. Then folders are made, the outermost first, then files. Folders get
    their modes last, because no file can be made in one that is read-only.
    """

    def __init__(self, root: Path, steps: Sequence[Change], read: Read, most_bytes: int, watch: Watch) -> None:
        self._root, self._read, self._most_bytes, self._watch = str(root), read, most_bytes, watch
        self._steps = sorted(steps, key=_depth)
        self._staged: dict[int, tuple[str, ...]] = {}
        """The folder in which the new content of a step waits, by the number of the step."""
        self._devices: dict[int, tuple[str, ...]] = {}
        """A folder of each file system that is written to."""
        self.left: dict[str, str] = {}
        self._done = self._all = 0

    def run(self) -> None:
        self._each(_open_up, [one for one in self._steps if one.before.kind == "folder"], _above)
        due = [one for one in self._steps if self._is_due(one)]
        folders = [one for one in due if one.after.kind == "folder"]
        files = [one for one in due if one.after.kind in ("file", "link")]
        turning = [one for one in due if one.before.kind not in ("absent", one.after.kind)]
        # A file that becomes a link, or a link a file, is replaced in one step.
        gone = [one for one in turning if {"absent", "folder"} & {one.before.kind, one.after.kind}]
        gone.sort(key=_depth, reverse=True)
        self._all = 2 * len(files) + len(gone) + 2 * len(folders)
        is_each = len(files) < MANY or whole_flush() is None
        try:
            self._each(lambda place, one: self._stage(place, one, is_flushed=is_each), files, self._nearest)
            self._flush([] if is_each else files)
            self._each(_remove, gone, _above)
            self._each(_make, folders, _above, creates=True)
            self._each(self._put, files, _above, creates=True)
            self._each(_set_mode, folders[::-1], _above)
        finally:
            self._drop_staged()
        self._flush(due)

    def _is_due(self, one: Change) -> bool:
        """Whether there is still something to do. Somebody else's change is none."""
        now, _ = look(Path(self._root), one.path, self._most_bytes)
        if now.is_same(one.after):
            return False
        # A crash may have come between a folder and the file that takes its place, or before a folder had its mode.
        made = ("absent", "folder") if one.after.kind == "folder" else ("absent",)
        is_begun = one.before.kind != one.after.kind and now.kind in made
        is_open = now.kind == one.before.kind == "folder"
        if not (now.is_same(one.before) or is_begun or is_open):
            self.left[one.path] = CHANGED
            return False
        return True

    def _nearest(self, one: Change) -> tuple[str, ...]:
        return nearest_folder(Path(self._root), _above(one))

    def _each(
        self,
        action: _Action,
        changes: Sequence[Change],
        where: Callable[[Change], tuple[str, ...]],
        *,
        creates: bool = False,
    ) -> None:
        """Do it with each, in the folder that `where` gives."""
        for one in changes:
            if self._watch.stop.is_set():
                raise NotRestored("", "stopped")
            parts = where(one)
            try:
                with open_folder(self._root, parts, create=creates) as folder:
                    action(_Place(folder, PurePosixPath(one.path).name, self._most_bytes, parts), one)
            except _IsLeft as error:
                self.left[one.path] = str(error)
            except StoreDamaged as error:
                raise NotRestored(one.path, error.message) from None
            except OSError as error:
                is_gone = action in (_open_up, _remove) and isinstance(error, FileNotFoundError | NotADirectoryError)
                if not is_gone:
                    raise NotRestored(one.path, system_reason(error)) from None
            self._done += 1
            self._watch.progress(self._done, self._all)

    def _stage(self, place: _Place, one: Change, *, is_flushed: bool) -> None:
        content = self._read(one.after)
        self._staged[one.number] = place.parts
        self._devices.setdefault(os.stat(".", dir_fd=place.folder.handle).st_dev, place.parts)
        if one.after.kind == "link":
            os.symlink(content, _temporary(one.number), dir_fd=place.folder.handle)
        else:
            _write(place, one, content, is_flushed=is_flushed)

    def _put(self, place: _Place, one: Change) -> None:
        """Replace an entry, if it still is as in the journal."""
        now = place.state()
        if not now.is_same(one.before) and not (now.kind == "absent" and one.before.kind != one.after.kind):
            raise NotRestored(one.path, CHANGED)
        with open_folder(self._root, self._staged[one.number]) as source:
            os.replace(_temporary(one.number), place.name, src_dir_fd=source.handle, dst_dir_fd=place.folder.handle)
        del self._staged[one.number]

    def _drop_staged(self) -> None:
        for number, parts in self._staged.items():
            with suppress(OSError), open_folder(self._root, parts) as folder:
                os.unlink(_temporary(number), dir_fd=folder.handle)
        self._staged = {}

    def _flush(self, changes: Sequence[Change]) -> None:
        flush = whole_flush()
        try:
            if len(changes) >= MANY and flush is not None:
                for parts in {(), *self._devices.values()}:
                    with open_folder(self._root, parts) as folder, folder.readable() as handle:
                        flush(handle)
            else:
                for above in {PurePosixPath(one.path).parent for one in changes}:
                    with suppress(OSError), open_folder(self._root, above.parts) as folder:
                        folder.sync()
        except OSError as error:
            raise NotRestored(changes[0].path, system_reason(error)) from None


class _IsLeft(Exception):
    """A step was not made, which is not a fault. The message says why, in a few words."""


@dataclass(frozen=True, slots=True)
class _Place:
    """An entry of an open folder, which is `parts` below the root."""

    folder: Folder
    name: str
    most_bytes: int
    parts: tuple[str, ...]

    def state(self) -> FileState:
        return look_in(self.folder, self.name, self.most_bytes)[0]


_Action = Callable[[_Place, Change], None]


def _open_up(place: _Place, one: Change) -> None:
    """Let files be made and removed in a folder that changes anyway."""
    now = place.state()
    if now.kind == "folder" and now.mode & _OPEN != _OPEN and not now.is_same(one.after):
        _change_mode(place, now.mode | _OPEN)


def _remove(place: _Place, one: Change) -> None:
    now = place.state()
    if now.kind in (one.after.kind, "absent"):
        return
    if not now.is_same(one.before) and not now.kind == one.before.kind == "folder":
        raise NotRestored(one.path, CHANGED)
    if now.kind != "folder":
        os.unlink(place.name, dir_fd=place.folder.handle)
        return
    try:
        os.rmdir(place.name, dir_fd=place.folder.handle)
    except OSError as error:
        if error.errno in _FULL and one.after.kind == "absent":
            raise _IsLeft("something is left in it") from None
        raise


def _make(place: _Place, one: Change) -> None:
    if place.state().kind == "absent":
        os.mkdir(place.name, _NEW_FOLDER, dir_fd=place.folder.handle)


def _write(place: _Place, one: Change, content: bytes, *, is_flushed: bool) -> None:
    with os.fdopen(place.folder.create(_temporary(one.number), PRIVATE), "wb") as file:
        file.write(content)
        file.flush()
        # Only an administrator may give files away.
        with suppress(FileNotFoundError, PermissionError):
            if place.parts == _above(one):
                replaced = place.folder.stat(place.name)
                os.fchown(file.fileno(), replaced.st_uid, replaced.st_gid)
        os.fchmod(file.fileno(), one.after.mode & RWX)
        if is_flushed:
            os.fsync(file.fileno())


def _set_mode(place: _Place, one: Change) -> None:
    now = place.state()
    # A new folder may have its group's bit from the folder above; one that was there, what the plan kept.
    kept = one.after.mode if one.before.kind == "folder" else now.mode
    _change_mode(place, one.after.mode & RWX | kept & now.mode & ~RWX)


def _change_mode(place: _Place, mode: int) -> None:
    # Linux can open an unreadable path as a mere place, and reach it by its descriptor.
    flags = getattr(os, "O_PATH", os.O_RDONLY) | _FOLDER
    with descriptor(place.name, flags, dir_fd=place.folder.handle) as handle:
        if hasattr(os, "O_PATH"):
            Path(f"/proc/self/fd/{handle}").chmod(mode)
        else:
            os.fchmod(handle, mode)


def _above(one: Change) -> tuple[str, ...]:
    return PurePosixPath(one.path).parent.parts


def _depth(one: Change) -> int:
    return one.path.count("/")


def _temporary(number: int) -> str:
    return f".nca-rewind-{number}.tmp"


@cache
def whole_flush() -> Callable[[int], None] | None:
    """`syncfs(2)`: flushes the file system of an open file, and waits for it. None if the system has none."""
    # Imported here: most sessions take nothing back.
    import ctypes

    try:
        library = ctypes.CDLL(None, use_errno=True)
        found = library.syncfs
    except (OSError, AttributeError, TypeError):
        return None

    def flush(handle: int) -> None:
        if found(handle):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

    return flush
