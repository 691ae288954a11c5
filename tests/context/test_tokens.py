"""The token estimator: code points, wide characters, calls, media; never base64, never reasoning."""

from __future__ import annotations

from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nca.context.tokens import (
    CONVERSATION_TOKENS,
    DOCUMENT_TOKENS,
    IMAGE_TOKENS,
    MESSAGE_TOKENS,
    SAFETY_MARGIN,
    attachment_tokens,
    message_tokens,
    multiplier,
    text_tokens,
    tools_tokens,
)
from nca.messages import AttachmentPart, MediaPart, Message, TextPart, ToolCall


def test_the_constants_of_the_spec() -> None:
    assert (MESSAGE_TOKENS, CONVERSATION_TOKENS, IMAGE_TOKENS, DOCUMENT_TOKENS) == (4, 24, 1_024, 500)
    assert SAFETY_MARGIN == 1.15


@given(st.text(alphabet=st.characters(max_codepoint=127)), st.sampled_from([3.0, 3.5, 4.0]))
def test_ascii_is_characters_by_density(text: str, density: float) -> None:
    assert text_tokens(text, density) == ceil(len(text) / density)


@given(st.text(), st.text())
def test_a_text_never_costs_more_than_its_parts_nor_less_than_either(one: str, two: str) -> None:
    both = text_tokens(one + two)
    assert max(text_tokens(one), text_tokens(two)) <= both <= text_tokens(one) + text_tokens(two)


@pytest.mark.parametrize(
    ("text", "least"), [("日本語" * 10, 30), ("🦀" * 10, 20), ("한국어", 3), ("é" * 10, 5), ("—", 1)]
)
def test_wide_characters_cost_about_a_token_or_more(text: str, least: int) -> None:
    assert text_tokens(text) == least


def test_density_by_role_prose_4_results_3_5_arguments_3() -> None:
    text = "x" * 420
    assert message_tokens(Message("user", text)) == 4 + 105
    assert message_tokens(Message("assistant", text)) == 4 + 105
    assert message_tokens(Message("tool", text, tool_call_id="a")) == 4 + 120
    called = Message("assistant", None, (ToolCall("a", "shell", text),))
    assert message_tokens(called) == 4 + 4 + 2 + 140


def test_media_are_flat_and_their_base64_is_not_text() -> None:
    image = MediaPart("image", {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 1_000_000}})
    document = MediaPart("document", {"type": "file", "file": {"file_data": "A" * 1_000_000}})
    assert message_tokens(Message("user", (image,))) == 4 + 1_024
    assert message_tokens(Message("user", (document, TextPart("abcd")))) == 4 + 500 + 1


def test_attachments_count_and_are_told_apart() -> None:
    message = Message("user", (TextPart("look"), AttachmentPart("a.txt", "x" * 350, 350)))
    assert attachment_tokens(message) == 100
    assert message_tokens(message) > 4 + 1 + 100


def test_reasoning_is_not_sent_so_not_counted() -> None:
    assert message_tokens(Message("assistant", "hi", reasoning="x" * 9_000)) == message_tokens(
        Message("assistant", "hi")
    )


def test_an_assistant_that_only_calls_costs_its_frame_and_call() -> None:
    assert message_tokens(Message("assistant")) == 4


@pytest.mark.parametrize(
    ("provider", "factor"),
    [("anthropic", 1.23), ("Anthropic", 1.23), ("google-ai", 1.18), ("mistral", 1.26), ("openai", 1.0), ("", 1.0)],
)
def test_multipliers_of_seed_2(provider: str, factor: float) -> None:
    assert multiplier(provider) == factor


def test_tool_definitions() -> None:
    tools = [{"type": "function", "function": {"name": "f", "description": "d" * 400}}]
    assert tools_tokens([]) == 0
    assert 100 < tools_tokens(tools) < 130
