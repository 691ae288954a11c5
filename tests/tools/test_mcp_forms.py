"""Values that another program's form gives for the fields of an MCP server's form."""

from __future__ import annotations

import math
from typing import Any

import pytest

from nca.tools.mcp.forms import Field

CHOICES = {"enum": ["a", "b, c"], "enumNames": ["b, c", "Second"]}


def field(**schema: Any) -> Field:
    return Field("name", schema, is_required=True)


@pytest.mark.parametrize(
    ("schema", "value", "taken"),
    [
        ({"type": "string"}, " kept as it is ", " kept as it is "),
        ({"type": "string", **CHOICES}, "b, c", "b, c"),
        ({"type": "integer"}, 3.0, 3),
        ({"type": "number", "maximum": 2}, 1.5, 1.5),
        ({"type": "boolean"}, False, False),
        ({"type": "array", "items": CHOICES}, ["b, c", "a"], ["b, c", "a"]),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "any text", "any text"),
    ],
)
def test_a_value_of_the_right_kind_is_taken_as_it_is(schema: dict[str, Any], value: object, taken: object) -> None:
    found = field(**schema).take(value)
    assert (found, type(found)) == (taken, type(taken))


@pytest.mark.parametrize(
    ("typed", "chosen"),
    [("a", "a"), ("Second", "b, c"), ("b, c", "a"), ("1", "a"), ("2", "b, c"), ("0", ""), ("3", "")],
)
def test_a_choice_is_typed_as_its_value_what_is_shown_or_its_number(typed: str, chosen: str) -> None:
    if chosen:
        assert field(type="string", **CHOICES).read(typed) == chosen
    else:
        with pytest.raises(ValueError, match=r"^valid: 1 to 2"):
            field(type="string", **CHOICES).read(typed)


@pytest.mark.parametrize(
    ("schema", "value", "says"),
    [
        ({"type": "string"}, 3, "a text"),
        ({"type": "string", "format": "email"}, "nobody", "email"),
        ({"type": "string", **CHOICES}, "Second", "one of the choices"),
        ({"type": "integer"}, True, "a whole number"),
        ({"type": "integer"}, 3.5, "a whole number"),
        ({"type": "integer"}, math.inf, "a whole number"),
        ({"type": "number"}, math.nan, "a number"),
        ({"type": "number", "maximum": 2}, 2.5, "at most 2"),
        ({"type": "boolean"}, 1, "y or n"),
        ({"type": "array", "items": CHOICES}, "a", "one of the choices"),
        ({"type": "array", "items": CHOICES}, ["a", "c"], "one of the choices"),
        ({"type": "array", "items": CHOICES, "minItems": 1}, [], "at least 1 choices"),
        ({"type": "string"}, {"a": 1}, "a text"),
    ],
)
def test_another_value_is_refused_and_what_is_valid_is_said(schema: dict[str, Any], value: object, says: str) -> None:
    with pytest.raises(ValueError, match=f"^valid: {says}"):
        field(**schema).take(value)
