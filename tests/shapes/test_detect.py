"""In which shape a conversation is: by the object around it, its rows, and their parts."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import pytest

from nca.errors import InvalidMessages
from nca.shapes.anthropic import OWN_TYPES
from nca.shapes.detect import read_shape, shape_of
from nca.shapes.responses import ITEM_TYPES

Row = dict[str, Any]

ITEM_PARTS = ("input_text", "output_text", "input_image", "input_file")
HI: Row = {"role": "user", "content": "Hi"}


def said(*types: str, **more: Any) -> Row:
    return {"role": "user", "content": [{"type": kind, **more} for kind in types]}


@pytest.mark.parametrize(
    ("given", "shape"),
    [
        ([], "openai"),
        ([HI], "openai"),
        ([said("text")], "openai"),
        ([said("image_url")], "openai"),
        ([said("image")], "openai"),
        ([said("image", source={})], "anthropic"),
        ([HI, said("text", "image", source={})], "anthropic"),
        *(([HI, said("text", kind)], "anthropic") for kind in OWN_TYPES),
        *(([HI, said("text", kind)], "responses") for kind in ITEM_PARTS),
        *(([{"type": kind}], "responses") for kind in ITEM_TYPES),
        *(([HI, {"type": kind}], "responses") for kind in ("computer_call", "computer_call_output")),
        ([{"type": "message", **HI}], "responses"),
        ([{"type": "note", **HI}], "openai"),
        ([{"type": "note"}, {"type": 7}, {}], "openai"),
        ([said("tool_result"), {"type": "function_call"}], "responses"),
        ([{"role": "user", "content": ({"type": "tool_result"},)}], "anthropic"),
        ([{"role": "user", "content": ["tool_result", None]}], "openai"),
        ([{"role": "user", "content": [{"type": {"not": "a name"}}]}], "openai"),
        ([5, None, "x"], "openai"),
        ((HI, MappingProxyType(said("tool_use"))), "anthropic"),
        ({"input": "Hi"}, "responses"),
        ({"input": [HI], "messages": [HI], "system": "Rules."}, "responses"),
        ({"input": (HI,)}, "responses"),
        ({"input": None, "messages": [HI]}, "openai"),
        ({"messages": [HI]}, "openai"),
        ({"messages": [HI], "system": "Rules."}, "anthropic"),
        ({"messages": [HI], "system": ""}, "openai"),
        ({"messages": [said("tool_use")]}, "anthropic"),
        ({"messages": [{"type": "function_call"}]}, "responses"),
    ],
)  # fmt: skip
def test_a_shape_is_known_by_what_only_it_has(given: Any, shape: str) -> None:
    assert shape_of(given) == shape


@pytest.mark.parametrize(
    "given", [None, 5, "text", b"bytes", bytearray(b"x"), {}, {"messages": "x"}, iter([HI]), {"input": 5}]
)
def test_what_is_no_list_of_messages_is_refused(given: Any) -> None:
    with pytest.raises(InvalidMessages, match="expected a list of messages"):
        shape_of(given)


@pytest.mark.parametrize("given", [[HI], [said("document", source={"type": "text", "data": "x"})], {"input": "Hi"}])
def test_it_is_read_in_its_shape(given: Any) -> None:
    shaped = read_shape(given)
    assert shaped.shape == shape_of(given)
    assert [message.role for message in shaped.messages] == ["user"]


@pytest.mark.parametrize(
    "row", [said("input_text", text="x"), {"type": "function_call_output", "call_id": "c", "output": "x"}]
)
def test_items_under_messages_are_read_and_come_back_there(row: Row) -> None:
    given = {"messages": [HI, row], "model": "m"}
    shaped = read_shape(given)
    assert shaped.messages[-1].text == "x"
    written = shaped.write(shaped.messages, shaped.messages)
    assert (shaped.request(written.rows), shaped.positions) == (given, [1, 2])
    with pytest.raises(InvalidMessages, match="item 2"):
        read_shape({"messages": [row, {"type": "computer_call"}]})
