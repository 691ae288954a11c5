import json
import subprocess
import sys
import urllib.error
import urllib.request
from typing import Any

import pytest

from nca.testing.provider import InvalidRequests, Provider
from nca.testing.scripted import SECTIONS, Answer, count_request_tokens, in_order, prose, split_text


def _post(provider: Provider, **body: Any) -> tuple[int, Any]:
    body = {"model": "m", "messages": [{"role": "user", "content": "Hello there"}], **body}
    request = urllib.request.Request(
        f"{provider.url}/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request) as response:
            text = response.read().decode()
            return response.status, text if body.get("stream") else json.loads(text)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read())


def test_an_answer_whole_and_streamed_is_the_same() -> None:
    with Provider(in_order(Answer(text="One two three."))) as provider:
        status, whole = _post(provider)
        _, streamed = _post(provider, stream=True, stream_options={"include_usage": True})
    assert status == 200
    events = [json.loads(line[6:]) for line in streamed.splitlines() if line.startswith("data: {")]
    pieces = [choice["delta"].get("content") or "" for event in events for choice in event["choices"]]
    assert "".join(pieces) == whole["choices"][0]["message"]["content"] == "One two three."
    assert events[-1]["usage"] == whole["usage"]
    assert streamed.endswith("data: [DONE]\n\n")
    assert len(provider.requests) == 2


def test_the_window_is_a_limit() -> None:
    with Provider(window_tokens=50) as provider:
        status, body = _post(provider, max_tokens=45)
        assert (status, body["error"]["code"]) == (400, "context_length_exceeded")
        assert "you requested 54 tokens (9 in the messages, 45 in the completion)" in body["error"]["message"]
        status, body = _post(provider)
        assert (status, body["choices"][0]["finish_reason"]) == (200, "length")
        assert body["usage"]["total_tokens"] == 50
    assert len(provider.overflows) == 1


def test_requests_are_checked() -> None:
    with (
        pytest.raises(InvalidRequests, match="1 message"),
        Provider(check=lambda request: [f"{len(request['messages'])} message"]) as provider,
    ):
        _post(provider)
    assert provider.violations == ["1 message"]


def test_an_invalid_request_is_seen_by_the_usual_check_and_no_other_error_is_hidden() -> None:
    orphan = [{"role": "user", "content": "a"}, {"role": "tool", "tool_call_id": "c", "content": "b"}]
    with pytest.raises(InvalidRequests, match="no call directly before"), Provider() as provider:
        _post(provider, messages=orphan)
    with Provider(check=None) as provider:
        _post(provider, messages=orphan)
    with pytest.raises(KeyError), Provider() as provider:
        raise KeyError(_post(provider, messages=orphan)[0])


def test_a_request_that_was_refused_as_too_large_must_not_come_again() -> None:
    with pytest.raises(InvalidRequests, match="came again"), Provider(window_tokens=50) as provider:
        assert [_post(provider, max_tokens=room)[0] for room in (45, 44, 44)] == [400] * 3


def test_models_are_listed() -> None:
    with Provider(models=["a", "b"]) as provider, urllib.request.urlopen(f"{provider.url}/models") as response:
        assert [row["id"] for row in json.load(response)["data"]] == ["a", "b"]


def test_the_default_script_varies_and_summarizes() -> None:
    answers = {prose({"messages": [{"role": "user", "content": f"Question {n}"}]}).text for n in range(20)}
    assert len(answers) == 20
    summary = prose({"messages": [{"role": "user", "content": "Write a summary.\n" + "A line of talk, long.\n" * 20}]})
    assert all(f"## {title}" in summary.text for title in SECTIONS)


@pytest.mark.parametrize("text", ["", "Hello, world!", "a_b = 123456", "Überraschung  “hm”\n\n日本語 😀"])
def test_tokens_are_the_text(text: str) -> None:
    assert "".join(split_text(text)) == text


def test_a_requests_tokens_include_calls_and_tools() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "read", "arguments": '{"path": "a"}'}}
    bare = count_request_tokens([{"role": "assistant", "content": None}])
    assert count_request_tokens([{"role": "assistant", "content": None, "tool_calls": [call]}]) > bare
    assert count_request_tokens([{"role": "assistant", "content": None}], [{"name": "read"}]) > bare


def test_it_runs_from_a_shell() -> None:
    command = [sys.executable, "-m", "nca.testing.provider", "--window", "100"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        with urllib.request.urlopen(f"{url}/models") as response:
            assert response.status == 200
        process.terminate()
