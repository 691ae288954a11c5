"""Process groups of the programs that nca has started, so that none outlives it.

`start` starts a program in its own session and registers its group; code that does so by other means calls `began`.
When the program has exited, call `ended`. Whoever started it usually ends it; `end_all` is for an exit that cannot wait
for that. If nca is killed, a small shell that reads the registrations from a pipe sees the pipe close, and kills what
is still registered.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio
    from asyncio.subprocess import Process

_ENDED = ("Z", "X")
_GUARD = """
living=
while read -r change group; do
  left=
  for one in $living; do [ "$one" = "$group" ] || left="$left $one"; done
  [ "$change" = - ] || left="$left $group"
  living=$left
done
for one in $living; do kill -9 "-$one"; done
"""
_GONE_SECONDS = 10.0
"""Only a killed program that waits for a disk which does not answer stays that long."""
_POLL_SECONDS = 0.01
_living: set[int] = set()


def how_ended(code: int) -> str:
    """`ended with exit code 3`, or `was ended by SIGTERM` for the negative code that a signal leaves."""
    return f"ended with exit code {code}" if code >= 0 else f"was ended by {signal_name(-code)}"


def signal_name(number: int) -> str:
    return {int(one): one.name for one in signal.Signals}.get(number, f"signal {number}")


async def start(*argv: str, **options: Any) -> Process:
    """Start a program in its own session, with the options of `asyncio.create_subprocess_exec`, and register its group.

    If this is cancelled, nothing is left. asyncio would kill the program alone, and not what it has started by then.
    Raises OSError or ValueError if the program cannot be started.
    """
    import asyncio

    starting = asyncio.create_task(asyncio.create_subprocess_exec(*argv, start_new_session=True, **options))
    cancelled = await _despite_cancellation(starting)  # this takes milliseconds, so a cancellation can wait
    if cancelled is not None:
        if starting.exception() is None:
            send(starting.result().pid, signal.SIGKILL)
            await gone(starting.result())
        raise cancelled
    process = starting.result()
    began(process.pid)
    return process


async def gone(process: Process) -> None:
    """Wait until a killed program is gone, even if this is cancelled; raises the last cancellation then.

    asyncio warns about a program that seems to run when its loop is closed. On a busy machine even a killed program
    takes its time.
    """
    import asyncio

    cancelled: asyncio.CancelledError | None = None
    end = time.monotonic() + _GONE_SECONDS
    while process.returncode is None and time.monotonic() < end:
        try:
            await asyncio.sleep(_POLL_SECONDS)
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled


async def _despite_cancellation(task: asyncio.Task[Any]) -> asyncio.CancelledError | None:
    """Wait until the task is done; gives the last cancellation that came meanwhile."""
    import asyncio

    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancelled = error
    return cancelled


def began(group: int) -> None:
    """Register a process group that has started."""
    _living.add(group)
    _tell_guard("+", group)


def ended(group: int) -> None:
    """Remove a process group that has exited: the system may reuse its number."""
    _living.discard(group)
    _tell_guard("-", group)


def _tell_guard(change: str, group: int) -> None:
    # Without a guard, as where there is no /bin/sh, a killed nca leaves its programs running.
    with suppress(OSError, NotImplementedError):
        os.write(_guard(), f"{change} {group}\n".encode())


@cache
def _guard() -> int:
    """Start the shell that outlives nca for a moment; gives the pipe that it reads, which nobody else inherits."""
    reader, writer = os.pipe()
    quiet = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_WRONLY, 0) for number in (1, 2)]
    try:
        os.posix_spawn(
            *("/bin/sh", ["sh", "-c", _GUARD], {}), file_actions=[(os.POSIX_SPAWN_DUP2, reader, 0), *quiet], setsid=True
        )
    finally:
        os.close(reader)
    return writer


def end_all(*, children: bool = False) -> None:
    """Kill every registered group; with `children`, also terminate other child processes, such as an editor."""
    if not hasattr(os, "killpg"):
        return
    for group in tuple(_living):
        send(group, signal.SIGKILL)
    for child in _children() if children else ():
        with suppress(ProcessLookupError, PermissionError):
            os.kill(child, signal.SIGTERM)


def _children() -> list[int]:
    """Running child processes of this process; empty except on Linux."""
    found = []
    with suppress(OSError):
        for thread in Path("/proc/self/task").iterdir():
            with suppress(OSError):
                found += [int(child) for child in (thread / "children").read_text("ascii").split()]
    return found


def is_alive(group: int) -> bool:
    """Whether a process of the group runs. Zombies do not count: a container without an init never reaps them."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # it runs as another user now, such as after sudo
        return True
    states = _states(group)
    return not states or any(state not in _ENDED for state in states)


def send(group: int, number: signal.Signals) -> None:
    """Send a signal to the group, if it still exists."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def _states(group: int) -> list[str]:
    """The state letter of each process in the group; [] if the system does not say."""
    states = []
    with suppress(OSError):
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError, ValueError):
                # The program name, in brackets, may contain anything.
                state, _, its_group = (process / "stat").read_bytes().rpartition(b")")[2].split()[:3]
                if int(its_group) == group:
                    states.append(state.decode())
    return states
