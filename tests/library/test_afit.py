"""`ContextView` in an event loop: the same requests as `fit`, one at a time, and a loop that goes on meanwhile."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import threading
from typing import Any

import pytest

import nca
from tests.context.samples import PROSE
from tests.library.test_context_view import WINDOW, Rows, talk


class Held:
    """A summarizer that says that it was asked, and waits until it may go on."""

    def __init__(self) -> None:
        self.asked, self.go_on = asyncio.Event(), asyncio.Event()

    async def summarize(self, _: Rows) -> str:
        self.asked.set()
        await self.go_on.wait()
        return PROSE


async def test_it_gives_what_fit_gives() -> None:
    view, other, log = nca.ContextView(context_window=WINDOW), nca.ContextView(context_window=WINDOW), talk(40)
    for count in (4, 40, 80, 160):
        assert await view.afit(log[:count]) == other.fit(log[:count])
    assert view.state == other.state
    assert await view.arecall(expand="3") == other.recall(expand="3")
    with pytest.raises(nca.InvalidMessages, match=r"^message 1: "):
        await view.afit([{"role": "nobody"}])


async def test_the_work_is_done_in_another_thread_and_the_summary_in_the_loop() -> None:
    read_in: set[threading.Thread] = set()
    asked_in: set[threading.Thread] = set()

    class Messages(list[dict[str, Any]]):
        def __iter__(self) -> Any:
            read_in.add(threading.current_thread())
            return super().__iter__()

    async def summarize(messages: Rows) -> str:
        asked_in.add(threading.current_thread())
        await asyncio.sleep(0)
        return PROSE

    view = nca.ContextView(context_window=WINDOW, summarizer=summarize)
    assert "To test the engine with care" in str((await view.afit(Messages(talk(40)))).messages)
    assert asked_in == {threading.current_thread()}
    assert read_in
    assert not read_in & asked_in


async def test_a_second_task_is_refused_while_the_first_waits_and_the_first_goes_on() -> None:
    summarizer = Held()
    view, log = nca.ContextView(context_window=WINDOW, summarizer=summarizer.summarize), talk(40)
    first = asyncio.create_task(view.afit(log))
    second = asyncio.create_task(view.afit([{"role": "user", "content": "My word is walrus."}]))
    with pytest.raises(nca.ViewInUse, match=r"^This view is fitting another request\. Use one"):
        await second
    await summarizer.asked.wait()
    with pytest.raises(nca.ViewInUse):
        view.fit(log)
    summarizer.go_on.set()
    assert (await first).compacted
    assert "walrus" not in view.recall(query="walrus")
    assert not (await view.afit(log)).compacted


async def test_many_conversations_wait_for_their_summaries_at_once() -> None:
    waiting, go_on = [0], asyncio.Event()

    async def summarize(messages: Rows) -> str:
        waiting[0] += 1
        if waiting[0] == 30:
            go_on.set()
        await go_on.wait()
        return await asyncio.to_thread(lambda: PROSE)

    views = [nca.ContextView(context_window=WINDOW, summarizer=summarize) for _ in range(30)]
    talks = [[{"role": "user", "content": f"I am user{number}."}, *talk(20)] for number in range(30)]
    fitted = await asyncio.gather(*(view.afit(log) for view, log in zip(views, talks, strict=True)))
    for number, one in enumerate(fitted):
        assert one.compacted
        assert [f"user{n}." in str(one.messages) for n in range(30)] == [n == number for n in range(30)]


async def test_a_task_that_is_cancelled_before_the_summary_changes_nothing() -> None:
    asked = asyncio.Event()

    async def summarize(_: Rows) -> str:
        asked.set()
        await asyncio.Event().wait()
        return ""

    view, log = nca.ContextView(context_window=WINDOW, summarizer=summarize), talk(40)
    await view.afit(log[:4])
    state = view.state
    for is_asked in (True, False):
        asked.clear()
        task = asyncio.create_task(view.afit(log))
        await (asked.wait() if is_asked else asyncio.sleep(0))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        # A step that was running ends by itself; whatever comes next in the thread comes after it.
        assert "zebra0" in await view.arecall(expand="3")
        assert view.state == state
    assert not (await view.afit([*log[:4], {"role": "user", "content": "And?"}])).compacted


class SlowMessages(list[dict[str, Any]]):
    """Messages that are being read until the test goes on."""

    def __init__(self, rows: Rows) -> None:
        super().__init__(rows)
        self.is_read, self.goes_on = threading.Event(), threading.Event()

    def __iter__(self) -> Any:
        self.is_read.set()
        self.goes_on.wait(60)
        return super().__iter__()


async def left_at_work(view: nca.ContextView, log: Rows, *, times_out: bool = False) -> SlowMessages:
    """Cancel a request of which the first step is being done."""
    messages = SlowMessages(log)
    task = asyncio.create_task(view.afit(messages))
    await asyncio.to_thread(messages.is_read.wait, 60)
    if times_out:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(task, 0.001)
        return messages
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    return messages


@pytest.mark.parametrize("times_out", [False, True])
@pytest.mark.parametrize("is_async", [True, False])
async def test_after_a_cancelled_request_the_next_one_waits_for_what_was_left(times_out: bool, is_async: bool) -> None:
    view, log = nca.ContextView(context_window=WINDOW), talk(40)
    await view.afit(log[:4])
    state = view.state
    left = await left_at_work(view, log, times_out=times_out)
    again = asyncio.create_task(view.afit(log) if is_async else asyncio.to_thread(view.fit, log))
    for _ in range(10):
        await asyncio.sleep(0)
    assert (again.done(), view.state) == (False, state)
    left.goes_on.set()
    fitted = await again
    other = nca.ContextView(context_window=WINDOW)
    other.fit(log[:4])
    assert fitted.messages == other.fit(log).messages
    assert view.state == other.state


async def test_who_waits_for_what_was_left_may_be_cancelled_too_and_only_one_is_next() -> None:
    summarizer = Held()
    view, log = nca.ContextView(context_window=WINDOW, summarizer=summarizer.summarize), talk(40)
    left = await left_at_work(view, log)
    waiting = asyncio.create_task(view.afit(log))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    first, second = (asyncio.create_task(view.afit(log)) for _ in range(2))
    left.goes_on.set()
    with pytest.raises(nca.ViewInUse):
        await second
    await summarizer.asked.wait()
    summarizer.go_on.set()
    assert (await first).compacted


@pytest.mark.parametrize("turns", range(0, 60, 3))
async def test_a_request_may_be_cancelled_at_any_moment_and_made_again(turns: int) -> None:
    view, log = nca.ContextView(context_window=WINDOW), talk(40)
    task = asyncio.create_task(view.afit(log))
    for _ in range(turns):
        await asyncio.sleep(0.0005)
    task.cancel()
    await asyncio.wait([task])
    expected = nca.ContextView(context_window=WINDOW)
    assert (await view.afit(log)).messages == expected.fit(log).messages
    assert (await view.afit([*log, {"role": "user", "content": "And?"}])).messages[-1]["content"] == "And?"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (None, "the summary is not text"),
        (TimeoutError(), "the summarizer raised TimeoutError"),
        (RuntimeError("the key is missing:\n  set FOO_KEY"), "raised RuntimeError: the key is missing: set FOO_KEY"),
        (RuntimeError("\ud800" + "x" * 2_000), "raised RuntimeError: \ufffdxxx"),
        (
            nca.ModelUnavailable("There is no key for acme/one.", advice="Set ACME_API_KEY."),
            "the summarizer failed: There is no key for acme/one. Set ACME_API_KEY",
        ),
    ],
)
async def test_what_a_summarizer_may_do_wrong_costs_its_summary_only_and_is_said(
    answer: Exception | None, reason: str
) -> None:
    def summarize(_: Rows) -> Any:
        if answer is not None:
            raise answer

    async def asynchronous(messages: Rows) -> Any:
        return summarize(messages)

    view = nca.ContextView(context_window=WINDOW, summarizer=asynchronous)
    for fitted in (await view.afit(talk(40)), nca.compact(talk(40), context_window=WINDOW, summarizer=summarize)):
        assert fitted.compacted
        assert reason in fitted.notices[-1]
        assert len(fitted.notices[-1]) < 400
        assert "\n" not in fitted.notices[-1]


async def test_a_summarizer_that_blocks_runs_in_a_thread_and_a_callable_object_may_be_asynchronous() -> None:
    class Summarizer:
        async def __call__(self, messages: Rows) -> str:
            assert asyncio.get_running_loop()
            return "An object asked. " + PROSE

    def blocking(messages: Rows) -> str:
        assert threading.current_thread() is not threading.main_thread()
        return "A thread asked. " + PROSE

    for summarizer, said in ((Summarizer(), "An object asked."), (blocking, "A thread asked.")):
        view = nca.ContextView(context_window=WINDOW, summarizer=summarizer)
        assert said in str((await view.afit(talk(40))).messages)


def test_an_asynchronous_summarizer_is_refused_where_nothing_can_wait_for_it() -> None:
    async def summarize(_: Rows) -> str:
        return PROSE

    view = nca.ContextView(context_window=WINDOW, summarizer=summarize)
    state = view.state
    with pytest.raises(nca.UsageError, match=r"^summarizer: is asynchronous; valid here: .*afit"):
        view.fit(talk(40))
    assert view.state == state
    assert asyncio.run(view.afit(talk(40))).compacted


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_process_has_a_thread_of_its_own() -> None:
    """As a server that loads the program, and forks its workers then."""
    fit_once()
    worker = multiprocessing.get_context("fork").Process(target=fit_once)
    worker.start()
    worker.join(60)
    if worker.is_alive():
        worker.kill()
    assert worker.exitcode == 0


def fit_once() -> None:
    assert asyncio.run(nca.ContextView(context_window=WINDOW).afit(talk(40))).compacted
