"""Commands that run in the background of a conversation, and end with it."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace

from nca.errors import system_reason
from nca.file_history import Recorder
from nca.humanize import one_line
from nca.tools.shell.output_capture import readable
from nca.tools.shell.process import Ended, OnOutput, run_process
from nca.tools.shell.runner import CommandResult, CommandRunner, ending
from nca.tools.tool import ToolError, ToolOutcome

MOST_RUNNING = 8
MOST_KEPT = 20
"""Jobs with output that can still be read."""
FIRST_LOOK_SECONDS = 0.3
"""How long the start of a job takes, so that one that fails at once says so at once."""
RECENT_BYTES = 16_384
"""The end of its output, for the person."""
_MOST_HELD_BYTES = 8_192
_NAME_CHARS = 200
_NOT_ENDED = Ended(exit_code=0, is_timeout=False, left_running=False, is_detached=False, note=b"")


_HEADLINE = re.compile(r"^\[job (\d{1,9}) (is running|has ended)", re.MULTILINE)


def left_running(texts: Iterable[str]) -> list[int]:
    """The jobs of an earlier opening of the session of which the model was told last that they run."""
    runs = {int(number): said == "is running" for text in texts for number, said in _HEADLINE.findall(text)}
    return [number for number, is_running in runs.items() if is_running]


class Job:
    """One command in the background.

    seq      the newest message when it was started
    is_told  the model knows that it has ended
    """

    def __init__(self, number: int, command: str, runner: CommandRunner, seq: int) -> None:
        self.number, self.command, self.seq = number, command, seq
        self.is_told = False
        self._runner = runner
        self._unread = runner.capture()
        self._pending = self._recent = b""
        self._began, self._took = time.monotonic(), 0.0
        self._ended: Ended | None = None
        self._failure = ""
        self._time_limit = asyncio.timeout(None)
        self._on_output: OnOutput | None = None
        self._task: asyncio.Task[None]

    def start(self, argv: tuple[str, ...] | None, recorded: AsyncExitStack, say: Callable[[Job], None]) -> None:
        self._task = asyncio.create_task(self._run(argv, recorded))
        self._task.add_done_callback(lambda _: say(self))

    async def _run(self, argv: tuple[str, ...] | None, recorded: AsyncExitStack) -> None:
        start = self._runner.starting(self.command, self._runner.current_directory(), argv)
        async with recorded:
            try:
                self._ended = await run_process(start, time_limit=self._time_limit, captured=self, on_output=self._hear)
            except (OSError, ValueError) as error:
                self._failure = f"not started: {system_reason(error)}"
            finally:
                self._took = time.monotonic() - self._began
                self._unread.feed(self._pending)

    def feed(self, data: bytes) -> None:
        """Pass on whole lines, so that no key is cut in two, and no character."""
        self._recent = (self._recent + data)[-RECENT_BYTES:]
        data = self._pending + data
        end = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
        if len(data) - end > _MOST_HELD_BYTES:
            end = len(data)
        self._unread.feed(data[:end])
        self._pending = data[end:]

    def _hear(self, text: str) -> None:
        if self._on_output is not None:
            self._on_output(text)

    @property
    def is_running(self) -> bool:
        return not self._task.done()

    @property
    def seconds(self) -> float:
        """How long it has run."""
        return self._took or time.monotonic() - self._began

    @property
    def state(self) -> str:
        """In a few words: `running`, `done`, `exit code 1`."""
        if self.is_running:
            return "running"
        return ending(self._ended, 0)[1:-1] or "done" if self._ended else self._failure or "stopped"

    @property
    def name(self) -> str:
        """The command in one line, as `!command` is named for the model."""
        return f"$ {one_line(self.command, _NAME_CHARS)}"

    @property
    def recent(self) -> str:
        """The end of its output. Keys are not taken out."""
        return readable(self._recent)

    async def report(self) -> ToolOutcome:
        """The output since the last report, and how it is with the job."""
        unread, self._unread = self._unread, self._runner.capture()
        is_running = self.is_running
        self.is_told = not is_running
        headline = self.headline() if is_running else f"{self.headline()[:-1]}; it ran: {self.name[2:]}]"
        summary = f"job {self.number}: {self.state}"
        ended = _NOT_ENDED if is_running or self._ended is None else self._ended
        result = CommandResult(await self._runner.finished(unread), ended, 0, command=self.command)
        text = "\n".join([result.output.text.rstrip("\n") or "[no new output]", headline, *result.notes()])
        is_error = not is_running and (self._ended is None or result.is_error)
        return replace(result.outcome(), text=text, is_error=is_error, summary=summary)

    def headline(self) -> str:
        """How it is with the job, in one line for the model."""
        if self.is_running:
            return f"[job {self.number} is running, for {self.seconds:.0f} s now]"
        return f"[job {self.number} has ended after {self.seconds:.0f} s: {self.state}]"

    async def wait(self, seconds: float, on_output: OnOutput | None = None) -> None:
        """Wait for its end, but not longer. If this is cancelled, the job runs on.

        on_output  called with the end of its earlier output, and with its new output
        """
        if seconds <= 0 or not self.is_running:
            return
        self._on_output = on_output
        self._hear(self._recent.decode("utf-8", "replace"))
        try:
            await asyncio.wait({self._task}, timeout=seconds)
        finally:
            self._on_output = None

    async def stop(self) -> None:
        """Ask it to end, then end it."""
        try:
            self._time_limit.reschedule(0)
        except (RuntimeError, AssertionError):  # it is just being started, or has ended; Python 3.11 asserts that
            self._task.cancel()
        await asyncio.wait({self._task})

    async def close(self) -> None:
        """End it now, and forget its output."""
        self._task.cancel()
        await asyncio.wait({self._task})
        self.drop()

    def drop(self) -> None:
        self._unread.drop()


@dataclass(eq=False)
class Jobs:
    """The jobs of one conversation, numbered from 1.

    say      called when one has ended before the conversation
    head     the newest message
    is_left  whether a message is in a branch that the person left: the model hears nothing of a job from there
    """

    say: Callable[[Job], None] = lambda _: None
    head: Callable[[], int] = lambda: 0
    is_left: Callable[[int], bool] = lambda _: False
    _jobs: dict[int, Job] = field(default_factory=dict, init=False)
    _count = 0
    _is_closed = False

    @property
    def all(self) -> tuple[Job, ...]:
        return tuple(self._jobs.values())

    @property
    def known(self) -> tuple[Job, ...]:
        """Those that the model started in the conversation as it is now."""
        return tuple(job for job in self.all if not self.is_left(job.seq))

    async def start(
        self, runner: CommandRunner, command: str, *, argv: tuple[str, ...] | None, recorder: Recorder
    ) -> Job:
        """Start a command, with `argv` as for `CommandRunner.run`. Raises ToolError."""
        await asyncio.to_thread(runner.check, command)
        running = [job for job in self.all if job.is_running]
        if len(running) >= MOST_RUNNING:
            raise ToolError(f"{MOST_RUNNING} jobs are running, which is the most; stop one")
        recorded = AsyncExitStack()
        await recorded.enter_async_context(recorder.background(command))
        self._count += 1
        job = self._jobs[self._count] = Job(self._count, command, runner, self.head())
        job.start(argv, recorded, self._has_ended)
        for old in [job for job in self.all if not job.is_running][: max(0, len(self._jobs) - MOST_KEPT)]:
            self._jobs.pop(old.number).drop()
        await job.wait(FIRST_LOOK_SECONDS)
        return job

    def _has_ended(self, job: Job) -> None:
        if not self._is_closed:
            self.say(job)

    def find(self, number: int) -> Job:
        """A job that the model knows. Raises ToolError if there is no such job."""
        jobs = {job.number: job for job in self.known}
        if number not in jobs:
            known = ", ".join(f"{job.number} ({job.state})" for job in jobs.values())
            raise ToolError(f"there is no job {number}; " + (f"the jobs are: {known}" if known else "none was started"))
        return jobs[number]

    def take_ended(self) -> list[Job]:
        """Those that have ended without the model knowing it, once."""
        ended = [job for job in self.known if not job.is_running and not job.is_told]
        for job in ended:
            job.is_told = True
        return ended

    async def close(self) -> None:
        """End all of them."""
        self._is_closed = True
        await asyncio.gather(*(job.close() for job in self.all))
