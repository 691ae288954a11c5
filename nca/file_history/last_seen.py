"""The files of the workspace as they were last seen, with their contents stored, and how they differ from that now."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from nca.config.tool_settings import RewindSettings
from nca.file_history.disk import look_in
from nca.file_history.scan import Scan, Stopped, TooMuch, scan
from nca.safe_files import open_folder
from nca.sessions.file_record import FileRecord
from nca.sessions.file_states import ABSENT, Change, FileState, Known

_BATCH_BYTES = 16 << 20
_BATCH_FILES = 2_000
"""One transaction stores so much: large enough to be fast, small enough not to keep other processes waiting."""


_Seen = tuple[str, FileState, bytes]
"""A path, what is there, and its content."""


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

    def __init__(self, root: Path, record: FileRecord, hidden: str, stop: threading.Event) -> None:
        """hidden: a folder that is never looked into, or "". stop: ends a look. Raises StoreError."""
        self._root, self._record = root, record
        self._known = record.known()
        self._always_blind = {hidden} if hidden else set[str]()
        self.cut: dict[str, str] = {}
        """Folders for which there was no room within the bounds, with the bound that each reached first."""
        self._blind = self._always_blind
        self._stop = stop

    def update(self, limits: RewindSettings, cause: Cause | None = None, *, is_frozen: bool = False) -> None:
        """Look at the workspace, store what is new, and record the differences as changes.

        cause      None: the differences are not this session's doing, and only taken note of
        is_frozen  a command runs: look only where was looked before it began
        Raises TooMuch where not even the root can be looked at, Stopped, StoreError, OSError.
        """
        blind = self._blind if is_frozen else self._always_blind
        found = scan(self._root, self._known, blind | self.cut.keys(), limits, self._stop)
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
        """Take note of what has changed already, so that it is no difference."""
        for one in changes:
            if one.after.kind == "absent":
                self._known.pop(one.path, None)
            else:
                self._known[one.path] = Known(one.after, 0)

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
        """What is at each path now, opening each folder once."""
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
            if signature is None or state.kind == "absent":
                known[path] = None
            else:
                known[path] = Known(state, signature)
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
            if one is None:
                self._known.pop(path, None)
            else:
                self._known[path] = one


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
