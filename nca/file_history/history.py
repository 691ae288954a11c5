"""The files of one session in one workspace: what it changed, and going back and forth."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from nca.config.tool_settings import RewindSettings
from nca.errors import UsageError
from nca.file_history.changes import FileChange, net_changes
from nca.file_history.disk import look
from nca.file_history.plan import PlannedChange, RewindPlan, plan_rewind
from nca.file_history.recording import Recording
from nca.file_history.restore import finish_rewind
from nca.file_history.scope import Scope
from nca.sessions.file_states import Change
from nca.sessions.store import Store

REWIND = "rewind"
"""The actor of changes that a rewind makes."""


@dataclass(frozen=True)
class RewindOutcome:
    """What a rewind did; see RewindPlan. `id`: for `plan_back`, which takes it back."""

    id: int
    restored: tuple[PlannedChange, ...]
    deleted: tuple[PlannedChange, ...]
    left: tuple[PlannedChange, ...]
    not_stored: tuple[PlannedChange, ...]
    unset: tuple[PlannedChange, ...] = ()


class FileHistory:
    """All methods but those of `recorder` block, and may be called in any thread.

    recorder  what the tools of the session record with
    """

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
        self._scope = Scope(store, session_id, root, head=head, limits=limits)
        self.recorder = Recording(self._scope)

    def changed_since(self, seq: int) -> tuple[FileChange, ...]:
        """The net change of each file since message `seq` was about to enter the log; 0: of the whole session.

        Raises StoreError.
        """
        return net_changes(self._journal(seq=seq), self._scope.record.content)

    def last_changes(self) -> list[tuple[int, str]]:
        """Each path that changed, with the newest message of the log when it last did; rewinds are none.

        Raises StoreError.
        """
        if not self._scope.is_recorded:
            return []
        last = {one.path: one.seq for one in self._scope.record.changes() if one.rewind is None and one.is_done}
        return [(seq, path) for path, seq in last.items()]

    def changed_in(self, first: int, last: int) -> tuple[FileChange, ...]:
        """The net change of each file by what was done in the messages first … last, without rewinds.

        Raises StoreError.
        """
        journal = (one for one in self._journal(seq=first) if one.seq <= last and one.rewind is None)
        return net_changes(journal, self._scope.record.content)

    def plan(self, seq: int) -> RewindPlan:
        """The way back to the files as they were before message `seq`. Raises StoreError."""
        return self._plan(self._journal(seq=seq))

    def plan_back(self, outcome_id: int) -> RewindPlan:
        """The way back to the files as they were before a rewind. Raises UsageError, StoreError."""
        first = self._scope.record.first_of_rewind(outcome_id)
        if first is None:
            raise UsageError(f"There is no rewind {outcome_id} in this session")
        return self._plan(self._journal(first=first))

    def last_rewind(self) -> tuple[int, str]:
        """The id of this session's last rewind (0: none) and the `chat` that was given with it. Raises StoreError."""
        return self._scope.record.last_rewind()

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
        Raises UsageError, StoreError; then nothing was changed.
        """
        with self._scope.alone() as is_alone:
            if not is_alone:
                raise UsageError(
                    "Files of this folder are being changed just now, by a command or by another nca.",
                    advice="Nothing was changed; try again when that has ended.",
                )
            return self._apply(plan, frozenset(take), chat, before)

    def _apply(
        self, plan: RewindPlan, take: Collection[str], chat: str, before: Callable[[int], None]
    ) -> RewindOutcome:
        most = self._scope.limits().max_file_bytes
        taken = [one for one in plan.left if one.path in take]
        left = [one for one in plan.left if one.path not in take]
        files = [*plan.restored, *plan.deleted, *taken]
        steps, contents = [], {}
        for one in (*files, *plan.folders):
            now, content = look(self._scope.root, one.path, most)
            if now.is_same(one.before):
                steps.append(Change(one.path, REWIND, now, one.after, seq=self._scope.head()))
                if one.path in take:  # all else is stored already
                    contents[now.sha256] = content
            else:
                left.append(_left(one, "changed meanwhile, and not by this session"))
        with suppress(OSError):  # each step then says why it fails
            self._scope.root.mkdir(parents=True, exist_ok=True)
        outcome_id, begun = self._scope.record.begin_rewind(steps, contents, chat)
        try:
            before(outcome_id)
        except BaseException:
            self._scope.record.drop_rewind(outcome_id)
            raise
        reasons = finish_rewind(self._scope, begun)
        self.recorder.note([one for one in begun if one.path not in reasons])
        done = {one.path for one in begun} - reasons.keys()
        made = sorted((one for one in files if one.path in done), key=_path)
        left += [_left(one, reasons[one.path]) for one in files if one.path in reasons]
        return RewindOutcome(
            outcome_id,
            restored=tuple(one for one in made if one.after.kind != "absent"),
            deleted=tuple(one for one in made if one.after.kind == "absent"),
            left=tuple(sorted(left, key=_path)),
            not_stored=plan.not_stored,
            unset=tuple(one for one in plan.unset if self._is_unset(one, left)),
        )

    def _is_unset(self, one: PlannedChange, left: Sequence[PlannedChange]) -> bool:
        """A new folder may have its bit from the folder above."""
        now, _ = look(self._scope.root, one.path, 0)
        return bool(one.after.missing(now.mode)) and one.path not in {other.path for other in left}

    def _plan(self, journal: Sequence[Change]) -> RewindPlan:
        return plan_rewind(self._scope.root, journal, self._scope.record.content, self._scope.limits().max_file_bytes)

    def _journal(self, *, first: int = 0, seq: int = 0) -> list[Change]:
        if not self._scope.is_recorded:
            return []
        self.recorder.recover()
        return self._scope.record.changes(first=first, seq=seq)


def _path(one: PlannedChange) -> str:
    return one.path


def _left(one: PlannedChange, reason: str) -> PlannedChange:
    return PlannedChange(one.path, one.before, one.after, one.is_mixed, one.read, reason)
