"""The engine for programs: dicts in and out, arguments unchanged, and a valid result."""

from __future__ import annotations

import copy
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nca.context.summary import HEADER
from nca.context.tokens import text_tokens
from nca.context.validate import CHECKS, validate_request
from nca.errors import ConfigError, ContextDoesNotFit, InvalidMessages, UsageError
from nca.library.compaction import CompactionResult, compact
from nca.library.counting import available_input_tokens, check_context_budget, context_window_size
from nca.messages import Message
from nca.wire import message_to_dict
from tests.context.logs import logs
from tests.context.promises import too_large
from tests.context.samples import PROSE, agent_turn, some, talk

ROWS = [message_to_dict(message) for message in [Message("system", "Rules."), *talk(30), *agent_turn(20, 60)]]
WINDOW = 6_000


class Raising:
    def __init__(self, error: Exception) -> None:
        self.error = error

    def __call__(self, messages: list[dict[str, Any]]) -> str:
        raise self.error


def saying(answer: Any) -> Any:
    def summarizer(messages: list[dict[str, Any]]) -> Any:
        return answer

    return summarizer


def mutating(messages: list[dict[str, Any]]) -> str:
    for message in messages:
        message["content"] = "gone"
    messages.clear()
    return PROSE


def has_landed(result: CompactionResult) -> bool:
    return (
        result.compacted
        and not too_large(
            [str(row["content"]) for row in result.messages],
            result.tokens_after,
            result.target_tokens,
            result.budget_tokens,
        )
        and result.target_tokens <= result.budget_tokens < result.tokens_before
        and result.tokens_saved == result.tokens_before - result.tokens_after
        and not any(validate_request(result.messages, provider) for provider in CHECKS)
    )


SUMMARIZERS = {
    "none": None,
    "good": saying(PROSE),
    "mutating": mutating,
    "raises": Raising(RuntimeError("boom")),
    "times out": Raising(TimeoutError()),
    "returns None": saying(None),
    "returns a number": saying(5),
    "returns bytes": saying(b"bytes"),
    "empty": saying(""),
    "blank": saying(" \n\t"),
    "thinks only": saying("<think>hm"),
    "refuses": saying("I'm sorry, I can't help with that."),
    "longer": saying("blah " * 50_000),
    "echoes": lambda messages: messages[0]["content"],
    "lone surrogate": saying(PROSE + "\ud800"),
}


@pytest.mark.parametrize("name", SUMMARIZERS)
def test_any_summarizer_lands_and_nothing_handed_in_is_changed(name: str) -> None:
    rows, tools = copy.deepcopy(ROWS), [{"type": "function", "function": {"name": "shell"}}]
    given_tools = copy.deepcopy(tools)
    result = compact(rows, context_window=WINDOW, summarizer=SUMMARIZERS[name], tools=tools)
    assert has_landed(result)
    assert rows == ROWS
    assert tools == given_tools
    json.dumps(result.messages).encode()
    text = "\n".join(str(row["content"]) for row in result.messages)
    assert HEADER in text
    assert ("### 1. Goal and intent" in text) == (name in ("good", "mutating", "lone surrogate"))


def test_it_is_deterministic() -> None:
    assert compact(ROWS, context_window=WINDOW) == compact(copy.deepcopy(ROWS), context_window=WINDOW)


@some
@given(logs(), st.sampled_from([1_000, 4_000]))
def test_any_log_comes_out_valid_and_is_not_changed(messages: list[Message], window: int) -> None:
    rows = [message_to_dict(message) for message in messages]
    before = copy.deepcopy(rows)
    try:
        result = compact(rows, context_window=window)
    except ContextDoesNotFit:
        return
    finally:
        assert rows == before
    assert not any(validate_request(result.messages, provider) for provider in CHECKS)
    assert result.compacted == (result.tokens_saved > 0)


def test_what_comes_out_can_go_in_again_and_stays() -> None:
    once = compact(ROWS, context_window=WINDOW)
    again = compact(once.messages, context_window=WINDOW)
    assert not again.compacted
    assert again.messages == once.messages
    assert again.stages_used == ()


@pytest.mark.parametrize("stages", [("prune", "summarize"), ("truncate",)])
def test_the_newest_user_message_stays_when_what_came_out_grows_and_goes_in_again(stages: tuple[str, ...]) -> None:
    task = "Mend the parser in src/parse.py. " + PROSE
    rows = [message_to_dict(message) for message in [Message("user", task), *agent_turn(40)[1:]]]
    for number in range(3):
        result = compact(rows, context_window=4_000, stages=stages)
        assert result.compacted
        assert [row["content"] for row in result.messages if row["role"] == "user"].count(task) == 1
        rows = [*result.messages, *(message_to_dict(message) for message in agent_turn(40, name=f"more{number}")[1:])]


def test_items_cover_every_message_exactly_once() -> None:
    result = compact(ROWS, context_window=WINDOW)
    covered: list[int] = []
    for item in result.items:
        spans = item.get("ranges") or [(item.get("first", item.get("seq")), item.get("last", item.get("seq")))]
        covered += [seq for first, last in spans for seq in range(first, last + 1)]
    assert sorted(covered) == list(range(1, len(ROWS) + 1))
    assert {item["type"] for item in result.items} <= {"verbatim", "stub", "summary", "marker"}
    json.dumps(result.items)


def test_the_numbers_follow_from_window_reserve_and_target() -> None:
    result = compact(ROWS, context_window=WINDOW, max_output_tokens=1_000, target=0.4)
    assert result.budget_tokens == 5_000
    # A share of the budget, and of the newest message, which cannot shrink, all of it.
    assert 2_000 < result.target_tokens < 2_050
    assert 0 < compact(ROWS, context_window=WINDOW, max_output_tokens=1_000, target=0.001).target_tokens < 100


