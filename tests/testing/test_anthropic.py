"""The loopback provider for Anthropic's Messages API, called without litellm."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any

import pytest

from nca.testing.provider import InvalidRequests
from nca.testing.scripted import Answer, in_order
from tests.testing.anthropic_provider import AnthropicProvider
from tests.testing.anthropic_rules import body_problems

HELLO: dict[str, Any] = {"role": "user", "content": [{"type": "text", "text": "Hello there."}]}
CALL = {"type": "tool_use", "id": "t1", "name": "read_file", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": "x"}
MARK = {"cache_control": {"type": "ephemeral"}}


def body(*messages: dict[str, Any], model: str = "claude", **more: Any) -> dict[str, Any]:
    return {"model": model, "max_tokens": 100, "stream": True, "messages": list(messages or (HELLO,)), **more}


def post(provider: AnthropicProvider, request: dict[str, Any], betas: str = "") -> list[dict[str, Any]]:
    """The events of the answer. Raises HTTPError."""
    data = json.dumps(request).encode()
    headers = {"Content-Type": "application/json", "anthropic-beta": betas}
    call = urllib.request.Request(f"{provider.url}/v1/messages", data, headers)
    with urllib.request.urlopen(call, timeout=10) as response:
        lines = response.read().decode().splitlines()
    return [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]


def test_an_answer_comes_block_by_block() -> None:
    answer = Answer("Let me see.", [("read_file", {"path": "a"})], reasoning="Hm.")
    with AnthropicProvider(in_order(answer)) as provider:
        events = post(provider, body())
    kinds = [event["content_block"]["type"] for event in events if event["type"] == "content_block_start"]
    assert kinds == ["thinking", "text", "tool_use"]
    assert events[0]["type"] == "message_start"
    assert events[-2]["delta"]["stop_reason"] == "tool_use"
    assert events[-1]["type"] == "message_stop"


def test_what_was_marked_is_read_from_the_cache_the_next_time() -> None:
    marked = {"role": "user", "content": [{**HELLO["content"][0], **MARK}]}
    with AnthropicProvider(in_order("Hi.")) as provider:
        usages = [post(provider, body(message))[0]["message"]["usage"] for message in (HELLO, marked, marked)]
    counts = [(usage["cache_read_input_tokens"], usage["cache_creation_input_tokens"]) for usage in usages]
    size = usages[0]["input_tokens"]
    assert counts == [(0, 0), (0, size), (size, 0)]


@pytest.mark.parametrize(("model", "status"), [("overloaded", 529), ("no-such-model", 404)])
def test_a_model_s_name_selects_a_failure(model: str, status: int) -> None:
    with AnthropicProvider() as provider, pytest.raises(urllib.error.HTTPError) as raised:
        post(provider, body(model=model))
    with raised.value:
        assert raised.value.code == status


@pytest.mark.parametrize(
    ("messages", "problem"),
    [
        ([], "there is no message"),
        ([{"role": "assistant", "content": "Hi."}, HELLO], "the first message is not the user's"),
        ([HELLO, HELLO], "messages 0 and 1 have the same role"),
        ([HELLO, {"role": "assistant", "content": "Hi."}], "the last message is the assistant's"),
        ([HELLO, {"role": "assistant", "content": [CALL]}, HELLO], "message 2 has results for []"),
        (
            [HELLO, {"role": "assistant", "content": "Hi."}, {"role": "user", "content": [RESULT]}],
            "but the calls are []",
        ),
        (
            [
                HELLO,
                {"role": "assistant", "content": [CALL]},
                {"role": "user", "content": [{"type": "text", "text": "a"}, RESULT]},
            ],
            "a tool result after other content",
        ),
        (
            [
                HELLO,
                {"role": "assistant", "content": [{**CALL, "id": "a b"}]},
                {"role": "user", "content": [{**RESULT, "tool_use_id": "a b"}]},
            ],
            "invalid call id 'a b'",
        ),
        ([{"role": "user", "content": [{"type": "text", "text": " "}]}], "message 0 has an empty text block"),
        (
            [HELLO, {"role": "assistant", "content": [{"type": "thinking", "signature": "x"}]}, HELLO],
            "invalid signature",
        ),
        (
            [HELLO, {"role": "assistant", "content": [{**CALL, "input": "{}"}]}, {"role": "user", "content": [RESULT]}],
            "is not an object",
        ),
        ([{"role": "user", "content": [{"type": "text", "text": "a", **MARK}] * 5}], "5 cache marks"),
        ([{"role": "user", "content": [{"type": "thinking", **MARK}]}], "cannot bear"),
        ([HELLO, {"role": "assistant", "content": [{"type": "compaction", "content": "a"}]}, HELLO], "beta"),
    ],
)
def test_each_rule_is_held(messages: list[dict[str, Any]], problem: str) -> None:
    assert any(problem in found for found in body_problems(body(*messages) | {"messages": messages}))


def test_a_good_body_has_no_problem() -> None:
    talk = [HELLO, {"role": "assistant", "content": [CALL]}, {"role": "user", "content": [RESULT]}]
    assert body_problems(body(*talk)) == []
    assert body_problems(body(*talk) | {"max_tokens": 0}) == ["max_tokens is 0"]


def test_a_trigger_that_anthropic_refuses_is_refused() -> None:
    edit = {"type": "compact_20260112", "trigger": {"type": "input_tokens", "value": 10}}
    with AnthropicProvider() as provider, pytest.raises(urllib.error.HTTPError) as raised:
        post(provider, body(context_management={"edits": [edit]}), "compact-2026-01-12")
    with raised.value:
        assert raised.value.code == 400


def test_what_would_be_refused_fails_the_test() -> None:
    with pytest.raises(InvalidRequests, match="max_tokens"), AnthropicProvider() as provider:
        post(provider, {"model": "m", "messages": [{"role": "user", "content": "Hi."}]})
