"""Items of the Responses API: what is not compacted comes back equal, and reasoning stays with its call."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import nca
from tests.context.promises import too_large
from tests.context.samples import some
from tests.shapes.conversions import Rows, conversations, to_responses

Row = dict[str, Any]

REASONING: Row = {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "Zm9v"}
CALL: Row = {
    "type": "function_call",
    "id": "fc",
    "call_id": "c1",
    "name": "grep",
    "arguments": '{"pattern": "x"}',
}
CUSTOM: Row = {
    "type": "custom_tool_call",
    "id": "ct",
    "call_id": "c1",
    "name": "patch",
    "input": "*** Begin",
}
OUTPUT: Row = {"type": "function_call_output", "call_id": "c1", "output": "found"}
SEARCH: Row = {
    "type": "web_search_call",
    "id": "ws",
    "status": "completed",
    "action": {"type": "search", "query": "q"},
}
IMAGE: Row = {"type": "input_image", "image_url": "data:,"}

words = st.text(min_size=1, max_size=30).filter(lambda text: bool(text.strip()))
inputs = st.builds(lambda text: {"type": "input_text", "text": text}, words) | st.just(IMAGE)
outputs = words | st.just("") | st.lists(inputs, min_size=1, max_size=3)


@st.composite
def answers(draw: st.DrawFn, calls: int, first_id: int) -> Rows:
    """What a model gave in one go, in any order that keeps reasoning before something."""
    content = [{"type": "output_text", "text": draw(words), "annotations": []}]
    said = draw(st.lists(st.just({"type": "message", "id": "m", "role": "assistant", "content": content}), max_size=1))
    called = [{**draw(st.sampled_from([CALL, CUSTOM])), "call_id": f"c{first_id + n}"} for n in range(calls)]
    items = draw(st.permutations(said + called + draw(st.sampled_from([[], [SEARCH]]))))
    return [one for item in items for one in ([REASONING, item] if draw(st.booleans()) else [item])]


@st.composite
def requests(draw: st.DrawFn) -> dict[str, Any]:
    items: Rows = [{"role": "user", "content": draw(words)}]
    first_id = 0
    for _ in range(draw(st.integers(0, 6))):
        calls = draw(st.integers(0, 3))
        items += draw(answers(calls, first_id))
        results = [{**OUTPUT, "call_id": f"c{first_id + n}", "output": draw(outputs)} for n in range(calls)]
        items += draw(st.permutations(results))
        first_id += calls
        role = draw(st.sampled_from(["user", "developer", "system"]))
        said = draw(words | st.lists(inputs, min_size=1, max_size=2))
        items += draw(st.sampled_from([[], [{"type": "message", "role": role, "content": said}]]))
    more: Row = draw(st.sampled_from([{}, {"instructions": "Rules."}, {"instructions": None, "store": False}]))
    return {"model": "gpt", **more, "input": items}


@some
@given(requests())
def test_what_is_not_compacted_comes_back_equal(request: dict[str, Any]) -> None:
    given_request = copy.deepcopy(request)
    assert nca.validate_request(request, "openai") == []
    result = nca.compact(request, context_window=1_000_000)
    assert not result.compacted
    assert result.shape == "responses"
    assert result.request == request == given_request
    assert result.messages == request["input"]


@pytest.mark.parametrize("number", range(len(conversations())))
def test_recorded_conversations_come_back_and_are_compacted(number: int) -> None:
    request = to_responses(conversations()[number])
    assert nca.compact(request, context_window=2_000_000).request == request
    for window in (12_000, 40_000):
        result = nca.compact(request, context_window=window)
        used, texts = result.tokens_after, map(str, result.messages)
        assert too_large(texts, used, result.target_tokens, result.budget_tokens) == ""
        assert result.request is not None
        assert nca.validate_request(result.request, "openai") == []
        assert result.request["instructions"] == request["instructions"]
        assert nca.compact(result.request, context_window=window).request == result.request
        for item, next_item in zip(result.messages, result.messages[1:], strict=False):
            if item.get("type") == "reasoning":
                assert next_item.get("type") == "function_call" or next_item.get("role") == "assistant"


def test_cleared_outputs_keep_their_items() -> None:
    items: Rows = [{"role": "user", "content": "Read all."}]
    for number in range(5):
        call = {**CALL, "call_id": f"c{number}", "arguments": f'{{"path": "{number}.py"}}'}
        items += [
            REASONING,
            call,
            {**OUTPUT, "call_id": f"c{number}", "output": f"{number} " * 1_000, "id": f"o{number}"},
        ]
    result = nca.compact(items, context_window=16_000, stages=["prune"])
    assert result.compacted
    assert result.request is None
    assert [item.get("type") for item in result.messages] == [item.get("type") for item in items]
    assert result.messages[1:3] == items[1:3]
    assert len(result.messages[3]["output"]) < 500
    assert result.messages[3]["id"] == "o0"
    assert result.messages[-1] == items[-1]


def test_orphans_are_repaired_in_their_own_shape() -> None:
    items = [{"role": "user", "content": "Go."}, {**OUTPUT, "call_id": "gone"}, CALL]
    repaired = nca.repair_tool_pairs(items)
    assert [item.get("type") for item in repaired.messages] == [
        None,
        "message",
        "function_call",
        "function_call_output",
        "function_call",
        "function_call_output",
    ]
    assert repaired.messages[4] == CALL
    assert repaired.synthetic == (1, 5)


def test_an_input_that_is_text_comes_back_as_text() -> None:
    request = {"instructions": "Rules.", "input": "Hello."}
    result = nca.compact(request)
    assert result.request == request
    assert result.messages == [{"role": "user", "content": "Hello."}]


@pytest.mark.parametrize(
    ("given_request", "says"),
    [
        ([CALL, OUTPUT, {"type": "item_reference", "id": "x"}], "item 3: type 'item_reference' is not known here"),
        ([{**CALL, "type": "computer_call"}], "item 1: type 'computer_call' is not known here; valid: message"),
        ([CALL, {"content": "x"}], "item 2: type (missing) is not known"),
        ([{"type": "message", "role": "robot", "content": "x"}], "item 1: role 'robot' is not known"),
        ([{"type": "message", "role": "user", "content": [{"type": "hologram"}]}], "item 1, part 1: type 'hologram'"),
        ([{"type": "message", "role": "user"}], "item 1: content is nothing; valid: text or a list"),
        ([{**CALL, "arguments": {}}], "item 1: arguments is an object; valid: text"),
        ([{**OUTPUT, "call_id": None}], "item 1: call_id is nothing; valid: text"),
        ([CALL, {"role": "assistant", "content": "", "tool_calls": [1]}], "item 2: tool_calls are of chat messages"),
        ({"input": "x", "previous_response_id": "r"}, "previous_response_id: its messages are held by the provider"),
        ({"input": []}, "input: the list is empty"),
    ],
)
def test_what_is_not_understood_is_refused_by_name(given_request: Any, says: str) -> None:
    with pytest.raises(nca.InvalidMessages) as refused:
        nca.compact(given_request)
    assert says in refused.value.message
