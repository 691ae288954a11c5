"""Going back to before one of the person's messages, and forward again: the chat, the files, or both.

Both go together or not at all: what becomes of the chat is written with the plan for the files, before anything
changes, and the chat goes back once all files have. An interrupted rewind is finished at the next start.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Literal, get_args

from nca.agent.background import Background
from nca.agent.beside import NAME as BESIDE
from nca.agent.user_input import UserInput
from nca.agent.window import Window
from nca.context.record.past import Past
from nca.context.view import is_in, without_ranges
from nca.errors import StoreError, UsageError
from nca.events import Listener, Notice
from nca.file_history.changes import FileChange
from nca.file_history.history import FileHistory, RewindOutcome
from nca.file_history.plan import EVERYTHING_CERTAIN, Choice, PlannedChange, RewindPlan
from nca.file_history.restore import Watch
from nca.humanize import check_choice, check_kind
from nca.messages import Entry, clean_text
from nca.sessions.rewinds import Target
from nca.sessions.view_rows import REDO, REWIND
from nca.tools.shell.jobs import Jobs
from nca.words import Words, text_of

What = Literal["both", "chat", "files"]

FIRST_PROGRESS_SECONDS, NEXT_PROGRESS_SECONDS = 1.0, 5.0
FINISHING = "Finishing a rewind that was cut off."
FINISHED_STEPS = "{:,} of {:,} steps of the rewind are made."
WAITING = "Another nca is taking back files of this folder. Waiting for it."
FINISHED = "A rewind that was cut off has been finished; /redo takes it back."
_PAGE = 50
_BEFORE, _END, _FORWARD, _STAY = "before", "end", "forward", "stay"
"""The effect on the chat: the words that are stored with a rewind of files."""


@dataclass(frozen=True, slots=True)
class Point:
    """A point that a conversation can go back to: before a message of the person, or the end of a branch.

    seq      the person's message; the last message of a branch
    last     the last message of the turn that begins with it
    tokens   of that turn
    is_left  another branch: it was left when the person went back
    rewind   the view that left the branch that ends here, or took the files alone back from here; 0 for a message
    """

    seq: int
    last: int
    at: float
    said: Words
    tokens: int
    is_left: bool
    rewind: int = 0

    @property
    def text(self) -> str:
        return text_of(self.said)


class Rewinds:
    """The log keeps everything: the messages left are another branch, to which one can go back."""

    def __init__(
        self, window: Window, background: Background, user_input: UserInput, files: FileHistory, jobs: Jobs
    ) -> None:
        self._window, self._jobs = window, jobs
        self._stored = window.session.rewinds
        self._background = background
        self._user_input = user_input
        self._files = files

    def points(self) -> Iterator[Point]:
        """The points to go back to, newest first."""
        head = self._window.history.head
        # Of a session that is only read here, the store may have more by now.
        ends = sorted(((last, rewind) for rewind, last in self._stored.ends().items() if last <= head), reverse=True)
        end = head + 1
        while said := self._window.session.log.said_before(end, _PAGE):
            for seq in said:
                while ends and ends[0][0] >= seq:
                    last, rewind = ends.pop(0)
                    yield self._point(last, last, rewind)
                if self._entry(seq).message.name != BESIDE:
                    yield self._point(seq, end - 1)
                end = seq

    @property
    def has_branch(self) -> bool:
        """Whether one was left that is not part of the conversation now."""
        return bool(self._stored.ends())

    def point(self, seq: int) -> Point:
        """A message of the person. Raises UsageError if it is none."""
        message = self._entry(seq).message if 1 <= seq <= self._window.history.head else None
        if message is None or message.role != "user" or message.is_synthetic or message.name == BESIDE:
            raise UsageError(f"Message {seq} is none of yours.", advice="/rewind lists yours.")
        following = self._window.session.log.next_said(seq)
        return self._point(seq, following - 1 if following else self._window.history.head)

    def last_turn(self) -> Point | None:
        """The person's newest message in the conversation, answered or not; None if there is none."""
        return next((point for point in self.points() if not (point.is_left or point.rewind)), None)

    async def changes(self, point: Point) -> tuple[FileChange, ...]:
        """The files that the turn changed. Raises StoreError."""
        return () if point.rewind else await asyncio.to_thread(self._files.changed_in, point.seq, point.last)

    def files_changed_since(self, seq: int) -> tuple[str, ...]:
        """The paths of the files that were changed from message `seq` on; none if the record cannot be read."""
        with suppress(StoreError):
            if self._window.store.has_file_records:
                changes = self._files.changed_in(seq, self._window.history.head)
                return tuple(clean_text(one.path) for one in changes)
        return ()

    async def plan(self, point: Point) -> RewindPlan:
        """The plan for the files of going back. Raises StoreError."""
        if not point.rewind:
            plan = await asyncio.to_thread(self._files.plan, point.seq)
            return replace(plan, unknown=tuple(self._unknown(point.seq)))
        return await self._plan_back(point.rewind)

    def _unknown(self, seq: int) -> Iterable[str]:
        """The files that calls wrote since message `seq` and of which there is no record here. Raises StoreError."""
        history = self._window.history
        past = Past(history, without_ranges([(seq, history.head)], history.view.aside))
        wrote = [one for one in past.calls if one.changed_file and one.has_worked]
        # Later, a call without a record has changed nothing: it wrote what was there.
        began = self._files.began_at() if wrote else 0
        return dict.fromkeys(sorted(one.changed_file for one in wrote if one.result_seq < began))

    async def go_back(
        self,
        point: Point,
        plan: RewindPlan,
        what: What,
        choice: Choice = EVERYTHING_CERTAIN,
        watch: Watch | None = None,
    ) -> RewindOutcome:
        """Go back, with `plan` for the files: all that goes back, or nothing.

        watch  hears of the files, and may stop it
        Raises UsageError, StoreError; then nothing changed, or the message says what could not go back.
        """
        check_choice(what, get_args(What), "what")
        check_kind(point, Point, "point", "one of points(), or what point(…) returns")
        check_kind(plan, RewindPlan, "plan", "what `await plan(point)` returns")
        chat = f"{_END} {point.rewind}" if point.rewind else f"{_BEFORE} {point.seq}"
        chat, plan = _STAY if what == "files" else chat, RewindPlan() if what == "chat" else plan
        return await self._go(chat, plan, choice, watch or Watch())

    async def plan_forward(self) -> RewindPlan | None:
        """The plan of `go_forward` for the files; None without a rewind, or after a new message."""
        rewind = self._stored.newest
        return None if rewind is None else await self._plan_back(rewind)

    async def go_forward(
        self, plan: RewindPlan | None = None, choice: Choice = EVERYTHING_CERTAIN, watch: Watch | None = None
    ) -> RewindOutcome | None:
        """Take the last rewind back, with `plan` for the files; None as for `plan_forward`. Raises as `go_back`."""
        check_kind(plan, RewindPlan | None, "plan", "what `await plan_forward()` returns")
        rewind = self._stored.newest
        if rewind is None:
            return None
        return await self._go(f"{_FORWARD} {rewind}", plan or await self._plan_back(rewind), choice, watch or Watch())

    async def merged(self, one: PlannedChange) -> tuple[PlannedChange, int] | None:
        """See `FileHistory.merged`. Raises StoreError."""
        return await asyncio.to_thread(self._files.merged, one)

    def finish_interrupted(self) -> str:
        """Finish the chat's part of a rewind that was cut off. Returns what the person should know, or ""."""
        if not self._window.store.has_file_records:
            return ""
        try:
            number, chat = self._files.last_rewind()
        except StoreError:
            return ""  # the recorder says what is wrong with the record
        if not chat or number <= self._stored.newest_files:
            return ""
        try:
            self._show(chat, number)
        except StoreError as error:
            return f"A rewind that was cut off cannot be finished: {error.message}."
        return FINISHED

    async def _plan_back(self, rewind: int) -> RewindPlan:
        number, since = self._stored.files_since(rewind)
        with suppress(UsageError):  # it was another session's, and this one is a copy of that
            if number:
                return await asyncio.to_thread(self._files.plan_back, number)
        return await asyncio.to_thread(self._files.plan, since)

    async def _go(self, chat: str, plan: RewindPlan, choice: Choice, watch: Watch) -> RewindOutcome:
        self._window.session.refuse_reader()
        if plan.touches_files and (running := [job for job in self._jobs.all if job.is_running]):
            names = ", ".join(f"job {job.number} ({job.name})" for job in running)
            raise UsageError(
                f"Files cannot go back while something may change them: {names}.",
                advice=f"`/jobs stop {running[0].number}` ends it. Nothing was changed.",
            )
        await self._background.close()
        loop = asyncio.get_running_loop()

        async def show(number: int) -> None:
            self._show(chat, number)

        def show_there(number: int) -> None:
            # The conversation is the loop's; the files are another thread's.
            asyncio.run_coroutine_threadsafe(show(number), loop).result()

        if not plan.touches_files:
            self._show(chat, 0)
            return RewindOutcome(not_stored=plan.not_stored, unset=plan.unset)
        apply = asyncio.to_thread(self._files.apply, plan, choice, chat=chat, then=show_there, watch=watch)
        work = asyncio.ensure_future(apply)
        # Half a rewind is none: who stops it gets all of it back, or comes too late.
        while not work.done():
            try:
                await asyncio.wait({work})
            except asyncio.CancelledError:
                watch.stop.set()
        return work.result()

    def _show(self, chat: str, files: int) -> None:
        """Put the view of a rewind in force: what was stored with that of the files."""
        base, view = self._target(chat)
        trigger = REDO if chat.startswith(_FORWARD) else REWIND
        self._window.go_to(view, trigger, trigger, parent=base, files=files)
        (self._user_input.go_forward if trigger == REDO else self._user_input.begin_anew)()
        word, _, number = chat.partition(" ")
        if word != _STAY:
            self._user_input.go_along_again(self._entry(int(number)).message if word == _BEFORE else None)

    def _target(self, chat: str) -> Target:
        word, _, number = chat.partition(" ")
        if word == _BEFORE:
            return self._stored.before(int(number))
        if word in (_END, _FORWARD):
            return self._stored.end_of(int(number))
        return self._window.session.views.current_id, self._window.history.view

    def _entry(self, seq: int) -> Entry:
        return self._window.history.entries[seq - 1]

    def _point(self, seq: int, last: int, rewind: int = 0) -> Point:
        history, entry = self._window.history, self._entry(seq)
        tokens = 0 if rewind else self._window.meter.scaled(history.run_tokens(seq, last))
        is_left = is_in(seq, history.view.aside)
        return Point(seq, last, entry.at, entry.message.said, tokens, is_left, rewind)


def progress_told(emit: Listener) -> Callable[[int, int], None]:
    """Tells how far a rewind is that was cut off: after a second, and then every five."""
    due = time.monotonic() + FIRST_PROGRESS_SECONDS

    def progress(done: int, of: int) -> None:
        nonlocal due
        if (now := time.monotonic()) >= due:
            due = now + NEXT_PROGRESS_SECONDS
            emit(Notice(FINISHED_STEPS.format(done, of) if of else WAITING))

    return progress
