"""Work outside of an event loop: one thread of the process runs one piece after the other.

One thread is enough, because Python runs one at a time. With several, the loop would wait for each.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import Any, NamedTuple, TypeVar

Q = TypeVar("Q")
T = TypeVar("T")


class _Done(NamedTuple):
    result: Any


async def beside_loop(work: Callable[[], T]) -> T:
    """What `work` returns or raises."""
    return await asyncio.wrap_future(_thread(os.getpid()).submit(work))


async def drive_beside_loop(
    work: Generator[Q, Any, T], answer: Callable[[Q], Awaitable[Any]], *, at_end: Callable[[], None]
) -> T:
    """`nca.context.driver.drive_async`, with each step of the generator in the thread.

    at_end  called when the generator has ended; if the task is cancelled in a step, after that step
    """
    step: Future[Any] = Future()
    step.set_result(None)
    reply: Any = None
    try:
        while True:
            step = _thread(os.getpid()).submit(_next, work, reply)
            question = await asyncio.wrap_future(step)
            if isinstance(question, _Done):
                result: T = question.result
                return result
            reply = await answer(question)
    finally:
        step.add_done_callback(lambda _: _end(work, at_end))


def _next(work: Generator[Any, Any, Any], reply: Any) -> Any:
    """The next question, or the result. A future cannot hold StopIteration."""
    try:
        return work.send(reply)
    except StopIteration as done:
        return _Done(done.value)


def _end(work: Generator[Any, Any, Any], at_end: Callable[[], None]) -> None:
    try:
        work.close()
    finally:
        at_end()


@cache
def _thread(process: int) -> ThreadPoolExecutor:
    """The thread of this process; a forked process makes its own."""
    return ThreadPoolExecutor(1, f"nca-{process}")
