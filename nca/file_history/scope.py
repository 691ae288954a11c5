"""One session in one workspace: its record, its bounds, and the lock that all sessions in the workspace share."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from nca.config.tool_settings import RewindSettings
from nca.sessions.file_record import FileRecord
from nca.sessions.lock import FileLock
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
    ) -> None:
        """head: the newest message of the log, to which a change belongs."""
        self.root = Path(os.path.realpath(root))
        self.head, self.limits = head, limits
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
        return self.is_on_disk and self.is_recorded and not self._store.is_read_only and self.root.is_dir()

    @property
    def is_on_disk(self) -> bool:
        return self._store.path is not None

    @property
    def hidden(self) -> str:
        """The folder of nca's own data, if it lies in the workspace."""
        folder = self._store.path.parent.resolve() if self._store.path else None
        return folder.relative_to(self.root).as_posix() if folder and folder.is_relative_to(self.root) else ""

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Lets files be changed while no process takes them back. Waits for one that does."""
        lock = self._acquire(is_shared=True)
        while lock is None and self.is_on_disk:
            time.sleep(POLL_SECONDS)
            lock = self._acquire(is_shared=True)
        try:
            yield
        finally:
            if lock is not None:
                lock.release()

    @contextmanager
    def alone(self) -> Iterator[bool]:
        """Whether nobody changes files here now; then nobody begins to before this ends."""
        lock = self._acquire(is_shared=False)
        try:
            yield lock is not None or not self.is_on_disk
        finally:
            if lock is not None:
                lock.release()

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

    def _acquire(self, *, is_shared: bool) -> FileLock | None:
        path = self._store.file_records.lock_path(self.root)
        return FileLock.acquire(path, is_shared=is_shared) if path else None
