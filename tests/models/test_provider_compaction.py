"""Requests for compaction by the provider, and models that cannot do it."""

from __future__ import annotations

from nca.models.catalog import describe
from nca.models.provider_compaction import LEAST_TRIGGER_TOKENS, context_management, refusal


def test_the_wish_is_to_stop_behind_the_summary() -> None:
    (edit,) = context_management(120_000)["edits"]
    assert edit["trigger"] == {"type": "input_tokens", "value": 120_000}
    assert edit["pause_after_compaction"] is True
    (low,) = context_management(10)["edits"]
    assert low["trigger"]["value"] == LEAST_TRIGGER_TOKENS


def test_where_it_cannot_be_asked_for_the_reason_is_said() -> None:
    claude = describe("anthropic/claude-sonnet-5-5")
    assert refusal(claude, 100_000) == ""
    assert "50,000" in refusal(claude, 49_999)
    assert "openai/gpt-5.4" in refusal(describe("openai/gpt-5.4"), 100_000)
