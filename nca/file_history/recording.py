"""Record what a session changes in its workspace, before it is changed.

A tool that edits announces its change. Before and after a command that may write anything, the workspace is compared
with how it was last seen: somebody else made the changes that are there before, the command those after it. The first
look stores every file, in the background.

The record serves the person and never stops the work: if it fails, a notice says so, and nothing more is recorded.
"""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TypeVar

import msgspec

from nca.errors import StoreError, system_reason
from nca.file_history import Command, Recorder
from nca.file_history.disk import look, missing_folders, state_of
from nca.file_history.last_seen import Cause, LastSeen, Stopped, TooMuch, refusal
from nca.file_history.restore import Watch
from nca.file_history.scope import POLL_SECONDS, Scope, finish_interrupted
from nca.sessions.file_record import ABSENT, BACKGROUND, Change, FileState, Running

_NOT_RECORDED = "Not recorded: changes that commands make {}. They cannot be taken back."
_UNWANTED = "here: rewind.max_files is 0"
"""Said at a rewind only: whoever set it knows."""
_ACTOR_CHARS = 200
_NAMED_FOLDERS = 5
_NAME = re.compile(r"[\w.-]+")

T = TypeVar("T")


@dataclass(slots=True)
class _Begun:
    """A running command, if it is recorded, and the locks held meanwhile."""

    running: Running | None = None
    held: ExitStack = field(default_factory=ExitStack)


