"""Mistral's rules, each broken once."""

from __future__ import annotations

from typing import Any

import pytest

from nca.context.validate import check_mistral
from tests.context.validate.test_openai import FINE, USER, answered, called


def test_a_valid_request() -> None:
    assert check_mistral(FINE, ()) == []


@pytest.mark.parametrize(
    ("messages", "problem"),
    [
        ([USER, called(), answered(), USER], "code 3230"),
        ([USER, answered()], "a tool message after user"),
        ([answered()], "a tool message after nothing"),
        ([USER, {"role": "assistant", "content": ""}], "neither content nor tool calls"),
        ([USER, called(arguments="no"), answered()], "not a JSON object"),
        ([USER, {"role": "system", "content": "Late."}], "a system message comes after others"),
    ],
)
def test_each_rule_broken(messages: list[dict[str, Any]], problem: str) -> None:
    assert any(problem in line for line in check_mistral(messages, ()))
