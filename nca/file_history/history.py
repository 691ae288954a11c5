"""The record of the files of one session in one workspace: what it changed, and going back and forth.

The record serves the person and never stops the work: if it fails, a notice says so, and nothing more is recorded.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import msgspec

from nca.config.tool_settings import RewindSettings
from nca.errors import StoreError, UsageError
from nca.events import Listener, Notice
from nca.file_history.changes import FileChange, net_changes
from nca.file_history.disk import look, missing_folders, state_of
from nca.file_history.plan import PlannedChange, RewindPlan, plan_rewind
from nca.file_history.recorder import Recorder
from nca.file_history.restore import carry_out
from nca.sessions.file_record import FileRecord
from nca.sessions.file_states import ABSENT, Change, FileState
from nca.sessions.store import Store

REWIND = "rewind"
"""The actor of changes that a rewind makes."""

T = TypeVar("T")


@dataclass(frozen=True)
class RewindOutcome:
    """What a rewind did; see RewindPlan. `id`: for `plan_back`, which takes it back."""

    id: int
    restored: tuple[PlannedChange, ...]
    deleted: tuple[PlannedChange, ...]
    left: tuple[PlannedChange, ...]
    not_stored: tuple[PlannedChange, ...]


class FileHistory(Recorder):
    """All methods block and may be called in any thread."""

    def __init__(
        self,
        store: Store,
        session_id: str,
        root: Path,
        *,
        head: Callable[[], int],
        settings: Callable[[], RewindSettings],
        emit: Listener,
    ) -> None:
        """head: the newest message of the log, to which a change belongs."""
        self._store, self._session_id = store, session_id
        self._root = Path(os.path.realpath(root))
        self._head, self._settings, self._emit = head, settings, emit
        self._lock = threading.RLock()
        self._has_failed = False

    @contextmanager
    def edit(self, path: Path, content: bytes, tool: str) -> Iterator[None]:
        nothing: list[Change] = []
        begun = self._unless_failed(lambda: self._begin_edit(path, content, tool), nothing)
        try:
            yield
        finally:
            self._unless_failed(lambda: self._settle(begun), None)

    def changed_since(self, seq: int) -> tuple[FileChange, ...]:
        """The net change of each file since message `seq` was about to enter the log; 0: of the whole session.

        Raises StoreError.
        """
        return net_changes(self._journal(seq=seq), self._record.content)

    def changed_in(self, first: int, last: int) -> tuple[FileChange, ...]:
        """The net change of each file by what was done in the messages first … last, without rewinds.

        Raises StoreError.
        """
        journal = (one for one in self._journal(seq=first) if one.seq <= last and one.rewind is None)
        return net_changes(journal, self._record.content)

    def plan(self, seq: int) -> RewindPlan:
        """The way back to the files as they were before message `seq`. Raises StoreError."""
        return self._plan(self._journal(seq=seq))

    def plan_back(self, outcome_id: int) -> RewindPlan:
        """The way back to the files as they were before a rewind. Raises UsageError, StoreError."""
        first = self._record.first_of_rewind(outcome_id)
        if first is None:
            raise UsageError(f"there is no rewind {outcome_id} in this session")
        return self._plan(self._journal(first=first))

    def last_rewind(self) -> tuple[int, str]:
        """The id of this session's last rewind (0: none) and the `chat` that was given with it. Raises StoreError."""
        return self._record.last_rewind()

    def apply(
        self,
        plan: RewindPlan,
        take: Collection[str] = (),
        *,
        chat: str = "",
        before: Callable[[int], None] = lambda _: None,
    ) -> RewindOutcome:
        """Carry out a plan. A file that has changed since it was planned is left.

        take    paths in `plan.left` that get their older state all the same; what is there is stored first
        chat    what becomes of the chat meanwhile; a rewind that was cut off is finished with it
        before  takes the id before the first file is touched; if it raises, nothing is changed
        Raises StoreError; then nothing was changed.
        """
        with self._lock:
            return self._apply(plan, take, chat, before)

    def _apply(
        self, plan: RewindPlan, take: Collection[str], chat: str, before: Callable[[int], None]
    ) -> RewindOutcome:
        most = self._settings().max_file_bytes
        wanted = [*plan.restored, *plan.deleted, *plan.folders, *(one for one in plan.left if one.path in take)]
        left = [one for one in plan.left if one.path not in take]
        steps, contents = [], {}
        for one in wanted:
            now, content = look(self._root, one.path, most)
            if now.is_same(one.before):
                steps.append(Change(one.path, REWIND, now, one.after, seq=self._head()))
                contents[now.sha256] = content
            else:
                left.append(_left(one, "changed meanwhile, and not by this session"))
        outcome_id, begun = self._record.begin_rewind(steps, contents, chat)
        try:
            before(outcome_id)
        except BaseException:
            self._record.drop_rewind(outcome_id)
            raise
        reasons = self._finish_rewind(begun)
        done = {one.path for one in begun} - reasons.keys()
        made = sorted((one for one in wanted if one.path in done and one not in plan.folders), key=_path)
        left += [_left(one, reasons[one.path]) for one in wanted if one.path in reasons and one not in plan.folders]
        return RewindOutcome(
            outcome_id,
            restored=tuple(one for one in made if one.after.kind != "absent"),
            deleted=tuple(one for one in made if one.after.kind == "absent"),
            left=tuple(sorted(left, key=_path)),
            not_stored=plan.not_stored,
        )

    def _finish_rewind(self, begun: Sequence[Change]) -> dict[str, str]:
        """Carry out what was begun, now or before a crash. Returns what was left, with the reasons."""
        reasons = carry_out(self._root, begun, self._record.content, self._settings().max_file_bytes)
        done = [one for one in begun if one.path not in reasons]
        self._record.finish(done, dropped=[one for one in begun if one.path in reasons])
        return reasons

    def _plan(self, journal: Sequence[Change]) -> RewindPlan:
        return plan_rewind(self._root, journal, self._record.content, self._settings().max_file_bytes)

    def _journal(self, *, first: int = 0, seq: int = 0) -> list[Change]:
        return self._record.changes(first=first, seq=seq)

    def _begin_edit(self, path: Path, content: bytes, tool: str) -> list[Change]:
        most = self._settings().max_file_bytes
        name = path.relative_to(self._root).as_posix()
        before, old = look(self._root, name, most)
        after = state_of(content, before.mode, most)
        contents = {before.sha256: old, after.sha256: content}
        changes = [Change(name, tool, before, after, seq=self._head())]
        for folder in missing_folders(self._root, name):
            changes.append(Change(folder, tool, ABSENT, FileState("folder"), seq=self._head()))
        return self._record.begin(changes, contents)

    def _settle(self, begun: Sequence[Change]) -> None:
        """Record what became of edits: the modes of new files are known only now, and some were not made at all."""
        done, dropped = [], []
        for one in begun:
            now, _ = look(self._root, one.path, self._settings().max_file_bytes)
            if now.is_same(one.before):
                dropped.append(one)
            else:
                is_own = (now.kind, now.sha256) == (one.after.kind, one.after.sha256)
                done.append(msgspec.structs.replace(one, after=now) if is_own else one)
        self._record.finish(done, dropped)

    @cached_property
    def _record(self) -> FileRecord:
        """Opened when it is first used. Raises StoreError."""
        with self._lock:
            records = self._store.file_records
            for note in records.notes:
                self._emit(Notice(note))
            return records.of(self._session_id, self._root)

    def _unless_failed(self, step: Callable[[], T], otherwise: T) -> T:
        """The result of a step, or `otherwise` if the record fails or has failed before."""
        if self._has_failed:
            return otherwise
        try:
            return step()
        except StoreError as error:
            self._has_failed = True
            self._emit(Notice(f"Changes of files are not recorded from here on: {error.message}."))
            return otherwise


def _path(one: PlannedChange) -> str:
    return one.path


def _left(one: PlannedChange, reason: str) -> PlannedChange:
    return PlannedChange(one.path, one.before, one.after, one.is_mixed, one.read, reason)
