"""Thinking and blocks in Claude's answers, from litellm's deltas."""

from __future__ import annotations

from nca.messages import Usage
from nca.models.claude import ClaudeBlocks, samplings


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
    blocks.add({"provider_specific_fields": {"compaction_delta": {"type": "compaction_delta", "content": "All."}}})
    assert blocks.summary == {"type": "compaction", "content": "All."}


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
