"""The files of the workspace as they were last seen, with their contents stored, and how they differ from that now.

A walk takes the signature of everything in it, to find a command's changes. `.gitignore` does not decide what is
covered: a `.env` matters. A fixed list of folders that programs make is left out, by name or by what lies in
them.
"""

from __future__ import annotations

import os
import stat
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import groupby, islice
from pathlib import Path
from typing import NamedTuple

from nca.config.paths import PROJECT_FOLDER, data_dir
from nca.config.schema import RewindSettings
from nca.errors import ConfigError
from nca.file_history.disk import is_temporary, look_in
from nca.safe_files import descriptor, open_folder
from nca.sessions.file_record import ABSENT, Change, FileRecord, FileState, Known

_BATCH_BYTES = 16 << 20
_BATCH_FILES = 2_000
"""One transaction stores so much: large enough to be fast, small enough not to keep other processes waiting."""


_Seen = tuple[str, FileState, bytes]
"""A path, its kind of entry, and its content."""


class Cause(NamedTuple):
    """Whose doing the differences are: a command's.

    is_mixed    whether a path may be someone else's
    is_unnamed  whether the command does not mention a path
    """

    record: FileRecord
    actor: str
    seq: int
    is_mixed: Callable[[str], bool]
    is_unnamed: Callable[[str], bool] = lambda _: False


class LastSeen:
    """Not for use by several threads at once."""

    def __init__(self, root: Path, record: FileRecord, own: Callable[[str], object], stop: threading.Event) -> None:
        """own: whether a path is the store's, which is left out. stop: ends a look. Raises StoreError."""
        self._root, self._record, self._own = root, record, own
        self._known = {path: one for path, one in record.known().items() if not own(path)}
        self._always_blind = {path.relative_to(root).as_posix() for path in _data_dirs() if path.is_relative_to(root)}
        self.cut: dict[str, str] = {}
        """Folders for which there was no room within the bounds, with the bound that each reached first."""
        self._blind = self._always_blind
        self._stop = stop

    def update(self, limits: RewindSettings, cause: Cause | None = None, *, is_frozen: bool = False) -> None:
        """Look at the workspace, store new contents, and record the differences as changes.

        cause      None: the differences are not this session's doing, and only taken note of
        is_frozen  a command runs: look only at places that were looked at before it began
        Raises TooMuch if not even the root can be looked at, Stopped, StoreError, OSError.
        """
        blind = self._blind if is_frozen else self._always_blind
        found = scan(self._root, self._known, blind | self.cut.keys(), limits, self._stop, self._own)
        self.cut |= found.cut
        differing = self._differing(found)
        self._blind = found.blind
        states = self._states(differing, limits.max_file_bytes)
        moved = _folders(self._known) ^ _folders(found.found) if cause and differing else set()
        while batch := _batch(states):
            if self._stop.is_set():
                raise Stopped
            if self._record.stored_bytes() > limits.max_project_bytes:
                raise TooMuch("what is stored of it has reached rewind.max_project_bytes")
            self._take(batch, found, cause, moved)

    def note(self, changes: Sequence[Change]) -> None:
        """Take note of earlier changes, so that they do not count as differences."""
        for one in changes:
            self._remember(one.path, None if one.after.kind == "absent" else Known(one.after, 0))

    def _remember(self, path: str, one: Known | None) -> None:
        if one is None:
            self._known.pop(path, None)
        else:
            self._known[path] = one

    def _differing(self, found: Scan) -> list[str]:
        known = self._known
        changed = [
            path
            for path, signature in found.found.items()
            if not signature or (seen := known.get(path)) is None or seen.signature != signature
        ]
        changed += known.keys() - found.found.keys()
        blind = self._blind | found.blind
        return [path for path in changed if path not in blind and not _is_below(path, blind)]

    def _states(self, paths: Sequence[str], most_bytes: int) -> Iterator[_Seen]:
        """The current content of each path, opening each folder once."""
        for above, group in groupby(sorted(paths, key=_folder_of), key=_folder_of):
            here = list(group)
            try:
                with open_folder(str(self._root), above.split("/") if above else ()) as folder:
                    for path in here:
                        yield (path, *look_in(folder, path.rpartition("/")[2], most_bytes))
            except OSError:
                yield from ((path, ABSENT, b"") for path in here)

    def _take(self, batch: Sequence[_Seen], found: Scan, cause: Cause | None, moved: Set[str]) -> None:
        """moved: folders that came or went. A command that mentions one mentions all that came or went with it."""
        known: dict[str, Known | None] = {}
        contents: dict[str, bytes] = {}
        changes: list[Change] = []
        for path, state, content in batch:
            signature = found.found.get(path)
            known[path] = None if signature is None or state.kind == "absent" else Known(state, signature)
            before = self._known[path].state if path in self._known else ABSENT
            if not before.is_same(state):
                contents[state.sha256] = content
                if cause is not None:
                    names = (path, *(folder for folder in _above(path) if folder in moved))
                    changes.append(
                        Change(
                            *(path, cause.actor, before, state, cause.is_mixed(path)),
                            seq=cause.seq,
                            is_unnamed=all(map(cause.is_unnamed, names)),
                        )
                    )
        (cause.record if cause else self._record).see(known, contents, changes)
        for path, one in known.items():
            self._remember(path, one)


