"""Measure how long an event loop waits while nca fits the requests of many conversations in its process.

    python -m benchmarks.event_loop [CONVERSATIONS]

Each conversation has tool calls and grows for some turns, so that it is compacted several times. A task beside them
sleeps for a millisecond again and again; what it sleeps longer, the loop was late. The same without conversations
shows what the machine itself does. "frozen" is after `gc.freeze`, as in `nca serve`. Prints all in milliseconds.
"""

from __future__ import annotations

import asyncio
import gc
import statistics
import sys
import time
from typing import Any

import nca
from benchmarks.material import coding_session

WINDOW_TOKENS = 16_000
FIRST_MESSAGES, GROWN_MESSAGES = 60, 100
STEP_MESSAGES = 4
TICK_SECONDS = 0.001
START_SECONDS = 0.005
"""Between the starts of two conversations."""
Row = dict[str, Any]


async def late(work: asyncio.Future[Any]) -> list[float]:
    """By how many milliseconds each tick was late until the work was done."""
    found = []
    while not work.done():
        before = time.perf_counter()
        await asyncio.sleep(TICK_SECONDS)
        found.append((time.perf_counter() - before - TICK_SECONDS) * 1_000)
    await work
    return found


async def talk(log: list[Row], starts_after_seconds: float, counted: list[int]) -> None:
    """One conversation, a view made anew for each request, as a server does it."""
    await asyncio.sleep(starts_after_seconds)
    state = None
    for count in range(FIRST_MESSAGES, len(log), STEP_MESSAGES):
        view = nca.ContextView(context_window=WINDOW_TOKENS, state=state)
        fitted = await view.afit(log[:count])
        state = view.state
        counted[0] += 1
        counted[1] += fitted.compacted


async def talks(logs: list[list[Row]], conversations: int, counted: list[int]) -> None:
    starting = (talk(logs[n % len(logs)], n * START_SECONDS, counted) for n in range(conversations))
    await asyncio.gather(*starting)


async def main(conversations: int) -> None:
    logs = [coding_session(GROWN_MESSAGES, seed) for seed in range(20)]
    nca.ContextView(context_window=WINDOW_TOKENS).fit(logs[0])  # what is loaded once, at the start of a server
    for what, work in (("idle", asyncio.sleep(5)), ("fitting", None), ("fitting, frozen", None)):
        if "frozen" in what:
            gc.collect()
            gc.freeze()
        counted = [0, 0]
        started = time.perf_counter()
        ticks = sorted(await late(asyncio.ensure_future(work or talks(logs, conversations, counted))))
        seconds = time.perf_counter() - started
        p99 = ticks[int(len(ticks) * 0.99)]
        print(
            f"{what}: median {statistics.median(ticks):.1f} ms, 99% {p99:.1f} ms, longest {ticks[-1]:.1f} ms;"
            f" {sum(tick > 10 for tick in ticks)} of {len(ticks)} above 10 ms,"
            f" {sum(tick > 20 for tick in ticks)} above 20 ms;"
            f" {counted[0]} requests, {counted[1]} compactions, {seconds:.1f} s"
        )


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 200))
