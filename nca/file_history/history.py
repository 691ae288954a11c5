"""The files of one session in one workspace: its changes, and going back and forth."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf

from nca.errors import UsageError
from nca.file_history.changes import FileChange, last_made, merged, net_changes
from nca.file_history.disk import look, state_of
from nca.file_history.plan import EVERYTHING_CERTAIN, Choice, PlannedChange, RewindPlan, Rewound, obstacles, plan_rewind
from nca.file_history.recording import Recording
from nca.file_history.restore import CHANGED, NotRestored, Watch, restore, take_back
from nca.file_history.scope import Scope, explanation, finish, settle
from nca.sessions.file_record import Change

REWIND = "rewind"
"""The actor of changes that a rewind makes."""


@dataclass(frozen=True)
class RewindOutcome(Rewound):
    """The result of a rewind. `id`: for `plan_back`, which takes it back; 0 if no file had to change."""

    id: int = 0


class FileHistory(Scope):
    """All methods but those of `recorder` block, and may be called in any thread."""

    @cached_property
    def recorder(self) -> Recording:
        """The recorder for the tools of the session."""
        return Recording(self)

    def changed_since(self, seq: int) -> tuple[FileChange, ...]:
        """The net change of each file since message `seq` was about to enter the log; 0: of the whole session.

        Raises StoreError.
        """
        return net_changes(self._journal(seq=seq), self.record.content)

    def last_changes(self) -> list[tuple[int, str, str]]:
        """Each file that differs from its first state: the newest message after which it became so, the path, and
        whether it is changed or deleted.

        Raises StoreError.
        """
        done = (one for one in self.record.changes() if one.is_done)
        return last_made(done, self.record.content) if self.is_recorded else []

    def recorded_paths(self) -> set[str]:
        """All paths that have changed, if for a while. Raises StoreError."""
        return {one.path for one in self.record.changes()} if self.is_recorded else set()

    def began_at(self) -> float:
        """The message with the first recorded change; infinite without one. Before it, nothing can be taken back.

        Raises StoreError.
        """
        return min((one.seq for one in self.record.changes()), default=inf) if self.is_recorded else inf

    def changed_in(self, first: int, last: int) -> tuple[FileChange, ...]:
        """The net change of each file by the messages first … last, without rewinds.

        Raises StoreError.
        """
        journal = (one for one in self._journal(seq=first) if one.seq <= last and one.rewind is None)
        return net_changes(journal, self.record.content)

    def taken_back_since(self, seq: int) -> tuple[FileChange, ...]:
        """The files that rewinds made others than they were when `seq` was the newest message, as they are now.

        What was done in a branch that was left is only compared, not named. Raises StoreError.
        """
        journal = self.record.changes(seq=seq) if self.is_recorded else []
        # The rest of what belongs to that message is the conversation's own: a call that was cut off, a job.
        done = [one for one in journal if one.is_done and (one.seq > seq or one.rewind is not None)]
        before = {one.path: one.before for one in reversed(done)}
        by_rewind = sorted(path for path, one in {one.path: one for one in done}.items() if one.rewind is not None)
        now = {path: look(self.root, path, self.limits().max_file_bytes)[0] for path in by_rewind}
        return tuple(
            FileChange(path, before[path], state, is_mixed=False, read=self.record.content)
            for path, state in now.items()
            if not state.is_same(before[path]) and {state.kind, before[path].kind} - {"folder", "absent"}
        )

    def plan(self, seq: int) -> RewindPlan:
        """The way back to the files as they were before message `seq`. Raises StoreError."""
        plan = self._plan(self._journal(seq=seq))
        gaps = self.record.gaps(seq) if self.is_recorded else ()
        return replace(plan, unrecorded=tuple(gaps))

    def plan_back(self, outcome_id: int) -> RewindPlan:
        """The way back to the files as they were before a rewind. Raises UsageError, StoreError."""
        first = self.record.first_of_rewind(outcome_id)
        if first is None:
            raise UsageError(f"There is no rewind {outcome_id} in this session")
        return self._plan(self._journal(first=first))

    def last_rewind(self) -> tuple[int, str]:
        """The id of this session's last rewind (0: none) and the `chat` that was given with it. Raises StoreError."""
        return self.record.last_rewind()

    def apply(
        self,
        plan: RewindPlan,
        choice: Choice = EVERYTHING_CERTAIN,
        *,
        chat: str = "",
        then: Callable[[int], None] = lambda _: None,
        watch: Watch | None = None,
    ) -> RewindOutcome:
        """Carry out a plan, whole or not at all. A file that has changed since it was planned is left.

        chat   what becomes of the chat meanwhile; a rewind that was cut off is finished with it
        then   takes the id when the files are restored; if it raises, they go back
        watch  hears of the progress, and may stop it; then all goes back
        Raises UsageError, StoreError; then nothing was changed, or the message names what could not go back.
        """
        with self.alone() as is_alone:
            if not is_alone:
                raise UsageError(
                    "Files of this folder are being changed just now, by a command or by another nca.",
                    advice="Nothing was changed; try again when that has ended.",
                )
            with self.marked():
                return self._apply(plan.chosen(choice), chat, then, watch or Watch())

    def merged(self, one: PlannedChange) -> tuple[PlannedChange, int] | None:
        """For a path in `plan.left`: somebody's later version without the session's changes, and the conflicts.

        Merged as git does. None if that cannot be told: no text, no git, or too large. Raises StoreError.
        """
        most_bytes = self.limits().max_file_bytes
        found = merged((one.before, one.base, one.without), one.read)
        if found is None or len(text := found[0]) > most_bytes:
            return None
        after = state_of(text, one.before.mode, most_bytes)
        return replace(
            one,
            after=after,
            reason="",
            is_merged=True,
            read=lambda state: text if state.is_same(after) else one.read(state),
        ), found[1]

    def _apply(self, plan: RewindPlan, chat: str, then: Callable[[int], None], watch: Watch) -> RewindOutcome:
        root = self.root
        unchanged, contents = self._unchanged([*plan.restored, *plan.deleted, *plan.folders])
        in_the_way = obstacles(root, unchanged.values(), self.unsaved)
        steps = [
            Change(one.path, REWIND, one.before, one.after, seq=self.head())
            for one in unchanged.values()
            if one.path not in in_the_way
        ]
        with suppress(OSError):  # each step then says why it fails
            root.mkdir(parents=True, exist_ok=True)
        outcome_id, begun = self.record.begin_rewind(steps, contents, chat)
        reasons = self._carry_out(outcome_id, begun, then, watch)
        self.recorder.note([one for one in begun if one.path not in reasons])
        done = {one.path for one in begun} - reasons.keys()
        files = (*plan.restored, *plan.deleted)
        stays = [one for one in files if one.path not in done and one.path not in in_the_way]
        left = [*plan.left, *(replace(one, reason=reasons.get(one.path, CHANGED)) for one in stays)]
        blocked = [replace(one, reason=in_the_way[one.path]) for one in unchanged.values() if one.path in in_the_way]
        return RewindOutcome(
            id=outcome_id,
            restored=_sorted(one for one in plan.restored if one.path in done),
            deleted=_sorted(one for one in plan.deleted if one.path in done),
            left=_sorted(left),
            blocked=_sorted(blocked),
            not_stored=plan.not_stored,
            unset=tuple(one for one in plan.unset if self._is_unset(one, left)),
        )

    def _unchanged(self, planned: Sequence[PlannedChange]) -> tuple[dict[str, PlannedChange], dict[str, bytes]]:
        """Those that are still as they were planned, by path, and the contents that are not stored yet."""
        found, contents = {}, {}
        for one in planned:
            now, content = look(self.root, one.path, self.limits().max_file_bytes)
            if not now.is_same(one.before):
                continue
            found[one.path] = one
            if not now.is_same(one.base):
                contents[now.sha256] = content
            if one.is_merged:
                contents[one.after.sha256] = one.read(one.after)
        return found, contents

    def _carry_out(
        self, rewind: int, begun: Sequence[Change], then: Callable[[int], None], watch: Watch
    ) -> dict[str, str]:
        """Restore the files, then do what goes with it. Returns the paths that were left, with the reasons."""
        root, read, most = self.root, self.record.content, self.limits().max_file_bytes
        try:
            reasons = restore(root, begun, read, most, watch)
        except NotRestored as failed:
            settle(self, rewind, begun, failed.stuck)
            message, advice = explanation(failed)
            raise UsageError(message, advice=advice) from None
        try:
            then(rewind)
        except BaseException:
            settle(self, rewind, begun, take_back(root, begun, read, most))
            raise
        finish(self, begun, reasons)
        return reasons

    def _is_unset(self, one: PlannedChange, left: Sequence[PlannedChange]) -> bool:
        """A new folder may have its bit from the folder above."""
        now, _ = look(self.root, one.path, 0)
        return bool(one.after.missing(now.mode)) and one.path not in {other.path for other in left}

    def _plan(self, journal: Sequence[Change]) -> RewindPlan:
        return plan_rewind(self.root, journal, self.record.content, self.limits().max_file_bytes, self.unsaved)

    def _journal(self, *, first: int = 0, seq: int = 0) -> list[Change]:
        if not self.is_recorded:
            return []
        self.recorder.recover()
        return self.record.changes(first=first, seq=seq)


def _sorted(files: Iterable[PlannedChange]) -> tuple[PlannedChange, ...]:
    return tuple(sorted(files, key=lambda one: one.path))