def _folders(paths: Iterable[str]) -> set[str]:
    """All folders that contain one of the paths."""
    folders: set[str] = set()
    for folder in set(map(_folder_of, paths)):
        folders.update((folder, *_above(folder)))
    return folders - {""}


def _above(path: str) -> Iterator[str]:
    """The folders that contain a path, the nearest first."""
    while path := _folder_of(path):
        yield path


def _batch(states: Iterator[_Seen]) -> list[_Seen]:
    """The next states, as many as one transaction takes."""
    batch: list[_Seen] = []
    size = 0
    while len(batch) < _BATCH_FILES and size < _BATCH_BYTES and (one := next(states, None)):
        batch.append(one)
        size += len(one[2])
    return batch


def _folder_of(path: str) -> str:
    return path.rpartition("/")[0]


def _is_below(path: str, folders: set[str]) -> bool:
    return any(path[:at] in folders for at, char in enumerate(path) if char == "/")


SKIPPED_FOLDERS = frozenset(
    f"{PROJECT_FOLDER} .git .hg .svn .jj node_modules .venv venv .tox .nox __pycache__ .mypy_cache .pytest_cache"
    " .ruff_cache .hypothesis .gradle .terraform .next .nuxt .turbo .parcel-cache .cache".split()
)
_MARKERS = frozenset({"CACHEDIR.TAG", "pyvenv.cfg", "conda-meta", "CMakeCache.txt"})
"""Files that mark a cache (https://bford.info/cachedir), a Python or conda environment, and a build folder of CMake."""
_SETTLED_NS = 2_000_000_000
"""A file that changed less than this before it was looked at may change again within the same tick of its clock. The
longest tick is FAT's, 2 seconds."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Stopped(Exception):
    """The session was closed."""


class TooMuch(Exception):
    """The workspace is larger than the settings allow. The message says how, for a person."""


@dataclass(slots=True)
class Scan:
    """The findings.

    found  the signature of each path: a hash of size, times, inode and mode, which no change leaves as they were. 0: it
           changed so shortly before that it may change again and keep them
    blind  the folders that were not looked into
    cut    those of them for which there was no room within the bounds, with the bound that was reached
    total_bytes  of the files that are small enough to be stored
    own    whether a path is left out; a folder is looked into all the same
    """

    found: dict[str, int] = field(default_factory=dict)
    blind: set[str] = field(default_factory=set)
    cut: dict[str, str] = field(default_factory=dict)
    started_ns: int = field(default_factory=time.time_ns)
    total_bytes: int = 0
    own: Callable[[str], object] = lambda _: False


def scan(
    root: Path,
    known: Container[str],
    blind: Collection[str],
    limits: RewindSettings,
    stop: threading.Event,
    own: Callable[[str], object] = lambda _: False,
) -> Scan:
    """Look at everything below the root, the nearest first; folders beyond the bounds are left out.

    Raises TooMuch if the root alone exceeds them, Stopped; OSError if the root itself cannot be read.

    known  the folders in it stay covered, whatever comes to lie in them
    blind  folders not to look into now because an earlier scan did not
    own    see `Scan`
    """
    result = Scan(blind=set(blind), own=own)
    # Other programs' use of the processor is no reason to look at less.
    deadline = time.thread_time() + limits.max_scan_seconds
    waiting = deque([""])
    while waiting:
        folder = waiting.popleft()
        before = len(result.found), result.total_bytes
        try:
            inner = _look_into(root, folder, known, result, limits.max_file_bytes)
        except FileNotFoundError:
            continue  # a command may even have removed the root
        except OSError:
            if not folder:
                raise
            result.blind.add(folder)
            continue
        if stop.is_set():
            raise Stopped
        why = _bound_reached(result, limits, deadline)
        if not why:
            waiting += inner
            continue
        if not folder:
            raise TooMuch(why)
        # A folder is seen whole or not at all.
        _leave_out(result, folder, before)
        is_late = time.thread_time() > deadline
        result.cut |= dict.fromkeys((folder, *waiting) if is_late else (folder,), why)
        if is_late:
            break
    result.blind |= result.cut.keys()
    return result


def _bound_reached(result: Scan, limits: RewindSettings, deadline: float) -> str:
    """The bound that is exceeded, in words; "" if none is."""
    if len(result.found) > limits.max_files:
        return f"it has more than {limits.max_files:,} files (rewind.max_files)"
    if time.thread_time() > deadline:
        return f"looking at it takes longer than {limits.max_scan_seconds:g} s (rewind.max_scan_seconds)"
    if result.total_bytes > limits.max_project_bytes:
        return "its files are larger than rewind.max_project_bytes"
    return ""


def _leave_out(result: Scan, folder: str, before: tuple[int, int]) -> None:
    """Forget the last findings in a folder."""
    count, result.total_bytes = before
    for path in list(islice(reversed(result.found), len(result.found) - count)):
        del result.found[path]
        result.blind.discard(path)


def _look_into(root: Path, folder: str, known: Container[str], result: Scan, most_bytes: int) -> list[str]:
    """Add the entries of a folder; returns the folders in it."""
    prefix = f"{folder}/" if folder else ""
    with descriptor(root / folder, _FOLDER) as handle:
        with os.scandir(handle) as entries:
            found = list(entries)
        if folder and folder not in known and not _MARKERS.isdisjoint(entry.name for entry in found):
            result.blind.add(folder)
            result.found.pop(folder, None)
            return []
        return _add(found, prefix, result, most_bytes)


def _add(entries: list[os.DirEntry[str]], prefix: str, result: Scan, most_bytes: int) -> list[str]:
    folders = []
    for entry in entries:
        path = prefix + entry.name
        try:
            status = entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            continue
        mode = status.st_mode
        if stat.S_ISDIR(mode):
            if entry.name in SKIPPED_FOLDERS:
                result.blind.add(path)
            elif path not in result.blind:
                folders.append(path)
                if not result.own(path):
                    result.found[path] = mode
        elif stat.S_ISREG(mode) or stat.S_ISLNK(mode):
            if (entry.name[0] == "." and is_temporary(entry.name)) or result.own(path):
                continue
            size, changed_ns = status.st_size, status.st_ctime_ns
            is_settled = changed_ns + _SETTLED_NS < result.started_ns
            signature = hash((size, status.st_mtime_ns, changed_ns, status.st_ino, mode)) if is_settled else 0
            result.found[path] = signature
            if size <= most_bytes:
                result.total_bytes += size
    return folders


def refusal(root: Path) -> str:
    """Why a folder is never scanned, whatever the settings say; "" if it may be."""
    home = Path(os.path.realpath(os.path.expanduser("~")))  # noqa: PTH111  Path raises if there is none
    if home.is_relative_to(root):
        return "it is the home directory, or holds it"
    if root in {Path(os.path.realpath(one)) for one in (os.environ.get("TMPDIR", "/tmp"), "/tmp", "/var/tmp")}:  # noqa: S108
        return "it is the folder for temporary files"
    if any(root.is_relative_to(one) for one in _data_dirs()):
        return "it is nca's own data"
    return ""


def _data_dirs() -> list[Path]:
    """The folder of nca's own data, if there is one."""
    with suppress(ConfigError):
        return [Path(os.path.realpath(data_dir(os.environ)))]
    return []
