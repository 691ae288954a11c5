"""One session in one workspace: its record and bounds, the lock that all sessions share, and work that was cut off."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from itertools import groupby
from pathlib import Path

from nca.config.schema import RewindSettings
from nca.file_history.disk import remove_temporaries
from nca.file_history.plan import Unsaved
from nca.file_history.restore import NotRestored, Watch, restore
from nca.humanize import some_of
from nca.sessions.file_record import Change, FileRecord
from nca.sessions.paths import own_below
from nca.sessions.store import Store

POLL_SECONDS = 0.02


class Scope:
    """root: a real path. May be used by several threads."""

    def __init__(
        self,
        store: Store,
        session_id: str,
        root: Path,
        *,
        head: Callable[[], int],
        limits: Callable[[], RewindSettings],
        unsaved: Unsaved = lambda _: (),
    ) -> None:
        """head: the newest message of the log, to which a change belongs."""
        self.root = Path(os.path.realpath(root))
        self.head, self.limits, self.unsaved = head, limits, unsaved
        self._store, self._session_id = store, session_id
        self._opening = threading.Lock()
        self._record: FileRecord | None = None
        self.notices: list[str] = []
        """For the person; whoever shows them removes them."""

    @property
    def record(self) -> FileRecord:
        """Opened when it is first used. Raises StoreError."""
        with self._opening:
            if self._record is None:
                self._record = self.record_of(self._session_id)
                self.notices += self._store.file_records.take_notes()
            return self._record

    def record_of(self, session_id: str) -> FileRecord:
        """The record of any session in this workspace."""
        return self._store.file_records.of(session_id, self.root)

    @property
    def is_recorded(self) -> bool:
        """Whether there is a record of anything yet."""
        return self._store.has_file_records

    @property
    def may_have_unfinished(self) -> bool:
        """Whether an earlier process may have left something unfinished that this one may finish.

        Without the workspace, as on a drive that is not mounted, nothing can be finished.
        """
        is_lasting = self._store.path is not None and not self._store.is_read_only
        return is_lasting and self.is_recorded and os.path.isdir(self.root)

    @property
    def own(self) -> Callable[[str], object]:
        """Tells by its path whether something in the workspace is the store's own."""
        folder = self._store.path.parent.resolve() if self._store.path else None
        if self._store.path is None or folder is None or not folder.is_relative_to(self.root):
            return lambda _: False
        return own_below(self._store.path.name, folder.relative_to(self.root).as_posix()).fullmatch

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Lets files be changed while no process takes them back. Waits for one that does."""
        while (lock := self._lock(is_shared=True)) is None:
            time.sleep(POLL_SECONDS)
        with lock:
            yield

    @contextmanager
    def alone(self) -> Iterator[bool]:
        """Whether nobody changes files here now; then nobody begins to before this ends."""
        lock = self._lock(is_shared=False)
        with lock or nullcontext():
            yield lock is not None

    @contextmanager
    def marked(self) -> Iterator[None]:
        """While files go back. A process that dies meanwhile leaves the mark: the next start shows no prompt before.

        A mark that cannot be written costs that alone.
        """
        mark = self._store.file_records.rewind_mark(self.root)
        if mark is not None:
            with suppress(OSError):
                mark.touch()
        try:
            yield
        finally:
            if mark is not None:
                with suppress(OSError):
                    mark.unlink()

    def collect(self) -> None:
        """Remove stored contents that nothing refers to any more."""
        self._store.file_records.collect()

    def _lock(self, *, is_shared: bool) -> AbstractContextManager[object] | None:
        return self._store.file_records.lock(self.root, is_shared=is_shared)


NAMED = 10
"""Files that a message names."""
NOT_FINISHED = "A rewind of files was cut off and cannot be finished, so it was taken back"


def finish(scope: Scope, begun: Sequence[Change], left: Mapping[str, str]) -> None:
    """All but what was left is restored."""
    done = [one for one in begun if one.path not in left]
    scope.record.finish(done, dropped=[one for one in begun if one.path in left])


def settle(scope: Scope, rewind: int, begun: Sequence[Change], stuck: Mapping[str, str]) -> None:
    """Nothing is restored: the record keeps what could not go back, and forgets the rest."""
    if not stuck:
        scope.record.drop_rewind(rewind)
        return
    scope.record.leave_chat(rewind)
    finish(scope, begun, {one.path: "" for one in begun if one.path not in stuck})


def explanation(failed: NotRestored) -> tuple[str, str]:
    """The message for the person, and the advice."""
    if not failed.path:
        said = "Stopped: the files are as they were"
    else:
        said = f"{failed.path} could not be restored: {failed.reason}"
    if not failed.stuck:
        return f"{said}.", "Nothing was changed, neither files nor chat."
    rows = [f"{path} ({reason})" for path, reason in sorted(failed.stuck.items())]
    advice = f"These could not go back and have their other state: {some_of(rows, NAMED)}."
    return f"{said}.", f"{advice} All other files and the chat are as they were; /changes shows the rest."


def finish_interrupted(scope: Scope, unfinished: Sequence[Change], watch: Watch) -> list[str]:
    """Finish the rewinds that a crash cut off, or take them back. Returns what a person should know."""
    remove_temporaries(scope.root, [one.path for one in unfinished])
    notices = []
    rewinds = [one for one in unfinished if one.rewind is not None]
    for rewind, group in groupby(rewinds, key=lambda one: one.rewind or 0):
        begun = list(group)
        try:
            left = restore(scope.root, begun, scope.record.content, scope.limits().max_file_bytes, watch)
        except NotRestored as failed:
            settle(scope, rewind, begun, failed.stuck)
            notices.append(" ".join((NOT_FINISHED + ".", *explanation(failed))))
        else:
            finish(scope, begun, left)
    return notices
