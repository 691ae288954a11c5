"""Generated requests: every answer is valid, says what it promises, and is the same bytes for the same request."""

from __future__ import annotations

import gc
import os
import random
from typing import Any

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

import nca
from nca import vocabulary
from nca.context.rules.calls import with_unique_ids
from nca.messages import Message, clean_text
from nca.serve.operations import PLACEHOLDER
from nca.serve.service import Options, application
from nca.shapes.detect import read_shape
from nca.wire import content_text, is_note, message_to_dict
from tests.context.logs import logs
from tests.serve.conversations import Rows, conversations, items

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


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(conversations(), st.sampled_from([1_000, 4_000]))
def test_each_row_shows_what_the_view_has_at_its_place(told: tuple[str, Rows], window: int) -> None:
    """In every shape, whichever messages share a row or have several."""
    shape, rows = told
    body = {"messages": rows, "context_window": window, "fit": "cut"}
    status, answer = answered("/v1/compress", body)
    if status == 422 or not answer["compacted"]:
        return
    shown = answer["messages"]
    before = read_shape(rows)
    after = type(before)(shown)  # words alone may be of any shape
    assert (len(shown), after.positions) == (len(rows), before.positions)
    assert [kept(row) for row in shown] == [kept(row) for row in rows]
    assert len(nca.validate_request(sent(shape, shown), shape)) <= len(nca.validate_request(sent(shape, rows), shape))
    texts = [content_text(message.content) for message in after.messages]
    for item in nca.ContextView(context_window=window, has_recall=False, fit="cut").fit(rows).items:
        match item:
            case {"type": "verbatim", "first": first, "last": last}:
                assert after.messages[first - 1 : last] == before.messages[first - 1 : last]
            case {"type": "stub", "seq": seq, "text": text}:
                assert clean_text(text) in texts[seq - 1]
            case {"ranges": ranges}:
                gone = [seq - 1 for one, last in ranges for seq in range(one, last + 1)]
                record = next(number for number in gone if before.takes_text(number))
                assert (item.get("text") or PLACEHOLDER) in texts[record]
                for number in gone:
                    if number != record and before.takes_text(number) and before.messages[number].content:
                        assert PLACEHOLDER in texts[number]


def kept(row: dict[str, Any]) -> Any:
    """What a row keeps, whatever becomes of its texts: who it is from, its calls, and what they are the results of."""
    blocks = row["content"] if isinstance(row.get("content"), list) else []
    of_blocks = [
        {key: value for key, value in block.items() if key != "content"}
        for block in blocks
        if block["type"] in ("thinking", "tool_use", "tool_result")
    ]
    return {key: value for key, value in row.items() if key not in ("content", "output")}, of_blocks


def sent(shape: str, rows: Rows) -> Any:
    """The request that a program sends: without its notes, and in its own shape where all rows are words."""
    rows = [row for row in rows if not is_note(row)]
    return {"openai": rows, "anthropic": {"system": "A test.", "messages": rows}, "responses": {"input": rows}}[shape]


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


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(logs(), st.randoms(), st.sampled_from([1_000, 4_000, 128_000]))
def test_a_compaction_holds_what_open_responses_requires(
    messages: list[Message], chance: random.Random, window: int
) -> None:
    request = {"model": "gpt-5", "input": items(with_unique_ids(messages), chance), "context_window": window}
    status, told = answered("/v1/responses/compact", request)
    if status != 200:
        assert (status, told["error"]["type"]) in [(422, "context_does_not_fit"), (400, "invalid_request")]
        return
    assert set(told) == {"id", "object", "created_at", "output", "usage"}
    assert told["usage"]["total_tokens"] == told["usage"]["input_tokens"] + told["usage"]["output_tokens"]
    for item in told["output"]:
        assert item["type"] == "message"
        assert item["id"].startswith("msg_")
        assert (item["status"], type(item["content"])) == ("completed", list)
        assert item["role"] in ("user", "assistant", "system", "developer")
        assert all(part["annotations"] == [] for part in item["content"] if part["type"] == "output_text")
    assert len({item["id"] for item in told["output"]}) == len(told["output"])
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
