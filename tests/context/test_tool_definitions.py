"""Tool definitions as a model reads them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nca.context.tokenizers import CLAUDE, CLAUDE_PREAMBLE_TOKENS, O200K, OTHER, tools_text, tools_tokens
from nca.vocabulary import count

WEATHER: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Get the weather.\nFor one place.",
        "parameters": {
            "type": "object",
            "properties": {
                "place": {"type": "string", "description": "City and state"},
                "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
                "days": {"type": "integer", "default": 3},
                "tags": {"type": "array", "items": {"type": "string"}},
                "range": {"type": "object", "properties": {"from": {"type": "number"}}, "required": ["from"]},
                "any": {},
                "either": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            },
            "required": ["place"],
        },
    },
}
DECLARED = """# Tools

## functions

namespace functions {

// Get the weather.
// For one place.
type get_weather = (_: {
// City and state
place: string,
unit?: "celsius" | "fahrenheit",
days?: number, // default: 3
tags?: string[],
range?: {
from: number,
},
any?: any,
either?: string | null,
}) => any;

} // namespace functions"""
schemas = st.recursive(
    st.one_of(st.none(), st.booleans(), st.text(max_size=9), st.integers(), st.just({"type": "object"})),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(["type", "properties", "items", "enum", "anyOf", "required", "default", "description"]),
            inner,
            max_size=5,
        ),
    ),
    max_leaves=12,
)


def test_openai_s_models_read_declarations() -> None:
    assert tools_text([WEATHER], O200K) == DECLARED
    without = {"type": "function", "function": {"name": "now"}}
    assert "type now = () => any;" in tools_text([without], O200K)


def test_other_models_read_json_and_claude_a_preamble_too() -> None:
    text = tools_text([WEATHER], OTHER)
    assert text.startswith('[{"type":"function"')
    assert tools_tokens(text, OTHER) == count(text)
    assert tools_tokens(text, CLAUDE) == count(text) + CLAUDE_PREAMBLE_TOKENS


@pytest.mark.parametrize("tokenizer", [O200K, OTHER, CLAUDE])
def test_without_tools_nothing_is_sent(tokenizer: Any) -> None:
    assert tools_text([], tokenizer) == ""
    assert tools_tokens("", tokenizer) == 0


@given(st.one_of(schemas, st.dictionaries(st.sampled_from(["function", "name"]), schemas, max_size=2)))
def test_any_definition_can_be_counted(given: Any) -> None:
    tools = [{"type": "function", "function": {"name": "f", "parameters": given}}, {"function": given}]
    assert tools_tokens(tools_text(tools, O200K), O200K) > 0
