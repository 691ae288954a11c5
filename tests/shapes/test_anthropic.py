"""Anthropic's messages: what goes in and is not compacted comes back equal, and what was compacted is valid."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import nca
from nca.messages import Message
from nca.shapes.anthropic import ON_THE_SERVER, answer, new_blocks
from tests.context.promises import too_large
from tests.context.samples import some
from tests.shapes.conversions import Rows, conversations, to_anthropic

Row = dict[str, Any]

IMAGE: Row = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "Zm9v"}}
DOCUMENT: Row = {
    "type": "document",
    "source": {"type": "text", "media_type": "text/plain", "data": "A page."},
    "title": "t",
}
THOUGHT: Row = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
MARK: Row = {"cache_control": {"type": "ephemeral"}}
CALL: Row = {"type": "tool_use", "id": "c1", "name": "grep", "input": {"pattern": "x"}}
RESULT: Row = {"type": "tool_result", "tool_use_id": "c1", "content": "found"}

words = st.text(min_size=1, max_size=30).filter(lambda text: bool(text.strip()))
texts = st.builds(lambda text, mark: {"type": "text", "text": text, **(MARK if mark else {})}, words, st.booleans())
said = texts | st.sampled_from([IMAGE, DOCUMENT])
marks: st.SearchStrategy[Row] = st.sampled_from([{}, {"is_error": True}, MARK])
extras: st.SearchStrategy[Row] = st.sampled_from(
    [{}, {"id": "msg_1"}, {"stop_reason": None, "usage": {"input_tokens": 3}}]
)
outputs = words | st.just("") | st.none() | st.lists(texts | st.just(IMAGE), min_size=1, max_size=3)


@st.composite
def answers(draw: st.DrawFn, calls: int, first_id: int) -> dict[str, Any]:
    """An assistant's row, as text where that is possible."""
    if not calls and draw(st.booleans()):
        return {"role": "assistant", "content": draw(words), **draw(extras)}
    uses = [{**CALL, "id": f"toolu_{first_id + n}", "input": draw(inputs)} for n in range(calls)]
    thoughts = draw(st.sampled_from([[], [THOUGHT], [THOUGHT, {"type": "redacted_thinking", "data": "x"}]]))
    blocks = draw(st.lists(texts, min_size=0 if calls else 1, max_size=2))
    server = draw(st.sampled_from([[], [{"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}]]))
    return {"role": "assistant", "content": thoughts + draw(st.permutations(blocks + uses + server)), **draw(extras)}


inputs = st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=9) | st.none(), max_size=3)


@st.composite
def requests(draw: st.DrawFn) -> dict[str, Any]:
    """A valid request in one of the many forms that the same conversation can have."""
    rows: Rows = [{"role": "user", "content": draw(words), **draw(extras)}]
    first_id = 0
    for _ in range(draw(st.integers(0, 6))):
        calls = draw(st.integers(0, 3))
        rows.append(draw(answers(calls, first_id)))
        results = [
            {"type": "tool_result", "tool_use_id": f"toolu_{first_id + n}", "content": draw(outputs), **draw(marks)}
            for n in range(calls)
        ]
        first_id += calls
        blocks = draw(st.permutations(results)) + draw(st.lists(said, min_size=0 if calls else 1, max_size=2))
        rows.append({"role": "user", "content": blocks, **draw(extras)})
    blocks = [{"type": "text", "text": "Rules.", **MARK}]
    system: dict[str, Any] = draw(st.sampled_from([{}, {"system": "Rules."}, {"system": blocks}]))
    return {"model": "claude", "max_tokens": 9, **system, "messages": rows}


@some
@given(requests())
def test_what_is_not_compacted_comes_back_equal(request: dict[str, Any]) -> None:
    given_request = copy.deepcopy(request)
    if "system" not in request and not any(isinstance(row["content"], list) for row in request["messages"]):
        return  # Rows of text alone are of OpenAI's shape as well.
    assert nca.validate_request(request, "anthropic") == []
    result = nca.compact(request, context_window=1_000_000)
    assert not result.compacted
    assert result.messages == request["messages"]
    if result.shape == "anthropic":
        assert result.request == request
    assert request == given_request
    assert not nca.repair_tool_pairs(request).orphaned_calls_fixed


@pytest.mark.parametrize("number", range(len(conversations())))
def test_recorded_conversations_come_back_and_are_compacted(number: int) -> None:
    rows = conversations()[number]
    # How Claude's vocabulary differs is found in samples, and those of a compacted log are others than those of all.
    request = {key: value for key, value in to_anthropic(rows).items() if key != "model"}
    assert nca.compact(request, context_window=2_000_000).request == request
    for window in (12_000, 40_000):
        result = nca.compact(request, context_window=window)
        used, texts = result.tokens_after, map(str, result.messages)
        assert too_large(texts, used, result.target_tokens, result.budget_tokens) == ""
        assert result.request is not None
        assert nca.validate_request(result.request, "anthropic") == []
        assert nca.estimate_messages_tokens(result.request) == result.tokens_after
        named = nca.estimate_messages_tokens({**result.request, "model": "claude"})
        assert named == nca.check_context_budget({**result.request, "model": "claude"}).estimated_input_tokens
        assert {key: value for key, value in result.request.items() if key != "messages"} == {
            key: value for key, value in request.items() if key != "messages"
        }
        assert _newest_text(result.messages) == _newest_text(request["messages"])
        assert nca.compact(result.request, context_window=window).request == result.request


def _newest_text(rows: Rows) -> Any:
    texts = [row["content"] for row in rows if row["role"] == "user" and isinstance(row["content"], str)]
    return texts[-1]


def test_cleared_results_keep_their_blocks_and_their_row() -> None:
    def step(number: int) -> Rows:
        ids = [f"a{number}", f"b{number}"]
        calls = [{**CALL, "id": one, "input": {"path": f"{one}.py"}} for one in ids]
        results = [{**RESULT, "tool_use_id": one, "content": f"{one} " * 900, **MARK} for one in ids]
        behind = {"type": "text", "text": f"Comment {number}."}
        return [{"role": "assistant", "content": [THOUGHT, *calls]}, {"role": "user", "content": [*results, behind]}]

    rows = [{"role": "user", "content": "Read all."}, *(row for number in range(4) for row in step(number))]
    result = nca.compact({"system": "Rules.", "messages": rows}, context_window=16_000, stages=["prune"])
    assert result.compacted
    assert [row["role"] for row in result.messages] == [row["role"] for row in rows]
    first = result.messages[2]["content"]
    assert [block["type"] for block in first] == ["tool_result", "tool_result", "text"]
    assert len(first[0]["content"]) < 500
    assert first[0]["cache_control"] == MARK["cache_control"]
    assert first[2] == {"type": "text", "text": "Comment 0."}
    assert result.messages[1] == rows[1]
    assert result.messages[-1] == rows[-1]


def test_orphans_are_repaired_in_their_own_shape() -> None:
    rows: Rows = [
        {"role": "user", "content": [{**RESULT, "tool_use_id": "gone"}]},
        {"role": "assistant", "content": [CALL]},
        {"role": "user", "content": "Go on."},
    ]
    assert nca.validate_request(rows, "anthropic")
    repaired = nca.repair_tool_pairs(rows)
    assert (repaired.orphaned_calls_fixed, repaired.orphaned_results_fixed) == (1, 1)
    assert repaired.messages[0]["content"][1] == {"type": "tool_use", "id": "gone", "name": "tool", "input": {}}
    assert repaired.messages[1:3] == rows[:2]
    assert repaired.messages[3]["content"][0]["tool_use_id"] == "c1"
    assert repaired.synthetic == (0, 3)
    result = nca.compact(rows, context_window=9_000)
    assert nca.validate_request(result.messages, "anthropic") == []


def test_it_is_counted_as_the_same_chat_messages() -> None:
    for rows in conversations()[:3]:
        assert nca.estimate_messages_tokens(to_anthropic(rows)["messages"]) > 0
        check = nca.check_context_budget(to_anthropic(rows), context_window=8_000)
        chat = nca.check_context_budget(rows, model="claude", context_window=8_000)
        assert check.estimated_input_tokens == pytest.approx(chat.estimated_input_tokens, abs=20)


def test_tools_of_the_object_are_counted() -> None:
    request: Row = {"system": "Rules.", "messages": [{"role": "user", "content": "Hi"}]}
    tools = [{"name": "grep", "description": "Search. " * 50, "input_schema": {"type": "object"}}]
    alone, with_tools = (nca.estimate_messages_tokens(one) for one in (request, {**request, "tools": tools}))
    assert with_tools > alone + 90
    assert nca.estimate_messages_tokens(request, tools=tools) == with_tools
    assert nca.compact({**request, "tools": tools}).tokens_before == with_tools


@pytest.mark.parametrize(
    ("given_request", "says"),
    [
        (
            {"messages": [{"role": "user", "content": [RESULT, {"type": "hologram"}]}]},
            "message 1, block 2: type 'hologram'",
        ),
        (
            {"messages": [{"role": "assistant", "content": [CALL, RESULT]}]},
            "message 1, block 2: type 'tool_result' is not",
        ),
        (
            {"messages": [{"role": "user", "content": [{**RESULT, "content": [CALL]}]}]},
            "message 1, block 1, result block 1",
        ),
        ({"messages": [{"role": "user", "content": [{**RESULT, "tool_use_id": ""}]}]}, "tool_use_id is empty"),
        ({"messages": [{"role": "assistant", "content": [{**CALL, "input": "x"}]}]}, "input is text; valid: an object"),
        ({"system": "x", "messages": [{"role": "system", "content": "y"}]}, "message 1: role 'system' is not valid"),
        ({"system": [IMAGE], "messages": [{"role": "user", "content": "y"}]}, "system, block 1: type 'image'"),
        ({"system": "x", "messages": [{"role": "user"}]}, "message 1: content is nothing; valid: text or a list"),
        ({"system": "x", "messages": [{"role": "user", "content": ["y"]}]}, "message 1, block 1: expected an object"),
        ({"system": "x", "messages": []}, "the list is empty"),
        (
            {"system": "x", "messages": [{"role": "tool", "tool_call_id": "a", "content": "y"}]},
            "role 'tool' is not valid",
        ),
        ([{"role": "assistant", "content": [CALL], "tool_calls": [1]}], "message 1: tool_calls is OpenAI's"),
    ],
)
def test_what_is_not_understood_is_refused_by_name(given_request: Any, says: str) -> None:
    with pytest.raises(nca.InvalidMessages) as refused:
        nca.compact(given_request)
    assert says in refused.value.message
    assert "valid" in refused.value.message or "expected" in refused.value.message


def test_notes_of_a_transcript_are_not_sent() -> None:
    rows = [{"role": "_note", "content": 5}, {"role": "user", "content": [RESULT], "_at": 1}]
    made, row = nca.repair_tool_pairs(rows).messages[-2:]
    assert made["role"] == "assistant"
    assert row == {"role": "user", "content": [RESULT]}


def test_lone_surrogates_are_replaced() -> None:
    rows = [{"role": "user", "content": [{**DOCUMENT, "title": "a\udfff"}, {"type": "text", "text": "b\udfff"}]}]
    (row,) = nca.compact(rows).messages
    assert row["content"][0]["title"] == "a\ufffd"
    assert row["content"][1]["text"] == "b\ufffd"


@pytest.mark.parametrize("fails", [True, False])
def test_a_result_says_that_it_failed_only_if_it_did(fails: bool) -> None:
    [block] = new_blocks(Message("tool", "found", tool_call_id="c1", is_error=fails))
    assert block == RESULT | ({"is_error": True} if fails else {})


@pytest.mark.parametrize("kind", ON_THE_SERVER)
def test_what_the_provider_answered_itself_is_a_part_of_the_message(kind: str) -> None:
    block = {"type": kind, "id": "s1", "name": "web_search", "input": {"query": "walrus"}}
    message = answer([{"type": "text", "text": "I look."}, block], "message 1")
    assert len(message.content or ()) == 2
