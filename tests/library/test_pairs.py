"""Repairing tool pairs and validating requests."""

from __future__ import annotations

import copy
import math
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nca
from nca.context.validate import pairs
from nca.messages import Message
from nca.models import price_map
from nca.models.providers import PROVIDERS
from nca.wire import message_to_dict
from tests.context.logs import logs

USER = {"role": "user", "content": "Look."}
NO_RESULT = "[Tool result unavailable - conversation was compacted]"


def call(*ids: str, name: str = "grep") -> dict[str, Any]:
    calls = [{"id": id, "type": "function", "function": {"name": name, "arguments": "{}"}} for id in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def result(id: str, text: str = "found", **more: Any) -> dict[str, Any]:
    return {"role": "tool", "content": text, "tool_call_id": id, **more}


def test_whole_pairs_stay_as_they_are() -> None:
    rows = [USER, call("a", "b"), result("a"), result("b"), {"role": "assistant", "content": "Done."}]
    repaired = nca.repair_tool_pairs(rows)
    assert repaired == nca.RepairResult(False, rows, 0, 0, ())
    assert repaired.messages is not rows


def test_a_call_without_a_result_gets_one() -> None:
    repaired = nca.repair_tool_pairs([USER, call("a"), {"role": "user", "content": "Go on."}])
    assert repaired.repaired
    assert (repaired.orphaned_calls_fixed, repaired.orphaned_results_fixed) == (1, 0)
    assert repaired.messages[2] == {"role": "tool", "content": NO_RESULT, "tool_call_id": "a", "name": "grep"}
    assert repaired.synthetic == (2,)


def test_a_result_without_a_call_gets_one() -> None:
    repaired = nca.repair_tool_pairs([USER, result("a", name="grep"), result("z")])
    assert (repaired.orphaned_calls_fixed, repaired.orphaned_results_fixed) == (0, 2)
    first, second = repaired.messages[1], repaired.messages[3]
    assert first["content"] == "[Tool call for grep - conversation was compacted]"
    assert first["tool_calls"] == [{"id": "a", "type": "function", "function": {"name": "grep", "arguments": "{}"}}]
    assert second["content"] == "[Tool call for tool - conversation was compacted]"
    assert repaired.messages[2] == result("a", name="grep")
    assert repaired.synthetic == (1, 3)


def test_half_a_parallel_batch_is_filled_and_ordered() -> None:
    rows = [USER, call("a", "b", "c"), result("c"), result("a")]
    repaired = nca.repair_tool_pairs(rows)
    assert [row.get("tool_call_id") for row in repaired.messages] == [None, None, "a", "b", "c"]
    assert repaired.orphaned_calls_fixed == 1
    assert repaired.messages[repaired.synthetic[0]]["tool_call_id"] == "b"


def test_a_second_result_is_left_out_and_a_late_one_moves_up() -> None:
    rows = [USER, call("a"), {"role": "user", "content": "Wait."}, result("a"), result("a", "again")]
    repaired = nca.repair_tool_pairs(rows)
    assert repaired == nca.RepairResult(True, [rows[0], rows[1], rows[3], rows[2]], 0, 0, ())


def test_one_id_for_several_calls_becomes_several() -> None:
    rows = [USER, call("a"), result("a", "one"), call("a"), result("a", "two")]
    repaired = nca.repair_tool_pairs(rows)
    assert repaired.repaired
    ids = [row["tool_call_id"] for row in repaired.messages if row["role"] == "tool"]
    assert len(set(ids)) == 2
    assert not list(pairs(repaired.messages))


def test_made_up_messages_are_marked_beside_and_not_inside_the_request() -> None:
    repaired = nca.repair_tool_pairs([USER, call("a")])
    assert not any(key.startswith("_") or key == "metadata" for row in repaired.messages for key in row)
    assert not nca.validate_request(repaired.messages, "openai")


@given(logs())
def test_any_log_has_whole_pairs_then(messages: list[Message]) -> None:
    rows = [message_to_dict(message) for message in messages]
    before = copy.deepcopy(rows)
    repaired = nca.repair_tool_pairs(rows)
    assert rows == before
    assert not list(pairs(repaired.messages))
    assert repaired.repaired == (repaired.messages != rows)
    assert len(repaired.synthetic) == repaired.orphaned_calls_fixed + repaired.orphaned_results_fixed
    again = nca.repair_tool_pairs(repaired.messages)
    assert again.messages == repaired.messages
    assert not again.repaired


@pytest.mark.parametrize("provider", ["openai", "anthropic", "gemini", "mistral", "azure", "vertex", "nobody"])
def test_a_valid_request_has_no_problems(provider: str) -> None:
    rows = [USER, call("a", "b"), result("a"), result("b"), {"role": "assistant", "content": "Done."}]
    assert nca.validate_request(rows, provider) == []
    assert nca.validate_request(tuple(rows), provider, tools=[]) == []
    assert nca.validate_request(rows[:2], provider)
    assert nca.validate_request([], provider) == ["there are no messages"]


def test_too_many_tools() -> None:
    assert nca.validate_request([USER], "openai", tools=[{}] * 129) == ["129 tools; at most 128"]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (["Hi"], "message 1: expected an object with role and content, found text"),
        ([USER, {"role": "user", "content": 5}], "message 2: content is a number"),
        ([{"role": "user", "content": ["Hi"]}], "message 1: a part of the content is text"),
        ([{"role": "user", "content": [{"type": "text", "text": 3}]}], "message 1: a part of the content is an object"),
        ([{"role": "assistant", "content": None, "tool_calls": "a"}], "message 1: tool_calls is text"),
        ([{"role": "assistant", "content": None, "tool_calls": ["a"]}], "message 1: a tool call is no"),
        ([{"role": "assistant", "content": None, "tool_calls": [{"function": "f"}]}], "message 1: a tool call is no"),
    ],
)
def test_what_no_rule_can_be_asked_about_is_refused(rows: list[Any], said: str) -> None:
    with pytest.raises(nca.InvalidMessages) as refused:
        nca.validate_request(rows, "openai")
    assert said in str(refused.value)


