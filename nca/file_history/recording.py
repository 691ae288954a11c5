"""Record what a session changes in its workspace, before it is changed.

A tool that edits says what it will write. Before and after a command that may write anything, the workspace is compared
with how it was last seen: what differs before is somebody else's doing, what differs after is the command's. The first
look stores every file; it is taken in the background.

The record serves the person and never stops the work: if it fails, a notice says so, and nothing more is recorded.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TypeVar

import msgspec

from nca.errors import StoreError
from nca.file_history.disk import look, missing_folders, remove_temporaries, state_of
from nca.file_history.last_seen import Cause, LastSeen
from nca.file_history.recorder import Command, Recorder
from nca.file_history.restore import finish_rewind
from nca.file_history.scan import Stopped, TooMuch, refusal
from nca.file_history.scope import Scope
from nca.sessions.file_record import Running
from nca.sessions.file_states import ABSENT, Change, FileState

BACKGROUND = "background command"
"""Who changed what is found between commands once a command has left something running: it, or a person."""
_NOT_RECORDED = "What commands change here is not recorded, so it cannot be rewound: {}."

T = TypeVar("T")


@dataclass(slots=True)
class _Begun:
    """A command that runs, if it is recorded, and what is held as long."""

    running: Running | None = None
    held: ExitStack = field(default_factory=ExitStack)


class Recording(Recorder):
    """The recorder of one session."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._has_failed = False
        self._recovery, self._looking = threading.Lock(), threading.RLock()
        self._is_recovered = self._has_background = False
        self._stop = threading.Event()
        self._last_seen: LastSeen | None = None
        self._uncovered = refusal(scope.root)
        """Why what commands change is not recorded, or ""."""
        self._is_said = False
        self._jobs = 0
        """Commands that run in the background."""
        self._running: list[Running] = []
        self._threads: list[threading.Thread] = []

    def start(self, *, looks: bool) -> None:
        """In the background, finish what a crash cut off; and with `looks`, take the first look at the workspace."""
        if looks and self._last_seen is None and self._covers_commands:
            self._in_background(self._look_first)
        elif not looks and self._scope.may_have_unfinished:
            self._in_background(self.recover)

    @property
    def _covers_commands(self) -> bool:
        """Whether the person wants it, and there is a place for a whole workspace: neither memory nor the workspace."""
        return self._scope.is_on_disk and self._scope.hidden != "." and self._scope.limits().max_files > 0

    def close(self) -> None:
        """Stop what runs in the background."""
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def take_notices(self) -> list[str]:
        """What the person should know, once."""
        taken, self._scope.notices = self._scope.notices, []
        return taken

    @contextmanager
    def edit(self, path: Path, content: bytes, tool: str) -> Iterator[None]:
        nothing: list[Change] = []
        with ExitStack() as held:
            begun = self._unless_failed(lambda: self._begin_edit(path, content, tool, held), nothing)
            try:
                yield
            finally:
                self._unless_failed(lambda: self._end_edit(begun), None)

    @asynccontextmanager
    async def command(self, tool: str) -> AsyncIterator[Command]:
        begun, command = _Begun(), Command()

        def begin() -> None:
            self._unless_failed(lambda: self._begin_command(tool, begun), None)

        def end() -> None:
            with begun.held:
                self._unless_failed(lambda: self._end_command(begun, command), None)

        # An interrupt stops neither, because no thread can be stopped; what began is ended.
        beginning = asyncio.ensure_future(asyncio.to_thread(begin))
        try:
            await asyncio.shield(beginning)
            yield command
        finally:
            await asyncio.shield(_after(beginning, end))

    @asynccontextmanager
    async def background(self) -> AsyncIterator[None]:
        def begin() -> None:
            self._unless_failed(self._look_beside, None)
            self._jobs += 1

        def end() -> None:
            self._unless_failed(self._look_beside, None)
            self._jobs -= 1

        beginning = asyncio.ensure_future(asyncio.to_thread(begin))
        try:
            await asyncio.shield(beginning)
            yield
        finally:
            await asyncio.shield(_after(beginning, end))

    def recover(self) -> None:
        """Finish what a crash or a kill cut off, in any session of this workspace. Raises StoreError."""
        with self._recovery:
            if self._is_recovered or not self._scope.may_have_unfinished:
                return
            with self._scope.alone() as is_alone:
                if is_alone:
                    self._finish_changes()
                    self._finish_commands()
            self._is_recovered = is_alone

    def _finish_changes(self) -> None:
        unfinished = self._scope.record.unfinished()
        for one in unfinished:
            remove_temporaries(self._scope.root, one.path)
        finish_rewind(self._scope, [one for one in unfinished if one.rewind is not None])
        self._end_edit([one for one in unfinished if one.rewind is None])

    def _finish_commands(self) -> None:
        """Nobody knows when a command was killed; what differs may since be someone else's."""
        left = self._scope.record.commands()
        if left and not self._uncovered:
            session_id, running = left[-1]
            record = self._scope.record_of(session_id)
            with self._looking:
                self._update(Cause(record, running.actor, running.seq, lambda _: True))
        for _, running in left:
            self._scope.record.end_command(running)

    def _begin_edit(self, path: Path, content: bytes, tool: str, held: ExitStack) -> list[Change]:
        self.recover()
        held.enter_context(self._scope.shared())
        root, most, seq = self._scope.root, self._scope.limits().max_file_bytes, self._scope.head()
        name = path.relative_to(root).as_posix()
        before, old = look(root, name, most)
        after = state_of(content, before.mode, most)
        changes = [Change(name, tool, before, after, seq=seq)]
        changes += [Change(one, tool, ABSENT, FileState("folder"), seq=seq) for one in missing_folders(root, name)]
        return self._scope.record.begin(changes, {before.sha256: old, after.sha256: content})

    def _end_edit(self, begun: Sequence[Change]) -> None:
        """The modes of new files are known only now; and some changes were not made at all."""
        done, dropped = [], []
        for one in begun:
            now, _ = look(self._scope.root, one.path, self._scope.limits().max_file_bytes)
            is_own = (now.kind, now.sha256) == (one.after.kind, one.after.sha256)
            if now.is_same(one.before):
                dropped.append(one)
            else:
                done.append(msgspec.structs.replace(one, after=now) if is_own else one)
        if begun:
            self._scope.record.finish(done, dropped)
            self.note(done)

    def note(self, changes: Sequence[Change]) -> None:
        """Take note of what this session changed by itself, where a difference would be taken for a command's doing."""
        if self._last_seen is not None and (self._running or self._may_be_background):
            with self._looking:
                self._last_seen.note(changes)

    def _begin_command(self, tool: str, begun: _Begun) -> None:
        if not self._covers_commands:
            return
        self.recover()
        begun.held.enter_context(self._scope.shared())
        with self._looking:
            self._look()
            if not self._uncovered:
                begun.running = self._scope.record.begin_command(self._scope.head(), tool)
                self._running.append(begun.running)
        self._say_uncovered()

    def _end_command(self, begun: _Begun, command: Command) -> None:
        if begun.running is None:
            return
        with self._looking:
            self._look()
            self._running.remove(begun.running)
            self._scope.record.end_command(begun.running)
            self._has_background |= command.runs_on
        self._say_uncovered()

    def _say_uncovered(self) -> None:
        if self._uncovered and not self._is_said:
            self._scope.notices.append(_NOT_RECORDED.format(self._uncovered))
            self._is_said = True

    def _look_first(self) -> None:
        self.recover()
        self._look()
        self._scope.collect()

    def _look_beside(self) -> None:
        if self._covers_commands:
            self.recover()
            self._look()
            self._say_uncovered()

    @property
    def _may_be_background(self) -> bool:
        return self._has_background or self._jobs > 0

    def _look(self) -> None:
        """Compare the workspace with how it was last seen."""
        with self._looking:
            self._update(self._cause())

    def _update(self, cause: Cause | None) -> None:
        if self._uncovered:
            return
        try:
            if self._last_seen is None:
                self._last_seen = LastSeen(self._scope.root, self._scope.record, self._scope.hidden, self._stop)
            self._last_seen.update(self._scope.limits(), cause, is_frozen=bool(self._running))
        except TooMuch as error:
            self._uncovered = str(error)
        except OSError as error:
            self._uncovered = (error.strerror or str(error)).lower()
        except Stopped:
            pass

    def _cause(self) -> Cause | None:
        """Whose doing is what differs now."""
        record, has_jobs = self._scope.record, self._jobs > 0
        if not self._running:
            return Cause(record, BACKGROUND, self._scope.head(), lambda _: True) if self._may_be_background else None
        first = self._running[0]

        @cache
        def others() -> tuple[bool, set[str]]:
            return len(record.commands()) > len(self._running), record.changed_by_others(first)

        return Cause(record, first.actor, first.seq, lambda path: has_jobs or others()[0] or path in others()[1])

    def _in_background(self, step: Callable[[], None]) -> None:
        thread = threading.Thread(target=lambda: self._unless_failed(step, None), daemon=True)
        self._threads.append(thread)
        thread.start()

    def _unless_failed(self, step: Callable[[], T], otherwise: T) -> T:
        """The result of a step, or `otherwise` if the record fails or has failed before."""
        if self._has_failed:
            return otherwise
        try:
            return step()
        except StoreError as error:
            self._has_failed = True
            self._scope.notices.append(f"Changes of files are not recorded from here on: {error.message}.")
            return otherwise


async def _after(first: asyncio.Future[None], step: Callable[[], None]) -> None:
    await first
    await asyncio.to_thread(step)
