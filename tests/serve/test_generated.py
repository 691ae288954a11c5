"""Generated requests: every answer is valid, says what it promises, and is the same bytes for the same request."""

from __future__ import annotations

import os
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

import nca
from nca.messages import Message
from nca.serve.service import Options, application
from nca.wire import message_to_dict
from tests.context.logs import logs

EXAMPLES = int(os.environ.get("NCA_SERVE_EXAMPLES", "100"))
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


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.sampled_from(PATHS), ODD)
def test_an_odd_request_gets_an_answer_that_says_what_is_wrong(path: str, body: dict[str, Any]) -> None:
    status, told = answered(path, body)
    assert status in (200, 400, 422), told
    if status != 200:
        assert told["error"]["message"]
        assert "\n" not in told["error"]["message"]