def nested(depth: int) -> Any:
    value: Any = None
    for _ in range(depth):
        value = {"k": value}
    return value


CYCLE: list[Any] = []
CYCLE.append(CYCLE)
ODD = st.sampled_from([None, 0, True, "", "x", "\ud800", [], {}, ["x"], {"type": "text"}, {"type": "image_url"}, b"x"])
NO_JSON = st.sampled_from([CYCLE, object(), {1, 2}, math.nan, 10**5000, nested(5_000), {b"k": 1}])
FUNCTIONS = st.fixed_dictionaries({}, optional={"name": ODD, "arguments": ODD})
CALLS = st.fixed_dictionaries({"id": ODD}, optional={"type": ODD, "function": ODD | FUNCTIONS, "custom": ODD})
ROWS = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "tool", "system"]) | ODD},
    optional={
        "content": ODD | st.lists(ODD, max_size=2),
        "tool_calls": ODD | st.lists(ODD | CALLS, max_size=2),
        "tool_call_id": ODD,
        "name": ODD,
        "function_call": ODD,
    },
)


ASKING = st.fixed_dictionaries({"role": st.just("assistant"), "tool_calls": st.lists(CALLS, min_size=1, max_size=2)})


@settings(max_examples=500)
@given(st.lists(ROWS | ASKING | ODD, max_size=3), st.sampled_from(["openai", "anthropic", "gemini", "mistral"]))
def test_whatever_is_handed_in_is_judged_or_refused_by_name(rows: list[Any], provider: str) -> None:
    with suppress(nca.NcaError):
        if nca.validate_request(rows, provider) == []:
            assert nca.repair_tool_pairs(rows).messages, "what has no problem is read by the other functions"


@settings(max_examples=25)
@given(NO_JSON, st.sampled_from(["content", "extra"]))
def test_a_value_that_json_cannot_hold_is_refused_as_everywhere(value: Any, key: str) -> None:
    rows = [USER, {"role": "user", "content": "Hi.", key: value}]
    for read in (lambda given: nca.validate_request(given, "openai"), nca.repair_tool_pairs):
        with pytest.raises(nca.InvalidMessages, match=r"^message 2"):
            read(rows)
    assert nca.validate_request([{"role": "user", "content": "Hi.", "_note": value}], "openai") == []


@pytest.mark.parametrize("provider", ["", " ", None, 5])
def test_a_provider_is_needed(provider: Any) -> None:
    with pytest.raises(nca.UsageError, match="provider: "):
        nca.validate_request([USER], provider)


@pytest.mark.parametrize(
    "provider", ["antropic", "open-ai", "gemni", "Mistrl", "cluade", "claude-3", "antropic/claude-x"]
)
def test_a_misspelled_provider_is_not_held_to_openais_rules(provider: str) -> None:
    with pytest.raises(nca.UsageError, match="is not known; valid: openai, anthropic, gemini, mistral, azure, "):
        nca.validate_request([USER], provider)


@pytest.mark.parametrize(
    "provider", ["claude", "anthropic/claude-x", "claude-sonnet-5-5", "gemini-2.5-pro", "Vertex_AI"]
)
def test_a_model_is_held_to_its_providers_rules(provider: str) -> None:
    assert nca.validate_request([{"role": "assistant", "content": "Hi."}], provider)


def test_every_provider_of_litellms_is_taken() -> None:
    for provider in (*PROVIDERS, *price_map.providers()):
        assert nca.validate_request([USER], provider) == []


def test_a_broken_message_is_refused_by_its_place() -> None:
    with pytest.raises(nca.InvalidMessages, match=r"message 2, tool call 1: the id is missing"):
        nca.repair_tool_pairs([USER, {"role": "assistant", "tool_calls": [{"function": {"name": "f"}}]}])
    with pytest.raises(nca.InvalidMessages, match="the list is empty"):
        nca.repair_tool_pairs([])