class Recording(Recorder):
    """The recorder of one session."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._has_failed = False
        self._recovery, self._looking = threading.Lock(), threading.RLock()
        self._is_recovered = False
        self._stop = threading.Event()
        self._last_seen: LastSeen | None = None
        self._uncovered = refusal(scope.root)
        """Why what commands change is not recorded, or ""."""
        self._said_gap = ""
        self._jobs: list[str] = []
        """The lines of commands that run in the background."""
        self._left_running: list[str] = []
        """The lines of commands with processes that kept running."""
        self._running: list[Running] = []
        self._threads: list[threading.Thread] = []

    def begin(self, watch: Watch | None = None) -> None:
        """Finish what a crash cut off before anybody acts in the workspace. Blocks."""
        self._unless_failed(lambda: self.recover(watch))

    def start(self) -> None:
        """Take the first look at the workspace, in the background."""
        if self._last_seen is None and self._is_wanted:
            thread = threading.Thread(target=lambda: self._unless_failed(self._look_first), daemon=True)
            self._threads.append(thread)
            thread.start()

    @property
    def _is_wanted(self) -> bool:
        return self._scope.limits().max_files > 0

    def close(self) -> None:
        """Stop what runs in the background."""
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def take_notices(self) -> list[str]:
        """Notices for the person, once."""
        taken, self._scope.notices = self._scope.notices, []
        return taken

    @contextmanager
    def edit(self, path: Path, content: bytes, tool: str, unsaved: bytes | None = None) -> Iterator[None]:
        with ExitStack() as held:
            began = self._unless_failed(lambda: self._begin_edit(path, content, tool, unsaved, held))
            try:
                yield
            finally:
                self._unless_failed(lambda: self._end_edit(*began) if began else None)

    @asynccontextmanager
    async def command(self, tool: str, said: str = "") -> AsyncIterator[Command]:
        begun, command = _Begun(), Command(said)

        def begin() -> None:
            self._unless_failed(lambda: self._begin_command(tool, said, begun))

        def end() -> None:
            with begun.held:
                self._unless_failed(lambda: self._end_command(begun, command))

        async with _around(begin, end):
            yield command

    @asynccontextmanager
    async def background(self, line: str) -> AsyncIterator[None]:
        def begin() -> None:
            self._unless_failed(self._look_beside)
            self._jobs.append(line)

        def end() -> None:
            self._unless_failed(self._look_beside)
            self._jobs.remove(line)

        async with _around(begin, end):
            yield

    def recover(self, watch: Watch | None = None) -> None:
        """Finish what a crash or a kill cut off, in any session of this workspace. Raises StoreError.

        Waits for a rewind of another process. Changes by another process's commands are not this one's.
        """
        watch = watch or Watch()
        with self._recovery:
            while not self._is_recovered and self._scope.may_have_unfinished:
                with self._scope.alone() as is_alone:
                    if is_alone:
                        with self._scope.marked():
                            self._finish_changes(watch)
                        self._finish_commands()
                        self._is_recovered = True
                if is_alone or all(one.rewind is None for one in self._scope.record.unfinished()):
                    return
                watch.progress(0, 0)
                time.sleep(POLL_SECONDS)

    def _finish_changes(self, watch: Watch) -> None:
        unfinished = self._scope.record.unfinished()
        self._scope.notices += finish_interrupted(self._scope, unfinished, watch)
        self._end_edit([one for one in unfinished if one.rewind is None])

    def _finish_commands(self) -> None:
        """Differences since the look before a killed command are the command's, or later somebody else's."""
        left = self._scope.record.commands()
        if left and not self._uncovered:
            session_id, running = left[-1]
            record = self._scope.record_of(session_id)
            with self._looking:
                self._update(Cause(record, running.actor, running.seq, lambda _: False, _unnamed_in(running.said)))
        for _, running in left:
            self._scope.record.end_command(running)

    def _begin_edit(
        self, path: Path, content: bytes, tool: str, unsaved: bytes | None, held: ExitStack
    ) -> tuple[list[Change], FileState]:
        """The changes, and what is saved under the path."""
        self.recover()
        held.enter_context(self._scope.shared())
        root, most, seq = self._scope.root, self._scope.limits().max_file_bytes, self._scope.head()
        name = path.relative_to(root).as_posix()
        before, old = saved, _ = look(root, name, most)
        if unsaved is not None:
            before, old = state_of(unsaved, saved.mode, most), unsaved
        after = state_of(content, before.mode, most)
        changes = [Change(name, tool, before, after, seq=seq)]
        changes += [Change(one, tool, ABSENT, FileState("folder"), seq=seq) for one in missing_folders(root, name)]
        return self._scope.record.begin(changes, {before.sha256: old, after.sha256: content}), saved

    def _end_edit(self, begun: Sequence[Change], saved: FileState | None = None) -> None:
        """The modes of new files are known only now; and some changes were not made at all.

        saved  the file before, if its change began with a text that was not saved
        """
        done, dropped = [], []
        for one in begun:
            now, _ = look(self._scope.root, one.path, self._scope.limits().max_file_bytes)
            is_own = (now.kind, now.sha256) == (one.after.kind, one.after.sha256)
            if now.is_same(one.before) or (not is_own and now == saved):
                dropped.append(one)
            else:
                # What was in an editor alone had no mode.
                is_new = one.before.kind == "file" and not one.before.mode
                before = msgspec.structs.replace(one.before, mode=now.mode) if is_new else one.before
                done.append(msgspec.structs.replace(one, before=before, after=now if is_own else one.after))
        if begun:
            self._scope.record.finish(done, dropped)
            self.note(done)

    def note(self, changes: Sequence[Change]) -> None:
        """Take note of this session's own changes, so that they do not count as a command's."""
        if self._last_seen is not None and (self._running or self._left_running or self._jobs):
            with self._looking:
                self._last_seen.note(changes)

    def _begin_command(self, tool: str, said: str, begun: _Begun) -> None:
        if not self._is_wanted:
            self._scope.record.add_gap(self._scope.head(), _UNWANTED)
            return
        self.recover()
        begun.held.enter_context(self._scope.shared())
        with self._looking:
            self._look()
            if not self._uncovered:
                begun.running = self._scope.record.begin_command(self._scope.head(), tool, said)
                self._running.append(begun.running)
        self._note_gap()

    def _end_command(self, begun: _Begun, command: Command) -> None:
        if begun.running is None:
            return
        with self._looking:
            self._look(command.said)
            self._running.remove(begun.running)
            self._scope.record.end_command(begun.running)
            if command.runs_on:
                self._left_running.append(command.said.partition("\n")[0])
        self._note_gap()

    def _note_gap(self) -> None:
        """Report gaps in the record of commands when they change, and keep them for rewinds."""
        gap = self._gap
        if not gap:
            return
        self._scope.record.add_gap(self._scope.head(), gap)
        if gap != self._said_gap:
            self._scope.notices.append(_NOT_RECORDED.format(gap))
            self._said_gap = gap

    @property
    def _gap(self) -> str:
        """The places where changes by commands are not recorded, and why."""
        if self._uncovered:
            return f"here: {self._uncovered}"
        cut = self._last_seen.cut if self._last_seen is not None else {}
        by_bound: dict[str, list[str]] = {}
        for folder, bound in cut.items():
            by_bound.setdefault(bound, []).append(folder)
        return "; ".join(f"in {_named(folders)}: {bound}" for bound, folders in by_bound.items())

    def _look_first(self) -> None:
        self.recover()
        self._look()
        self._scope.collect()

    def _look_beside(self) -> None:
        if self._is_wanted:
            self.recover()
            self._look()
            self._note_gap()

    def _look(self, said: str = "") -> None:
        """Compare the workspace with how it was last seen. `said`: by the command that has ended."""
        with self._looking:
            self._update(self._cause(said))

    def _update(self, cause: Cause | None) -> None:
        if self._uncovered:
            return
        try:
            if self._last_seen is None:
                self._last_seen = LastSeen(self._scope.root, self._scope.record, self._scope.own, self._stop)
            self._last_seen.update(self._scope.limits(), cause, is_frozen=bool(self._running))
        except TooMuch as error:
            self._uncovered = str(error)
        except OSError as error:
            self._uncovered = system_reason(error)
        except Stopped:
            pass

    def _cause(self, said: str) -> Cause | None:
        """Whose doing is what differs now."""
        record, has_jobs = self._scope.record, bool(self._jobs)
        if not self._running:
            lines = [*self._jobs, *self._left_running]
            actor = f"{BACKGROUND}: {'; '.join(dict.fromkeys(lines))}"[:_ACTOR_CHARS]
            return Cause(record, actor, self._scope.head(), lambda _: True) if lines else None
        first = self._running[0]

        @cache
        def others() -> tuple[bool, set[str]]:
            return len(record.commands()) > len(self._running), record.changed_by_others(first)

        def is_mixed(path: str) -> bool:
            return has_jobs or others()[0] or path in others()[1]

        texts = said, *(one.said for one in self._running)
        return Cause(record, first.actor, first.seq, is_mixed, _unnamed_in("\n".join(texts)))

    def _unless_failed(self, step: Callable[[], T]) -> T | None:
        """The result of a step; None if the record fails or has failed before."""
        if self._has_failed:
            return None
        try:
            return step()
        except StoreError as error:
            self._has_failed = True
            self._scope.notices.append(f"Changes of files are not recorded from here on: {error.message}.")
            return None


def is_named(path: str, said: str) -> bool:
    """Whether a text mentions a path: its name is a word of the text."""
    name = path.rpartition("/")[2]
    start = said.find(name)
    while start >= 0:
        around = said[max(0, start - 1) : start] + said[start + len(name) : start + len(name) + 1]
        if not _NAME.search(around):
            return True
        start = said.find(name, start + 1)
    return False


def _unnamed_in(said: str) -> Callable[[str], bool]:
    return lambda path: not is_named(path, said)


def _named(folders: Sequence[str]) -> str:
    more = f" and {len(folders) - _NAMED_FOLDERS} more folders" if len(folders) > _NAMED_FOLDERS else ""
    return ", ".join(f"{one}/" for one in folders[:_NAMED_FOLDERS]) + more


@asynccontextmanager
async def _around(begin: Callable[[], None], end: Callable[[], None]) -> AsyncIterator[None]:
    """Run both in threads. An interrupt stops neither, because no thread can be stopped; what began is ended."""
    beginning = asyncio.ensure_future(asyncio.to_thread(begin))

    async def after() -> None:
        await beginning
        await asyncio.to_thread(end)

    try:
        await asyncio.shield(beginning)
        yield
    finally:
        await asyncio.shield(after())
