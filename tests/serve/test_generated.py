"""Generated requests: every answer is valid, says what it promises, and is the same bytes for the same request."""

from __future__ import annotations

import gc
import os
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

import nca
from nca import vocabulary
from nca.messages import Message
from nca.serve.operations import PLACEHOLDER
from nca.serve.service import Options, application
from nca.wire import message_to_dict
from tests.context.logs import logs

EXAMPLES = int(os.environ.get("NCA_SERVE_EXAMPLES", "28"))
CLIENT = TestClient(application(Options()), base_url="http://localhost")
PATHS = ("/v1/compress", "/v1/responses/compact", "/v1/context/check", "/v1/recall")
JSON = st.recursive(st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=9), st.lists, max_leaves=5)
ODD = st.dictionaries(
    st.sampled_from(["messages", "input", "rows", "model", "context_window", "tools", "fit", "key", "query", "expand"]),
    JSON | st.lists(st.dictionaries(st.sampled_from(["role", "content", "type", "tool_calls"]), JSON), max_size=3),
)


def answered(path: str, body: Any) -> Any:
    """The answer's object and status. Asked twice, it is the same."""
    content = msgspec.json.encode(body)
    first, second = (CLIENT.post(path, content=content) for _ in range(2))
    assert (first.status_code, first.content) == (second.status_code, second.content)
    return first.status_code, msgspec.json.decode(first.content)


@settings(max_examples=EXAMPLES, deadline=None)
@given(logs(), st.sampled_from([1_000, 4_000, 128_000]), st.booleans())
def test_a_conversation_comes_back_valid(messages: list[Message], window: int, rows: bool) -> None:
    given_rows = [message_to_dict(message) for message in messages]
    status, told = answered("/v1/compress", {"messages": given_rows, "context_window": window, "rows": rows})
    if status == 422:
        assert told["error"]["type"] == "context_does_not_fit"
        return
    assert status == 200
    shown = told["messages"]
    assert told["tokens_saved"] == told["tokens_before"] - told["tokens_after"]
    if rows:
        assert [(row["role"], row.get("tool_call_id")) for row in shown] == [
            (row["role"], row.get("tool_call_id")) for row in given_rows
        ]
        assert told["tokens_after"] <= told["tokens_before"]
        # It is as valid as what was sent; LiteLLM may send a conversation without its beginning or its end.
        assert len(nca.validate_request(shown, "openai")) <= len(nca.validate_request(given_rows, "openai"))
    else:
        assert nca.validate_request(shown, "openai") == []


@settings(max_examples=EXAMPLES // 4, deadline=None)
@given(logs(), st.sampled_from([1_000, 4_000]))
def test_each_row_shows_what_the_view_has_at_its_place(messages: list[Message], window: int) -> None:
    given_rows = [message_to_dict(message) for message in messages]
    told = CLIENT.post("/v1/compress", json={"messages": given_rows, "context_window": window}).json()
    if not told.get("compacted"):
        return
    for item in nca.ContextView(context_window=window, has_recall=False).fit(given_rows).items:
        match item:
            case {"type": "verbatim", "first": first, "last": last}:
                assert told["messages"][first - 1 : last] == given_rows[first - 1 : last]
            case {"type": "stub", "seq": seq, "text": text}:
                assert text in str(told["messages"][seq - 1]["content"])
            case {"ranges": ranges}:
                record, *others = [told["messages"][seq - 1] for one, last in ranges for seq in range(one, last + 1)]
                assert (item.get("text") or PLACEHOLDER) in str(record["content"])
                assert {str(row["content"]) for row in others if row.get("content")} <= {PLACEHOLDER}


def test_no_request_loads_a_vocabulary() -> None:
    """It would stop the other requests of the process meanwhile."""
    try:
        with TestClient(application(Options()), base_url="http://localhost") as client:
            loaded = vocabulary._counting.cache_info().misses
            for model in ("claude-sonnet-4-5", "gpt-4"):
                said = [{"role": "user", "content": f"What is {number}?"} for number in range(200)]
                body = {"model": model, "messages": said, "context_window": 2_000}
                assert client.post("/v1/compress", json=body).status_code == 200
            assert vocabulary._counting.cache_info().misses == loaded
    finally:
        gc.unfreeze()


def test_what_a_server_loads_at_its_start_is_not_collected() -> None:
    assert gc.get_freeze_count() == 0
    try:
        with TestClient(application(Options()), base_url="http://localhost") as client:
            assert client.get("/readyz").status_code == 200
            frozen = gc.get_freeze_count()
            assert frozen > 10_000
            assert client.post("/v1/compress", json={"messages": []}).status_code in (200, 400)
            assert gc.get_freeze_count() <= frozen
    finally:
        gc.unfreeze()


def items_of(messages: list[Message]) -> list[dict[str, Any]]:
    """The same conversation as items of the Responses API."""
    items: list[dict[str, Any]] = []
    for message in messages:
        if message.role == "tool":
            items.append({"type": "function_call_output", "call_id": message.tool_call_id, "output": message.text})
            continue
        if message.text:
            items.append({"role": message.role, "content": message.text})
        items += [
            {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": call.arguments}
            for call in message.tool_calls
        ]
    return items


@settings(max_examples=EXAMPLES, deadline=None)
@given(logs(), st.sampled_from([1_000, 4_000, 128_000]))
def test_a_compaction_holds_what_open_responses_requires(messages: list[Message], window: int) -> None:
    request = {"model": "gpt-5", "input": items_of(messages), "context_window": window}
    status, told = answered("/v1/responses/compact", request)
    if status != 200:
        assert (status, told["error"]["type"]) in [(422, "context_does_not_fit"), (400, "invalid_request")]
        return
    assert set(told) == {"id", "object", "created_at", "output", "usage"}
    assert told["usage"]["total_tokens"] == told["usage"]["input_tokens"] + told["usage"]["output_tokens"]
    for item in told["output"]:
        assert item["type"] in ("message", "function_call", "function_call_output")
        if item["type"] != "message":
            continue
        assert item["id"].startswith("msg_")
        assert (item["status"], type(item["content"])) == ("completed", list)
        assert item["role"] in ("user", "assistant", "system", "developer")
        assert all(part["annotations"] == [] for part in item["content"] if part["type"] == "output_text")
    assert len({item["id"] for item in told["output"] if "id" in item}) == sum("id" in one for one in told["output"])
    # A client can go on with it.
    assert answered("/v1/responses/compact", {**request, "input": told["output"]})[0] in (200, 422)


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.sampled_from(PATHS), ODD)
def test_an_odd_request_gets_an_answer_that_says_what_is_wrong(path: str, body: dict[str, Any]) -> None:
    status, told = answered(path, body)
    assert status in (200, 400, 422), told
    if status != 200:
        assert told["error"]["message"]
        assert "\n" not in told["error"]["message"]
