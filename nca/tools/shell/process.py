"""Run a program to its end, in its own process group and within a time limit.

The program gets a session of its own: it receives no signal meant for nca, has no terminal to write to or to read a
password from, and one signal to its group ends it and all that it started. A process that moved to yet another session
(a daemon) is out of reach, except in the sandbox, which ends it.
"""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import logging
import os
import signal
from asyncio.subprocess import DEVNULL, Process
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol

from nca import process_groups

GRACE_SECONDS = 2.0
"""How long a program has to end by itself after a timeout."""
INTERRUPT_GRACE_SECONDS = 0.1
"""The same after Ctrl-C, where the prompt should be back within 0.2 s."""
DRAIN_SECONDS = 0.5
"""How long to wait for output after the program has ended. A process that still holds the pipe is in the background."""
_POLL_SECONDS = 0.01
_NOTE_BYTES = 8_192

# Ending a program asks whether it has ended, and may so take its exit code away from asyncio, which then remarks on it.
logging.getLogger("asyncio").addFilter(lambda record: not str(record.msg).startswith("Unknown child process pid"))

OnOutput = Callable[[str], None]


class Sink(Protocol):
    """Takes a program's output as it comes, as `OutputCapture` does."""

    def feed(self, data: bytes) -> None: ...


@dataclass(frozen=True, slots=True)
class Start:
    """A program to run. `argv[0]` is an absolute path; `environment` is the whole environment of the program."""

    argv: Sequence[str]
    directory: Path
    environment: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Ended:
    """How a program ended.

    exit_code     negative: the signal that ended it
    is_timeout    it ran out of time, or its time was ended, and it was stopped
    left_running  some of its processes still ran in the background, and were stopped
    is_detached   some of its processes run on in another session
    note          what it wrote to the note descriptor
    """

    exit_code: int
    is_timeout: bool
    left_running: bool
    is_detached: bool
    note: bytes


class _Output(asyncio.Protocol):
    """Receives a program's output from the event loop, so that no thread waits for a pipe that nobody closes."""

    def __init__(self, captured: Sink, on_output: OnOutput | None) -> None:
        self._captured = captured
        self._on_output = on_output
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.ended = asyncio.Event()
        """Nobody holds the other end of the pipe any more."""

    def data_received(self, data: bytes) -> None:
        self._captured.feed(data)
        if self._on_output is not None and (text := self._decoder.decode(data)):
            self._on_output(text)

    def connection_lost(self, error: Exception | None) -> None:
        self.ended.set()


async def run_process(
    start: Callable[[int], Start],
    *,
    time_limit: asyncio.Timeout,
    captured: Sink,
    on_output: OnOutput | None = None,
    errors: Sink | None = None,
    sent: BinaryIO | None = None,
) -> Ended:
    """Run the program. Its output and errors go to `captured`, and decoded to `on_output`, as they come.

    start       is called with the number of a descriptor to which the program may write a note
    time_limit  when to stop the program; it may be rescheduled while the program runs
    errors      takes the errors instead of `captured`
    sent        a file that the program reads as its input; None: it has no input

    Raises OSError or ValueError if it cannot be started. If cancelled, it ends the group first.
    """
    with contextlib.ExitStack() as stack:
        note_reader, note_writer = _pipe(stack)
        os.set_blocking(note_reader.fileno(), False)
        # Connected before the program starts: from then on nothing may wait without attending to it.
        output, writer = await _connected(stack, captured, on_output)
        outputs, error_writer = [output], writer
        if errors is not None:
            error_output, error_writer = await _connected(stack, errors, None)
            outputs.append(error_output)
        wanted = start(note_writer.fileno())
        process = await process_groups.start(
            *wanted.argv,
            stdin=DEVNULL if sent is None else sent,
            stdout=writer,
            stderr=error_writer,
            cwd=wanted.directory,
            env=dict(wanted.environment),
            pass_fds=(note_writer.fileno(),),
        )
        stack.callback(process_groups.ended, process.pid)
        # Only the program holds these ends now; otherwise the output would never end.
        writer.close()
        error_writer.close()
        return await _attend(process, time_limit, outputs, note_reader)


async def _connected(
    stack: contextlib.ExitStack, captured: Sink, on_output: OnOutput | None
) -> tuple[_Output, BinaryIO]:
    """A pipe that is read from now on, and its other end for a program."""
    reader, writer = _pipe(stack)
    connect = asyncio.get_running_loop().connect_read_pipe
    transport, output = await connect(lambda: _Output(captured, on_output), reader)
    stack.callback(transport.close)
    return output, writer


async def _attend(process: Process, time_limit: asyncio.Timeout, outputs: Sequence[_Output], note: BinaryIO) -> Ended:
    is_timeout = False
    grace = INTERRUPT_GRACE_SECONDS
    try:
        try:
            async with time_limit:
                await process.wait()
        except TimeoutError:
            is_timeout, grace = True, GRACE_SECONDS
        else:
            await _drained(outputs, DRAIN_SECONDS)
        left_running = not is_timeout and process_groups.is_alive(process.pid)
    finally:
        # However this ends, even by an interrupt, nothing of the group is left behind.
        try:
            await _end_group(process, grace)
        finally:
            await process_groups.gone(process)
    await _drained(outputs, INTERRUPT_GRACE_SECONDS)
    code = -signal.SIGKILL if process.returncode is None else process.returncode
    is_detached = not all(output.ended.is_set() for output in outputs)
    return Ended(code, is_timeout, left_running, is_detached, note.read(_NOTE_BYTES) or b"")


async def _drained(outputs: Sequence[_Output], seconds: float) -> None:
    """Wait for the end of all output, but not longer than `seconds`."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            for output in outputs:
                await output.ended.wait()


async def _end_group(process: Process, grace: float) -> None:
    """Ask the group to end, then kill it."""
    if not process_groups.is_alive(process.pid):
        return
    try:
        process_groups.send(process.pid, signal.SIGTERM)
        await has_ended(process, grace)
    finally:
        process_groups.send(process.pid, signal.SIGKILL)
    await has_ended(process, grace)


async def has_ended(process: Process, seconds: float) -> bool:
    """Wait for the process and its whole group; whether they have ended within `seconds`."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while process.returncode is None or process_groups.is_alive(process.pid):  # noqa: ASYNC110  a group has no event
                await asyncio.sleep(_POLL_SECONDS)
            return True
    return False


def _pipe(stack: contextlib.ExitStack) -> tuple[BinaryIO, BinaryIO]:
    reader, writer = os.pipe()
    return stack.enter_context(os.fdopen(reader, "rb", 0)), stack.enter_context(os.fdopen(writer, "wb", 0))
