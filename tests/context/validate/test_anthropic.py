"""Anthropic's rules, each broken once."""

from __future__ import annotations

from typing import Any

import pytest

from nca.context.validate import check_anthropic
from tests.context.validate.test_openai import FINE, USER, answered, called

IMAGE = {"type": "image_url", "image_url": {"url": "data:"}}


def test_a_valid_request() -> None:
    assert check_anthropic(FINE, ()) == []
    assert check_anthropic([{"role": "user", "content": [IMAGE, {"type": "text", "text": "What is it?"}]}], ()) == []


@pytest.mark.parametrize(
    ("messages", "problem"),
    [
        ([], "the first message is not the user's"),
        ([{"role": "assistant", "content": "Hi"}], "the first message is not the user's"),
        ([USER, {"role": "system", "content": "Late."}], "a system message comes after others"),
        ([USER, called("a b"), answered("a b")], "has other characters"),
        ([USER, called(arguments="[]"), answered()], "not a JSON object"),
        ([USER, called()], "has no result"),
        ([USER, {"role": "assistant", "content": " "}], "the text is empty"),
        ([{"role": "user", "content": []}], "the text is empty"),
        ([{"role": "user", "content": [IMAGE, {"type": "text", "text": " "}]}], "an empty text part"),
    ],
)
def test_each_rule_broken(messages: list[dict[str, Any]], problem: str) -> None:
    assert any(problem in line for line in check_anthropic(messages, ()))
