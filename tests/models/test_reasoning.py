"""What a level of reasoning becomes for each provider."""

from __future__ import annotations

from typing import Any

import pytest

from nca.models.catalog import describe
from nca.models.reasoning import arguments, has_all_blocks, split_level


@pytest.mark.parametrize(
    ("provider", "name", "level", "found"),
    [
        ("openai", "openai/gpt-5.1", "high", {"reasoning_effort": "high"}),
        ("openai", "gpt-5.1", "off", {"reasoning_effort": "none"}),
        ("openai", "openai/gpt-4o", "high", {}),
        ("openai", "openai/gpt-5.1", "auto", {}),
        ("anthropic", "anthropic/claude-sonnet-4-5", "low", {"reasoning_effort": "low"}),
        ("anthropic", "anthropic/claude-sonnet-4-5", "off", {}),
        ("gemini", "gemini/gemini-2.5-pro", "off", {"reasoning_effort": "none"}),
        ("deepseek", "deepseek/deepseek-v4-pro", "low", {"extra_body": {"thinking": {"type": "enabled"}}}),
        ("zai", "zai/glm-5.3", "off", {"extra_body": {"thinking": {"type": "disabled"}}}),
        ("dashscope", "dashscope/qwen3.8-max", "high", {"extra_body": {"enable_thinking": True}}),
        ("mistral", "mistral/mistral-medium-latest", "high", {}),
        ("openrouter", "openrouter/anthropic/claude-sonnet-5.5", "high", {"reasoning_effort": "high"}),
    ],
)
def test_each_provider_gets_what_it_takes(provider: str, name: str, level: str, found: dict[str, Any]) -> None:
    told = arguments(level, provider=provider, name=name, is_own_endpoint=False, max_output_tokens=20_000)
    assert told == found


@pytest.mark.parametrize("is_own_endpoint", [False, True])
@pytest.mark.parametrize(
    "name",
    [
        "openai/gpt-5.1",
        "gpt-4o",
        "openai/gpt-of-tomorrow",
        "anthropic/claude-sonnet-4-5",
        "anthropic/claude-3-haiku-20240307",
        "gemini/gemini-2.5-pro",
        "gemini/gemini-2.0-flash",
        "deepseek/deepseek-chat",
        "mistral/mistral-medium-latest",
        "embedded/smollm2-135m",
        "openrouter/anthropic/claude-sonnet-5.5",
        "ollama_chat/qwen3:8b",
    ],
)
def test_a_model_can_reason_as_far_as_it_is_told_to(name: str, *, is_own_endpoint: bool) -> None:
    facts = describe(name, is_own_endpoint=is_own_endpoint)
    told = arguments(
        "medium", provider=facts.provider, name=name, is_own_endpoint=is_own_endpoint, max_output_tokens=20_000
    )
    assert facts.can_reason is bool(told)


def test_an_endpoint_of_ones_own_gets_the_level_as_it_is() -> None:
    own = arguments("low", provider="openai", name="openai/mine", is_own_endpoint=True, max_output_tokens=500)
    assert own == {"reasoning_effort": "low"}


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("openai/gpt-5:high", ("openai/gpt-5", "high")),
        ("ollama_chat/qwen3:8b", ("ollama_chat/qwen3:8b", "")),
        ("ollama_chat/qwen3:8b:off", ("ollama_chat/qwen3:8b", "off")),
        (":high", (":high", "")),
        ("plain", ("plain", "")),
    ],
)
def test_a_level_behind_a_name(name: str, parts: tuple[str, str]) -> None:
    assert split_level(name) == parts


def test_what_is_typed_behind_results_belongs_to_their_turn() -> None:
    signed = {"role": "assistant", "tool_calls": [{}], "thinking_blocks": [{}]}
    bare = {"role": "assistant", "tool_calls": [{}]}
    user, tool = {"role": "user"}, {"role": "tool"}
    assert has_all_blocks([user, signed, tool, user])
    assert not has_all_blocks([user, bare, tool, user])
    assert not has_all_blocks([user, bare, tool, signed, tool])
    assert has_all_blocks([user, bare, tool, {"role": "assistant"}, user, signed, tool])
    assert has_all_blocks([])
