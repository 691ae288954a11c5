"""A process that has imported everything and forks a child per order, so that a hundred kills take seconds.

It has one thread, reads orders from standard input and writes `Gone` for each; the children write their facts to the
same standard output. The zygote kills its child itself, so no other process can ever be hit.
"""

from __future__ import annotations

import gc
import importlib.readers  # noqa: F401  for the files of a package, which each child would import anew
import os
import resource
import signal
import sys
import threading
import time
import traceback
from collections.abc import Iterable
from pathlib import Path

import msgspec

from nca import vocabulary
from tests.soak.facts import Ended, Gone, tell
from tests.soak.points import Points
from tests.soak.program import Program

_POLL_SECONDS = 0.0005


class Order(msgspec.Struct, frozen=True):
    """Work in `home` through `steps`. Killed after `kill_after` seconds, or at place `kill_at`, where one is given.

    signal          that kills after so many seconds; nothing in the child handles it
    pause_seconds   between two pieces of an answer
    steps           the places are those after the opening; with no steps, those of the opening itself
    """

    home: str
    run: str
    steps: tuple[str, ...]
    pause_seconds: float = 0.0
    kill_after: float | None = None
    kill_at: int | None = None
    signal: int = signal.SIGKILL


def serve(lines: Iterable[bytes]) -> None:
    # Each child would read it anew, which takes most of a child's time.
    vocabulary.load()
    gc.freeze()
    assert threading.active_count() == 1
    decoder = msgspec.json.Decoder(Order)
    for line in lines:
        order = decoder.decode(line)
        child = os.fork()
        if child == 0:
            _work(order)
        tell(_waited(child, order))


def _work(order: Order) -> None:
    """In the child, which never returns."""
    status = 1
    try:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        points = Points(order.kill_at)
        if not order.steps:
            points.start()
        program = Program(Path(order.home), order.run, order.pause_seconds, points.start)
        program.work(order.steps)
        points.here()
        tell(Ended(points.count))
        status = 0
    except BaseException:  # noqa: BLE001  the child must never go on as the zygote
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(status)


def _waited(child: int, order: Order) -> Gone:
    deadline = float("inf") if order.kill_after is None else time.monotonic() + order.kill_after
    is_killed = False
    while True:
        pid, status = os.waitpid(child, os.WNOHANG if not is_killed and deadline < float("inf") else 0)
        if pid:
            return Gone(os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0, os.waitstatus_to_exitcode(status))
        if time.monotonic() >= deadline:
            os.kill(child, order.signal)
            is_killed = True
        else:
            time.sleep(_POLL_SECONDS)


if __name__ == "__main__":
    serve(sys.stdin.buffer)
