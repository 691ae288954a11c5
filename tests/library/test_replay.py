"""Replays count what the engine would have done."""

from __future__ import annotations

import json
from itertools import pairwise, takewhile
from pathlib import Path
from typing import Any

import pytest

from nca.config.loaded import LoadedSettings, defaults
from nca.context.tokens import message_tokens
from nca.library.replay import Replay, replay
from nca.messages import Message
from nca.shapes.detect import read_shape
from nca.wire import message_from_dict
from tests.context.samples import assistant, talk, user

DATA = Path(__file__).parent.parent / "data"
PRICED = "anthropic/claude-opus-4-5"


def coding() -> list[Message]:
    rows = [json.loads(line) for line in (DATA / "coding-session.jsonl").read_text().splitlines()]
    return [message_from_dict(row) for row in rows if not row["role"].startswith("_")]


def window(tokens: int, **more: Any) -> LoadedSettings:
    return defaults().with_values({"model.context_window": tokens} | more, "a test")


def without_times(found: Replay) -> list[object]:
    rows = [(one.after_message, one.stages, one.tokens_before, one.tokens_after) for one in found.compactions]
    return [found.with_nca, found.without, found.kept_facts, found.total_facts, found.kept_turns, rows]


def test_a_coding_session_in_a_small_window() -> None:
    messages = coding()
    found = replay(messages, window(16_000), model=PRICED)
    assert (found.messages, found.requests) == (len(messages), sum(m.role == "assistant" for m in messages))
    assert found.turns == sum(m.role == "user" and not m.is_synthetic for m in messages)
    assert found.compactions
    assert found.with_nca.over_budget == 0
    assert found.with_nca.largest_tokens <= found.budget_tokens < found.without.largest_tokens
    assert found.without.over_budget > 0
    assert found.with_nca.tokens < found.without.tokens
    assert all(one.tokens_after < one.tokens_before >= found.trigger_tokens for one in found.compactions)
    assert 0 < found.kept_facts <= found.total_facts
    assert 0 < found.kept_turns <= found.turns
    for side in (found.with_nca, found.without):
        assert side.cost is not None
        assert side.cost_cached is not None
        assert 0 < side.cost_cached < side.cost
    assert without_times(replay(messages, window(16_000), model=PRICED)) == without_times(found)


def test_what_the_request_says_counts_where_no_argument_or_setting_does() -> None:
    tools = [{"type": "function", "function": {"name": "look", "description": "word " * 500}}]
    rows = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hello."}]
    request = read_shape({"model": PRICED, "max_tokens": 1_000, "tools": tools, "messages": rows})
    messages = request.messages

    found = replay(messages, defaults(), request=request)
    known = defaults().with_values({"model.max_output_tokens": 1_000}, "a test")
    assert without_times(found) == without_times(replay(messages, known, model=PRICED, tools=tools))
    assert (found.model, found.window_tokens - found.budget_tokens) == (PRICED, 1_000)
    assert found.without.tokens > 500
    set_otherwise = defaults().with_values({"model.max_output_tokens": 2_000}, "a test")
    other = replay(messages, set_otherwise, model="openai/gpt-4o", tools=[], request=request)
    assert (other.model, other.window_tokens - other.budget_tokens) == ("openai/gpt-4o", 2_000)
    assert other.without.tokens < 500


def test_a_window_with_room_for_all_changes_nothing() -> None:
    found = replay(coding(), window(200_000))
    assert found.compactions == ()
    assert found.with_nca == found.without
    assert found.kept_facts == found.total_facts > 0
    assert found.kept_turns == found.turns
    assert found.with_nca.cost is None


def test_a_request_begins_as_the_one_before_until_a_compaction() -> None:
    messages = talk(4)
    found = replay([*messages, user("And?"), assistant("So.")], window(100_000))
    last = found.without.largest_tokens
    assert found.without.tokens - found.without.cached_tokens == last


@pytest.mark.parametrize("tokens", [12_000, 16_000, 24_000])
def test_what_two_requests_begin_with_alike_is_cached_also_over_a_compaction(tokens: int) -> None:
    sent: list[list[Message]] = []
    loaded = window(tokens, **{"model.name": "openai/gpt-4.1"})
    found = replay(coding(), loaded, watch=lambda _, request: sent.append(list(request)))
    assert found.compactions
    sizes = [sum(map(message_tokens, request)) for request in sent]
    fixed, rest = divmod(found.with_nca.tokens - sum(sizes), len(sent))
    assert (fixed > 0, rest) == (True, 0), "a token of the model is one of ours"
    alike = [takewhile(lambda pair: pair[0] == pair[1], zip(*two, strict=False)) for two in pairwise(sent)]
    assert found.with_nca.cached_tokens == sum(fixed + sum(message_tokens(one) for one, _ in pairs) for pairs in alike)


def test_settings_decide_as_in_the_chat() -> None:
    off = replay(coding(), window(16_000, **{"context.auto": "off"}))
    assert off.compactions == ()
    early = replay(coding(), window(16_000, **{"context.compact_threshold": 0.4}))
    assert early.compactions[0].after_message < replay(coding(), window(16_000)).compactions[0].after_message


def test_what_cannot_fit_is_counted_and_does_not_stop_it() -> None:
    found = replay([user("word " * 9_000), assistant("No."), user("Shorter."), assistant("Yes.")], window(8_000))
    assert found.with_nca.over_budget <= found.without.over_budget == 2
    assert (found.without.first_over_budget, replay(talk(4), window(100_000)).without.first_over_budget) == (1, 0)
    assert found.requests == 2


def test_a_request_that_fills_the_budget_fits() -> None:
    messages, settings = (
        [user("word " * 900), assistant("No.")],
        {"model.max_output_tokens": 500, "context.auto": "off"},
    )
    tokens = replay(messages, window(100_000)).without.tokens
    for less, over in ((0, 0), (1, 1)):
        found = replay(messages, window(tokens + 500 - less, **settings))
        assert (found.budget_tokens, found.without.over_budget) == (tokens - less, over)


def test_what_is_written_into_the_prompt_cache_has_its_price() -> None:
    """Claude's first request costs more with the cache than without it."""
    found = replay([user("word " * 900), assistant("No.")], window(100_000), model=PRICED).without
    assert found.cost is not None
    assert found.cost_cached is not None
    assert found.cost_cached > found.cost


def test_a_summarizer_is_asked_and_its_tokens_are_counted() -> None:
    asked: list[int] = []

    def summarizer(messages: list[dict[str, Any]]) -> str:
        asked.append(len(messages))
        return "### 1. Goal and intent\nThe user wants the failing tests of the project to pass again."

    found = replay(coding(), window(16_000), summarizer=summarizer)
    assert asked
    assert found.summaries_tokens > 0
    assert "summarizer" in {one.made_by for one in found.compactions}


@pytest.mark.parametrize("messages", [[], [user("Hello.")]])
def test_a_conversation_without_answers_has_no_requests(messages: list[Message]) -> None:
    found = replay(messages, window(16_000))
    assert (found.requests, found.with_nca.tokens, found.compactions) == (0, 0, ())
