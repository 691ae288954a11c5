"""One program, run to its end: in a group of its own, without input, its output taken as it comes, within a time.

POSIX only. The program gets a session of its own: no signal meant for nca reaches it, it has no terminal to write to or
to read a password from, and one signal to its group ends it with what it started. What moved into yet another session
(a daemon) is out of reach; the sandbox ends that too.
"""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from nca import process_groups
from nca.tools.shell.output_capture import OutputCapture

READ_BYTES = 65_536
GRACE_SECONDS = 2.0
"""How long a program that is out of time has to end by itself."""
INTERRUPT_GRACE_SECONDS = 0.1
"""The same after Ctrl-C: the prompt is to be back within 0.2 s (spec 8)."""
DRAIN_SECONDS = 0.5
"""How long output is waited for once the program has ended; who still holds the pipe then works in the background."""
_POLL_SECONDS = 0.01
_NOTE_BYTES = 8_192

OnOutput = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Start:
    """What is run. `argv[0]` is an absolute path, `environment` is all that the program gets."""

    argv: Sequence[str]
    directory: Path
    environment: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Ended:
    """How it ended.

    exit_code     negative: the signal that ended it
    is_timeout    it was out of time and was stopped
    left_running  something of it was still running in the background, and was stopped
    is_detached   something of it goes on in a session of its own
    note          what it wrote to the descriptor for notes
    """

    exit_code: int
    is_timeout: bool
    left_running: bool
    is_detached: bool
    note: bytes


async def run_process(
    start: Callable[[int], Start],
    *,
    timeout_seconds: float,
    captured: OutputCapture,
    on_output: OnOutput | None = None,
) -> Ended:
    """Run it. Output of both kinds goes to `captured`, and decoded to `on_output` as it comes.

    start  is handed the number of a descriptor to which the program may write a note

    Raises OSError or ValueError where it cannot be started. Cancelled, it ends the group before it lets go.
    """
    output, note = _Pipe(_taking(captured, on_output)), _Pipe(None)
    try:
        wanted = start(note.write_end)
        process = await asyncio.create_subprocess_exec(
            *wanted.argv,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output.write_end,
            stderr=output.write_end,
            cwd=wanted.directory,
            env=dict(wanted.environment),
            start_new_session=True,
            pass_fds=(note.write_end,),
        )
        process_groups.began(process.pid)
        output.begin()
        try:
            return await _attend(process, timeout_seconds, output, note)
        finally:
            process_groups.ended(process.pid)
    finally:
        output.close()
        note.close()


async def _attend(process: asyncio.subprocess.Process, timeout_seconds: float, output: _Pipe, note: _Pipe) -> Ended:
    is_timeout = False
    grace = INTERRUPT_GRACE_SECONDS
    try:
        try:
            async with asyncio.timeout(timeout_seconds):
                await process.wait()
        except TimeoutError:
            is_timeout, grace = True, GRACE_SECONDS
        else:
            await output.drained(DRAIN_SECONDS)
        left_running = not is_timeout and process_groups.is_alive(process.pid)
    finally:
        # On every way out, an interrupt's too, nothing of the group is left behind.
        await _end_group(process, grace)
    await output.drained(INTERRUPT_GRACE_SECONDS)
    code = process.returncode
    return Ended(-signal.SIGKILL if code is None else code, is_timeout, left_running, not output.is_ended, note.take())


async def _end_group(process: asyncio.subprocess.Process, grace: float) -> None:
    """Ask the group to end, then end it; the group is not asked twice where it is gone."""
    if not process_groups.is_alive(process.pid):
        return
    try:
        process_groups.send(process.pid, signal.SIGTERM)
        async with asyncio.timeout(grace):
            while process_groups.is_alive(process.pid):  # noqa: ASYNC110  no event tells when the last of a group has gone
                await asyncio.sleep(_POLL_SECONDS)
    except TimeoutError:
        pass
    finally:
        process_groups.send(process.pid, signal.SIGKILL)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(grace):
            await process.wait()


def _taking(captured: OutputCapture, on_output: OnOutput | None) -> Callable[[bytes], None]:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def take(data: bytes) -> None:
        captured.feed(data)
        if on_output is not None and (text := decoder.decode(data)):
            on_output(text)

    return take


class _Pipe:
    """A pipe whose end for writing is the program's. Read by the loop, so that no thread waits for who never closes."""

    def __init__(self, take: Callable[[bytes], None] | None) -> None:
        self._read_end, self.write_end = os.pipe()
        os.set_blocking(self._read_end, False)
        self._take = take
        self._ended = asyncio.Event()
        self._is_read = False

    def begin(self) -> None:
        """The program has its end; ours for writing is closed, or the pipe would never be at its end."""
        self._close_write_end()
        self._is_read = True
        asyncio.get_running_loop().add_reader(self._read_end, self._read)

    async def drained(self, seconds: float) -> None:
        """Wait for the pipe's end, but not longer."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._ended.wait()

    @property
    def is_ended(self) -> bool:
        """Nobody holds the other end any more."""
        return self._ended.is_set()

    def take(self) -> bytes:
        """What stands in it now."""
        try:
            return os.read(self._read_end, _NOTE_BYTES)
        except OSError:
            return b""

    def close(self) -> None:
        self._stop()
        self._close_write_end()
        if self._read_end >= 0:
            os.close(self._read_end)
            self._read_end = -1

    def _read(self) -> None:
        try:
            data = os.read(self._read_end, READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._stop()
            self._ended.set()
        elif self._take is not None:
            self._take(data)

    def _stop(self) -> None:
        if self._is_read:
            self._is_read = False
            asyncio.get_running_loop().remove_reader(self._read_end)

    def _close_write_end(self) -> None:
        if self.write_end >= 0:
            os.close(self.write_end)
            self.write_end = -1
