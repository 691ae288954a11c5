"""Typed signatures as JSON schemas, and arguments checked against them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nca.tools.schema import Signature


class Pair(msgspec.Struct, forbid_unknown_fields=True):
    key: str
    is_on: bool = False


async def call(
    path: Annotated[str, "The file."],
    count: int = 3,
    share: float = 0.5,
    deep: bool = False,
    mode: Literal["fast", "slow"] = "fast",
    names: list[str] | None = None,
    pairs: list[Pair] | None = None,
) -> None:
    """A method with every kind of parameter."""


SIGNATURE = Signature.of(call)


def test_the_schema() -> None:
    assert SIGNATURE.schema() == {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "The file."},
            "count": {"type": "integer", "default": 3},
            "share": {"type": "number", "default": 0.5},
            "deep": {"type": "boolean"},
            "mode": {"type": "string", "enum": ["fast", "slow"], "default": "fast"},
            "names": {"type": "array", "items": {"type": "string"}},
            "pairs": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"key": {"type": "string"}, "is_on": {"type": "boolean"}},
                    "required": ["key"],
                },
            },
        },
        "required": ["path"],
    }


def test_what_is_plain_is_read() -> None:
    given_ = {"path": "x", "count": "10", "share": 1, "deep": "true", "mode": "slow", "names": ["a"]}
    assert SIGNATURE.read(given_) == {**given_, "count": 10, "share": 1.0, "deep": True}
    assert SIGNATURE.read({"path": "x", "pairs": [{"key": "a"}]})["pairs"] == [Pair("a")]
    assert SIGNATURE.read({"path": "x", "count": 10.0, "names": None}) == {"path": "x", "count": 10}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "missing argument path (a string)"),
        ({"path": None}, "missing argument path (a string)"),
        ({"path": 1.5}, "argument path must be a string, not 1.5"),
        ({"path": True}, "argument path must be a string, not True"),
        ({"path": "x", "count": 1.5}, "argument count must be a whole number, not 1.5"),
        ({"path": "x", "count": True}, "argument count must be a whole number, not True"),
        ({"path": "x", "count": "many"}, "argument count must be a whole number, not 'many'"),
        ({"path": "x", "count": float("inf")}, "argument count must be a whole number, not inf"),
        ({"path": "x", "count": 10**400}, "argument count must be a whole number, not 1" + "0" * 78 + "…"),
        ({"path": "x", "share": "nan"}, "argument share must be a number, not 'nan'"),
        ({"path": "x", "share": float("inf")}, "argument share must be a number, not inf"),
        ({"path": "x", "deep": 1}, "argument deep must be true or false, not 1"),
        ({"path": "x", "mode": "other"}, "argument mode must be one of fast, slow, not 'other'"),
        ({"path": "x", "names": "a"}, "argument names must be a list (a string each), not 'a'"),
        ({"path": "x", "names": [1]}, "argument names must be a list (a string each), not [1]"),
        (
            {"path": "x", "pairs": [{"is_on": True}]},
            "argument pairs must be a list (an object with key, is_on each), not [{'is_on': True}]",
        ),
        (
            {"path": "x", "file": 1},
            "unknown argument 'file'; the arguments are: path, count, share, deep, mode, names, pairs",
        ),
    ],
)
def test_what_is_wrong_is_one_line(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError) as caught:
        SIGNATURE.read(arguments)
    assert str(caught.value) == message


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda node: st.lists(node, max_size=3) | st.dictionaries(st.text(max_size=5), node, max_size=3),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from(["path", "count", "share", "deep", "mode", "names", "pairs", "x"]), _json))
def test_any_arguments_are_typed_or_refused(arguments: dict[str, Any]) -> None:
    try:
        typed = SIGNATURE.read(arguments)
    except ValueError:
        return
    types = {"path": str, "count": int, "share": float, "deep": bool, "mode": str, "names": list, "pairs": list}
    assert all(type(value) is types[name] for name, value in typed.items())


def test_a_type_without_a_schema_is_refused_when_the_tool_is_made() -> None:
    async def odd(path: set[str]) -> None: ...

    with pytest.raises(TypeError, match=r"set\[str\] cannot be in a schema; valid: str"):
        Signature.of(odd)


def test_methods_of_two_objects_share_what_is_read_and_not_their_schemas() -> None:
    class Tool:
        async def call(self, path: Annotated[str, "Where."], times: int = 2) -> None: ...

    one, other = Signature.of(Tool().call), Signature.of(Tool().call)
    assert one == other
    assert [parameter.name for parameter in one.parameters] == ["path", "times"]
    one.schema()["properties"].clear()
    assert set(other.schema()["properties"]) == {"path", "times"}


def test_a_whole_number_is_taken_for_a_string() -> None:
    async def call(expand: str = "") -> None: ...

    assert Signature.of(call).read({"expand": 57}) == {"expand": "57"}
