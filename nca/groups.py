"""The programs that nca has started, each with what it started itself, so that none outlives nca however that ends.

Whoever starts a program in a session of its own says so for as long as it runs. In the usual way programs are ended by
who started them; `end_all` is for an ending that cannot wait for that.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path

_ENDED = ("Z", "X")
_living: set[int] = set()


def began(group: int) -> None:
    """The process group `group` runs from now on."""
    _living.add(group)


def ended(group: int) -> None:
    """It has ended: the system may give its number to another."""
    _living.discard(group)


def end_all(*, children: bool = False) -> None:
    """End every group that still runs; `children`: and what else nca started itself (an editor), as far as is known."""
    if not hasattr(os, "killpg"):
        return
    for group in tuple(_living):
        send(group, signal.SIGKILL)
    for child in _children() if children else ():
        with suppress(ProcessLookupError, PermissionError):
            os.kill(child, signal.SIGTERM)


def _children() -> list[int]:
    """Processes that this one started and that have not ended; Linux tells them."""
    found = []
    with suppress(OSError):
        for thread in Path("/proc/self/task").iterdir():
            with suppress(OSError):
                found += [int(child) for child in (thread / "children").read_text("ascii").split()]
    return found


def is_alive(group: int) -> bool:
    """Whether a process of the group runs; not one that has ended and waits for who started it to notice.

    In a container without an init nobody ever does.
    """
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # another user's now, such as behind sudo
        return True
    states = _states(group)
    return not states or any(state not in _ENDED for state in states)


def send(group: int, number: signal.Signals) -> None:
    """A signal to all of the group, if there is one."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def _states(group: int) -> list[str]:
    """A letter for each of its processes; [] where the system does not tell."""
    states = []
    with suppress(OSError):
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError, ValueError):
                # The name in brackets may hold anything.
                state, _, its_group = (process / "stat").read_bytes().rpartition(b")")[2].split()[:3]
                if int(its_group) == group:
                    states.append(state.decode())
    return states
