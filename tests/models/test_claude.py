"""What only Claude has: blocks of its answers, from litellm's deltas; cache marks; compaction by the provider."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nca.config.schema import ModelSettings
from nca.messages import Usage
from nca.models.catalog import describe
from nca.models.claude import (
    LEAST_TRIGGER_TOKENS,
    LIFE_SECONDS,
    MARK,
    ClaudeBlocks,
    cache_seconds,
    compaction_refusal,
    context_management,
    mark,
    samplings,
    wants_marks,
)
from nca.models.client import ModelRequest, ProviderModel
from nca.models.litellm_import import warm
from nca.testing.provider import Provider


def test_a_thought_is_kept_once_whole_and_signed() -> None:
    blocks = ClaudeBlocks()
    blocks.add({"thinking_blocks": [{"type": "thinking", "thinking": "I "}]})
    blocks.add({"thinking_blocks": [{"type": "thinking", "thinking": "see.", "signature": None}]})
    blocks.add({"thinking_blocks": [{"type": "thinking", "thinking": "I see.", "signature": "s"}]})
    blocks.add({"thinking_blocks": [{"type": "redacted_thinking", "data": "d"}]})
    assert blocks.thinking == [
        {"type": "thinking", "thinking": "I see.", "signature": "s"},
        {"type": "redacted_thinking", "data": "d"},
    ]


def test_a_block_of_compaction_comes_empty_and_then_its_content() -> None:
    blocks = ClaudeBlocks()
    blocks.add({"provider_specific_fields": {"compaction_blocks": [{"type": "compaction", "content": None}]}})
    assert blocks.summary is None
    for piece in ("All ", "of it."):
        blocks.add({"provider_specific_fields": {"compaction_delta": {"type": "compaction_delta", "content": piece}}})
    assert blocks.summary == {"type": "compaction", "content": "All of it."}


def test_a_compaction_that_says_nothing_is_none() -> None:
    blocks = ClaudeBlocks()
    blocks.add({"provider_specific_fields": {"compaction_delta": {"content": "without a block"}}})
    blocks.add({"provider_specific_fields": {"compaction_blocks": [{"type": "compaction", "content": " "}]}})
    blocks.add({"provider_specific_fields": "odd", "thinking_blocks": "odd"})
    assert blocks.summary is None
    assert blocks.thinking == []


def test_each_sampling_is_told_apart() -> None:
    rows = [
        {"type": "compaction", "input_tokens": 180_000, "output_tokens": 3_500},
        {
            "type": "message",
            "input_tokens": 20_000,
            "cache_read_input_tokens": 2_000,
            "cache_creation_input_tokens": 1_000,
            "output_tokens": -1,
        },
    ]
    assert samplings({"iterations": rows}) == (Usage(180_000, 3_500), Usage(23_000, 0, 2_000, 1_000))
    assert samplings({"iterations": None}) == samplings(None) == ()


SYSTEM: dict[str, Any] = {"role": "system", "content": "Be brief."}
PARAMETERS: dict[str, Any] = {"type": "object", "properties": {}}
TOOLS: list[dict[str, Any]] = [
    {"type": "function", "function": {"name": name, "parameters": PARAMETERS}} for name in ("a", "b")
]
CALL = {"id": "c1", "type": "function", "function": {"name": "a", "arguments": "{}"}}
TALK: list[dict[str, Any]] = [
    {"role": "user", "content": "## Conversation Summary"},
    {"role": "user", "content": "Do it."},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": "result"},
]

texts = st.sampled_from(["", " ", "text", "other text"])
contents = texts | st.lists(st.builds(lambda text: {"type": "text", "text": text}, texts), max_size=3) | st.none()
rows = st.builds(
    lambda role, content, has_mark: {"role": role, "content": content} | ({"cache_control": {}} if has_mark else {}),
    st.sampled_from(["user", "assistant", "tool"]),
    contents,
    st.booleans(),
)

MOST_MARKS = 4
"""Anthropic refuses a request with more."""


def marked(messages: list[dict[str, Any]], tools: list[dict[str, Any]], provider: str = "anthropic") -> list[Any]:
    """The rows or parts that bear a mark."""
    parts = [
        part
        for row in messages
        for part in (row["content"] if isinstance(row.get("content"), list) else ())
        if isinstance(part, dict)
    ]
    return [row for row in (*tools, *messages, *parts) if "cache_control" in row]


@pytest.mark.parametrize(
    ("provider", "model", "wants"),
    [
        ("anthropic", "anthropic/claude-sonnet-5-5", True),
        ("bedrock", "bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0", True),
        ("vertex_ai", "vertex_ai/claude-sonnet-4-5", True),
        ("openrouter", "openrouter/anthropic/claude-sonnet-5.5", True),
        ("openrouter", "openrouter/openai/gpt-5.4", False),
        ("vertex_ai", "vertex_ai/gemini-2.5-pro", False),
        ("openai", "openai/gpt-5.4", False),
        ("bedrock", "bedrock/amazon.nova-pro-v1:0", False),
    ],
)
def test_only_claude_bears_marks(provider: str, model: str, wants: bool) -> None:
    assert wants_marks(provider, model) is wants


def test_the_stable_places_are_marked() -> None:
    messages, tools = copy.deepcopy([SYSTEM, *TALK]), copy.deepcopy(TOOLS)
    mark(messages, tools, "anthropic")
    assert [bool(row.get("cache_control")) for row in messages] == [True, True, True, False, True]
    assert tools == TOOLS


def test_without_a_system_prompt_the_last_tool_bears_its_mark() -> None:
    messages, tools = copy.deepcopy(TALK), copy.deepcopy(TOOLS)
    mark(messages, tools, "anthropic")
    assert tools == [TOOLS[0], {**TOOLS[1], "cache_control": dict(MARK)}]
    assert len(marked(messages, tools)) == MOST_MARKS


def test_where_openai_s_protocol_is_spoken_a_mark_stands_on_a_part() -> None:
    messages = copy.deepcopy([SYSTEM, *TALK])
    mark(messages, [], "openrouter")
    part = {"type": "text", "text": "result", "cache_control": dict(MARK)}
    assert messages[-1] == {"role": "tool", "tool_call_id": "c1", "content": [part]}
    assert not any("cache_control" in row for row in messages)


@given(st.lists(rows, max_size=8), st.booleans(), st.booleans(), st.sampled_from(["anthropic", "openrouter"]))
def test_never_too_many_never_on_nothing_and_the_content_stays(
    talk: list[dict[str, Any]], has_system: bool, has_tools: bool, provider: str
) -> None:
    messages = copy.deepcopy([SYSTEM, *talk] if has_system else talk)
    tools = copy.deepcopy(TOOLS if has_tools else [])
    mark(messages, tools, provider)
    bearing = marked(messages, tools)
    assert len(bearing) <= MOST_MARKS
    for row in bearing:
        assert row["cache_control"] == dict(MARK)
        said = row.get("text", row.get("content", "a tool"))
        assert row.get("role") == "tool" or not isinstance(said, str) or said.strip()
    assert [_said(row) for row in messages] == [_said(row) for row in ([SYSTEM, *talk] if has_system else talk)]


def _said(row: dict[str, Any]) -> list[str]:
    """The texts of a message; one text and a list of one text part are the same to a provider."""
    content = row["content"]
    return [content] if isinstance(content, str) else [part["text"] for part in content or ()]


@pytest.mark.parametrize(
    ("name", "bears"), [("openrouter/anthropic/claude-sonnet-5.5", True), ("openai/gpt-4o", False)]
)
async def test_marks_arrive_where_they_are_wanted(name: str, bears: bool) -> None:
    with Provider() as provider:
        model = ProviderModel(describe(name), ModelSettings(api_base=provider.url), lambda _: None, api_key="key")
        await model.ask(ModelRequest(copy.deepcopy([SYSTEM, *TALK]), copy.deepcopy(TOOLS), 500), lambda _: None)
        await model.close()
    (received,) = provider.requests
    assert len(marked(received["messages"], received["tools"])) == (MOST_MARKS if bears else 0)


async def test_litellm_makes_bedrock_s_cache_points_of_them() -> None:
    litellm = await warm()
    messages, tools = copy.deepcopy([SYSTEM, *TALK]), copy.deepcopy(TOOLS)
    mark(messages, tools, "bedrock")
    body = litellm.AmazonConverseConfig()._transform_request(
        model="us.anthropic.claude-sonnet-4-5-20250929-v1:0",
        messages=messages,
        optional_params={"tools": tools},
        litellm_params={},
        headers={},
    )
    blocks = [block for message in body["messages"] for block in message["content"]]
    assert sum("cachePoint" in block for block in [*body["system"], *blocks]) == MOST_MARKS


def test_the_wish_is_to_stop_behind_the_summary() -> None:
    (edit,) = context_management(120_000)["edits"]
    assert edit["trigger"] == {"type": "input_tokens", "value": 120_000}
    assert edit["pause_after_compaction"] is True
    (low,) = context_management(10)["edits"]
    assert low["trigger"]["value"] == LEAST_TRIGGER_TOKENS


def test_where_it_cannot_be_asked_for_the_reason_is_said() -> None:
    claude = describe("anthropic/claude-sonnet-5-5")
    assert compaction_refusal(claude, 100_000) == ""
    assert "50,000" in compaction_refusal(claude, 49_999)
    assert "openai/gpt-5.4" in compaction_refusal(describe("openai/gpt-5.4"), 100_000)


def test_only_a_cache_that_nca_asked_for_has_a_known_end() -> None:
    cached = Usage(900, 7, 600)
    assert cache_seconds("anthropic", "anthropic/claude-x", cached, 60) == LIFE_SECONDS - 60
    assert cache_seconds("anthropic", "anthropic/claude-x", cached, LIFE_SECONDS + 1) == 0
    assert cache_seconds("anthropic", "anthropic/claude-x", Usage(900, 7), 60) == 0
    assert cache_seconds("openai", "openai/gpt-x", cached, 60) == 0
