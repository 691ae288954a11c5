"""OpenAI's rules, each broken once."""

from __future__ import annotations

from typing import Any

import pytest

from nca.context.validate import check_openai

USER = {"role": "user", "content": "Hi"}


def called(id: Any = "a", name: Any = "f", arguments: Any = "{}") -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {"role": "assistant", "content": None, "tool_calls": [{"id": id, "type": "function", "function": function}]}


def answered(id: Any = "a") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id, "content": "ok"}


FINE = [{"role": "system", "content": "Rules."}, USER, called(), answered(), {"role": "assistant", "content": "Hello"}]


def test_a_valid_request() -> None:
    assert check_openai(FINE, [{}] * 128) == []
    assert check_openai([{"role": "developer", "content": "Rules."}, USER], ()) == []


@pytest.mark.parametrize(
    ("messages", "problem"),
    [
        ([], "there are no messages"),
        ([USER, called()], "the end: call 'a' has no result"),
        ([USER, called(), USER, answered()], "call 'a' has no result directly after it"),
        ([USER, answered()], "which no call directly before waits for"),
        ([USER, called(), answered(), answered()], "which no call directly before waits for"),
        ([USER, called(), answered(), called(), answered()], "is used twice"),
        ([USER, called("x" * 41), answered("x" * 41)], "1 to 40 characters"),
        ([USER, called(""), answered("")], "1 to 40 characters"),
        ([USER, called(name="bad name"), answered()], "must match"),
        ([USER, called(name=None), answered()], "must match"),
        ([USER, called(arguments="{"), answered()], "not a JSON object"),
        ([USER, called(arguments="[1]"), answered()], "not a JSON object"),
        ([USER, called(arguments=None), answered()], "not a JSON object"),
        ([USER, called(arguments=5), answered()], "not a JSON object"),
        ([{"role": "owner", "content": "Hi"}], "the role 'owner' is not known"),
        ([USER, {"role": "assistant", "content": "x", "tool_calls": []}], "non-empty list"),
        ([{**USER, "tool_calls": called()["tool_calls"]}, answered()], "on an assistant message"),
        ([USER, {"role": "assistant", "content": None}], "message 2: no content"),
        ([{"role": "user", "content": []}], "message 1: no content"),
        ([{"role": "user", "content": [{"type": "image_url", "image_url": None}]}], "part 1: image_url holds nothing"),
        (
            [{"role": "user", "content": [{"type": "text", "text": "x"}, {"type": "file"}]}],
            "part 2: file holds nothing",
        ),
        ([USER, called(["a"]), answered(["a"]), answered({})], "a result for {}, which no call"),
        ([USER, {"role": "assistant", "tool_calls": [{"id": "a", "custom": 7}]}, answered()], "the function name None"),
        ([USER, {**called(), "content": []}, answered()], "message 2: no content"),
        ([{"role": "user", "content": "\ud800"}], "cannot be encoded"),
    ],
)
def test_each_rule_broken(messages: list[dict[str, Any]], problem: str) -> None:
    assert any(problem in line for line in check_openai(messages, ()))


def test_too_many_tools() -> None:
    assert check_openai(FINE, [{}] * 129) == ["129 tools; at most 128"]