def test_stages_and_settings_by_canonical_and_seed_names() -> None:
    only = compact(ROWS, context_window=WINDOW, stages=["sliding_window"])
    assert only.stages_used == ("truncate",)
    settings = {"agent_max_context_tokens": 3_000, "context.prune.keep_results": 0}
    assert compact(ROWS, context_window=WINDOW, settings=settings).budget_tokens == 3_000


def test_the_focus_reaches_the_summarizer() -> None:
    asked: list[str] = []

    def summarizer(messages: list[dict[str, Any]]) -> str:
        asked.append(messages[0]["content"])
        return PROSE

    compact(ROWS, context_window=WINDOW, summarizer=summarizer, focus="the build")
    assert "The user asks to keep above all: the build" in asked[0]


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        ({"messages": []}, InvalidMessages),
        ({"messages": "text"}, InvalidMessages),
        ({"messages": [{"role": "x"}]}, InvalidMessages),
        ({"target": 0.0}, ConfigError),
        ({"target": -1}, ConfigError),
        ({"stages": ["shrink"]}, ConfigError),
        ({"summarizer": 5}, UsageError),
        ({"settings": {"context.prune.keep": 5}}, ConfigError),
        ({"context_window": -5}, ConfigError),
        ({"max_output_tokens": -1}, ConfigError),
        ({"messages": [{"role": "system", "content": "x" * 90_000}, *ROWS]}, ContextDoesNotFit),
    ],
)
def test_what_cannot_be_done_is_refused(asked: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        compact(**{"messages": ROWS, "context_window": WINDOW, **asked})


def test_under_the_target_messages_come_back_repaired() -> None:
    rows = [{"role": "user", "content": "Hi"}, {"role": "tool", "tool_call_id": "a", "content": "x", "name": "grep"}]
    result = compact(rows)
    assert not result.compacted
    assert [row["role"] for row in result.messages] == ["user", "assistant", "tool"]
    assert result.messages[1]["content"] == "[Tool call for grep - conversation was compacted]"


def test_mistral_s_request_has_ids_of_nine_characters() -> None:
    result = compact(ROWS, model="mistral/mistral-large-latest", context_window=WINDOW)
    assert {len(call["id"]) for row in result.messages for call in row.get("tool_calls", ())} == {9}


def test_a_real_transcript_lands() -> None:
    raw = (Path(__file__).parent / "data" / "coding-session.jsonl").read_text("utf-8")
    rows = [json.loads(line) for line in raw.splitlines()]
    result = compact(rows, context_window=8_000)
    assert has_landed(result)
    rows.clear()
    assert result.kept_facts["total"] >= result.kept_facts["kept"] > 0
    assert msgspec.to_builtins(result) == msgspec.to_builtins(asdict(result))


def test_budget_check() -> None:
    check = check_context_budget(ROWS, context_window=WINDOW)
    assert check.available_input_tokens == 3_900
    assert not check.within_budget
    assert check.should_compact
    assert check.usage_ratio == check.estimated_input_tokens / 3_900 > 1
    assert sum(check.breakdown.values()) == check.estimated_input_tokens
    assert check.estimated_input_tokens == compact(ROWS, context_window=WINDOW).tokens_before


def test_budget_check_counts_prompt_input_tools_and_files() -> None:
    plain = check_context_budget(ROWS[:5], context_window=WINDOW)
    full = check_context_budget(
        ROWS[:5],
        context_window=WINDOW,
        system_prompt="You are a test. " * 20,
        current_prompt="And now? " * 20,
        tools=[{"type": "function", "function": {"name": "grep", "description": "Search. " * 20}}],
        files=[{"path": "a.txt", "content": "data " * 200}],
    )
    assert all(full.breakdown[part] > 0 for part in full.breakdown)
    assert full.estimated_input_tokens == sum(full.breakdown.values()) > plain.estimated_input_tokens
    assert not plain.should_compact
    assert check_context_budget(ROWS[:5], context_window=WINDOW, threshold=0.01).should_compact
    assert check_context_budget([], context_window=WINDOW, current_prompt="Hi").within_budget


def test_budget_check_refuses_files_without_text() -> None:
    with pytest.raises(UsageError, match="content"):
        check_context_budget(ROWS, files=[{"path": "a.txt"}])


def test_windows_and_available_tokens() -> None:
    assert context_window_size("gpt-4o") == 128_000
    assert context_window_size("gpt-4o", "openai") == 128_000
    assert context_window_size("nobody-knows-this") == 128_000
    assert available_input_tokens("gpt-4o") == 96_000
    assert available_input_tokens("gpt-4o", "openai", 28_000) == 100_000


@pytest.mark.parametrize("is_broken", [False, True])
def test_a_summarizer_with_a_window_of_its_own_is_asked_in_parts(is_broken: bool) -> None:
    rows = [{"role": "user", "content": f"Question {number} " + "why " * 200} for number in range(300)]
    asked: list[str] = []

    def summarizer(messages: list[dict[str, Any]]) -> str:
        asked.append(messages[0]["content"])
        return "" if is_broken and len(asked) > 1 else f"- {len(asked)} parts of the talk were read and told of here."

    settings = {"model.summarizer": "openai/gpt-4"}
    result = compact(rows, context_window=64_000, summarizer=summarizer, settings=settings)
    assert len(asked) == 3 if is_broken else 3 < len(asked) <= 8
    assert all(text_tokens(text) <= 8_192 * 0.6 for text in asked)
    said = f"- {1 if is_broken else len(asked)} parts of the talk"
    assert any(said in str(row["content"]) for row in result.messages)
    assert result.notices == (("Summary finished by code: the summary was empty.",) if is_broken else ())
