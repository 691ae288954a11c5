"""Gemini's rules, each broken once."""

from __future__ import annotations

from typing import Any

import pytest

from nca.context.validate import check_gemini
from tests.context.validate.test_openai import FINE, USER, answered, called


def two_calls() -> dict[str, Any]:
    return {**called(), "tool_calls": [*called("a")["tool_calls"], *called("b")["tool_calls"]]}


def test_a_valid_request() -> None:
    assert check_gemini(FINE, ()) == []
    assert check_gemini([USER, two_calls(), answered("a"), answered("b")], ()) == []


@pytest.mark.parametrize(
    ("messages", "problem"),
    [
        ([{"role": "assistant", "content": "Hi"}], "the first content is not the user's"),
        ([USER, {"role": "system", "content": "Late."}], "a system message comes after others"),
        ([USER, {"role": "assistant", "content": "Hm."}, called(), answered()], "must directly follow the user"),
        ([USER, two_calls(), answered("b"), answered("a")], "in their order"),
        ([USER, two_calls(), answered("a")], "in their order"),
        ([USER, called(name="a b"), answered()], "must match"),
        ([USER, {"role": "assistant", "content": ""}], "an empty part"),
    ],
)
def test_each_rule_broken(messages: list[dict[str, Any]], problem: str) -> None:
    assert any(problem in line for line in check_gemini(messages, ()))
