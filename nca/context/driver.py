"""Run a compaction to its end: answer its questions, synchronously or not.

The engine's generators (`plan.compact`, `summary_writer.write`, `stages.custom.act`) yield questions and take the
answers. Nothing else steps them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from typing import Any, TypeVar

from nca.context.plan import Asking, Question
from nca.context.stages.custom import StageReply, Strategy, consult
from nca.context.summary import SummaryFailure, SummaryReply, SummaryRequest

Q = TypeVar("Q")
T = TypeVar("T")


def drive(work: Generator[Q, Any, T], answer: Callable[[Q], Any]) -> T:
    """Answer every question that `work` yields, and return its result."""
    try:
        question = next(work)
        while True:
            question = work.send(answer(question))
    except StopIteration as done:
        result: T = done.value
        return result


async def drive_async(work: Generator[Q, Any, T], answer: Callable[[Q], Awaitable[Any]]) -> T:
    """`drive` for answers that are waited for."""
    try:
        question = next(work)
        while True:
            question = work.send(await answer(question))
    except StopIteration as done:
        result: T = done.value
        return result


def run(
    compacting: Asking[T],
    summarizer: Callable[[SummaryRequest], SummaryReply | SummaryFailure],
    load_stage: Callable[[str], Strategy] | None = None,
) -> T:
    """Drive a compaction with a callable that asks a model (or says that there is none).

    load_stage  gives a package's stage by its name; None: such stages do nothing
    """

    def answer(question: Question) -> object:
        if isinstance(question, SummaryRequest):
            return summarizer(question)
        return consult(question, load_stage) if load_stage is not None else StageReply()

    return drive(compacting, answer)
