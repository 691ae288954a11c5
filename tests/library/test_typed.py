"""The library as a typed program uses it; mypy checks this file strictly with the others."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from importlib.resources import files
from typing import Any, Literal, TypedDict, assert_type

import nca


class Said(TypedDict):
    role: Literal["user", "assistant"]
    content: str


class Noted(Said):
    name: str


LOG: list[Said] = [{"role": "user", "content": "Why?"}, {"role": "assistant", "content": "Because."}]
NOTED: Noted = {"role": "user", "content": "And now?", "name": "ada"}
MIXED: list[Said | Noted] = [*LOG, NOTED]


async def asynchronous(messages: list[dict[str, Any]]) -> str:
    return str(len(messages))


def blocking(messages: list[dict[str, Any]]) -> str:
    return str(len(messages))


def test_typed_messages_are_taken_by_every_function() -> None:
    view = nca.ContextView(context_window=6_000)
    assert_type(view.fit(LOG), nca.FittedRequest)
    assert_type(view.fit(MIXED).messages, list[dict[str, Any]])
    assert_type(nca.compact(MIXED, context_window=6_000), nca.CompactionResult)
    assert_type(nca.check_context_budget(LOG, context_window=6_000).within_budget, bool)
    assert_type(nca.estimate_messages_tokens(LOG), int)
    assert_type(nca.validate_request(LOG, "openai"), list[str])
    assert_type(nca.repair_tool_pairs(MIXED), nca.RepairResult)
    assert_type(view.recall(query="why"), str)


async def test_a_view_takes_both_kinds_of_summarizer_and_gives_the_programs_own_messages() -> None:
    kinds: list[Callable[[list[dict[str, Any]]], str] | Callable[[list[dict[str, Any]]], Awaitable[str]]]
    kinds = [asynchronous, blocking]
    for summarizer in kinds:
        fitted = await nca.ContextView(context_window=6_000, summarizer=summarizer).afit(LOG)
        assert_type(fitted, nca.FittedRequest)
        own = fitted.shown(LOG, _shortened, _user)
        assert_type(own, list[Said])
        assert own == LOG


def test_type_checkers_are_told_that_nca_is_typed() -> None:
    assert files("nca").joinpath("py.typed").is_file()


def _shortened(said: Said, text: str) -> Said:
    return {**said, "content": text}


def _user(text: str) -> Said:
    return {"role": "user", "content": text}
