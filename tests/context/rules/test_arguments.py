"""Arguments of past calls are JSON objects, and their names are accepted by providers."""

from __future__ import annotations

import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nca.context.rules.calls import with_valid_arguments
from nca.messages import ToolCall
from tests.context.samples import calling, user


@given(st.text(max_size=80), st.text(max_size=40))
def test_any_call_is_sendable_afterwards(name: str, arguments: str) -> None:
    (repaired,) = with_valid_arguments([calling(ToolCall("a", name, arguments))])
    (made,) = repaired.tool_calls
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", made.name)
    assert isinstance(msgspec.json.decode(made.arguments), dict)
    assert made.id == "a"


@pytest.mark.parametrize("arguments", ["", "null", "[1]", '"text"', "{", '{"a": 1}{"b": 2}', "[" * 5_000])
def test_what_is_not_an_object_becomes_an_empty_one(arguments: str) -> None:
    (repaired,) = with_valid_arguments([calling(ToolCall("a", "shell", arguments))])
    assert repaired.tool_calls == (ToolCall("a", "shell", "{}"),)


@pytest.mark.parametrize(
    ("name", "safe"), [("bad name!", "bad_name_"), ("", "tool"), ("日本", "__"), ("x" * 70, "x" * 64)]
)
def test_names(name: str, safe: str) -> None:
    (repaired,) = with_valid_arguments([calling(ToolCall("a", name, "{}"))])
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", repaired.tool_calls[0].name)
    if name.isascii():
        assert repaired.tool_calls[0].name == safe


def test_valid_arguments_stay_as_the_model_wrote_them() -> None:
    fine = [user(), calling(ToolCall("a", "shell", ' {"b" : 1}  '))]
    assert with_valid_arguments(fine) is fine
