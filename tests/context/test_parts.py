"""The parts of the measured tokens always add up to the total."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nca.config.schema import ContextSettings
from nca.context.budget import Budget
from nca.context.driver import run
from nca.context.meter import Meter
from nca.context.parts import KINDS, LABELS, LogParts, message_parts, parts_of, split, view_parts
from nca.context.plan import compact, no_summarizer
from nca.context.tokens import message_tokens
from nca.errors import ContextDoesNotFit
from nca.messages import AttachmentPart, MediaPart, Message, TextPart, ToolCall
from tests.context.logs import history_of, logs
from tests.context.samples import agent_turn, talk

BUDGET = Budget.of(12_000)


@given(logs(), st.integers(0, 9))
@settings(max_examples=60, deadline=None)
def test_the_parts_of_a_view_sum_to_its_tokens_before_and_after_a_compaction(
    messages: list[Message], call_raw: int
) -> None:
    history = history_of(messages)
    history.call_raw = call_raw
    for message in messages:
        assert sum(message_parts(message).values()) == message_tokens(message)
    meter = Meter(system_prompt="You help.", tools=[{"name": "x"}])
    for _ in range(2):
        assert sum(view_parts(history).values()) == history.view_tokens
        measured = meter.measure(history, BUDGET)
        parts = parts_of(
            measured.breakdown, {"system_prompt": 3, "instructions": 4, "mcp_tools": 5}, view_parts(history)
        )
        assert tuple(parts) == KINDS
        assert min(parts.values()) >= 0
        assert sum(parts.values()) == measured.used_tokens
        try:
            history.view = run(compact(history, meter, BUDGET, ContextSettings(), is_manual=True), no_summarizer).view
        except ContextDoesNotFit:
            return


@given(logs())
@settings(max_examples=40, deadline=None)
def test_running_counts_tell_of_any_end_what_a_look_at_it_would(messages: list[Message]) -> None:
    history = history_of(messages)
    counts = LogParts(history)
    for end in range(history.head + 1):
        shorter = history_of(messages[:end])
        assert +counts.shown(0, shorter.view, end) == +view_parts(shorter)


@given(st.integers(0, 10**7), st.dictionaries(st.text(max_size=2), st.integers(0, 10**6), min_size=1, max_size=8))
def test_shares_add_up_and_are_in_proportion(total: int, weights: dict[str, int]) -> None:
    shares = split(total, weights)
    assert sum(shares.values()) == total
    whole = sum(weights.values())
    if whole:
        assert all(abs(shares[name] - total * weights[name] / whole) < 1 for name in weights)


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        (Message("user", "word " * 40), "conversation"),
        (Message("assistant", "word " * 40), "conversation"),
        (Message("assistant", None, (ToolCall("c", "write_file", "x" * 400),)), "tool_calls"),
        (Message("tool", "word " * 40, tool_call_id="c"), "tool_results"),
        (Message("tool", (TextPart("seen"), MediaPart("image", {})), tool_call_id="c"), "tool_results"),
        (Message("user", (TextPart("see"), AttachmentPart("a.md", "word " * 80, 400))), "attachments"),
        (Message("user", (TextPart("see"), MediaPart("image", {}))), "attachments"),
    ],
)
def test_each_message_weighs_as_what_it_mostly_is(message: Message, kind: str) -> None:
    assert message_parts(message).most_common(1)[0][0] == kind


def test_a_summary_is_prose_and_a_ledger() -> None:
    history = history_of(talk(12) + agent_turn(3))
    proposal = run(compact(history, Meter(), Budget.of(3_000), ContextSettings(), is_manual=True), no_summarizer)
    history.view = proposal.view
    parts = view_parts(history)
    assert parts["summaries"] > 0
    assert parts["record"] > 0
    assert set(LABELS) == set(KINDS)


def test_before_anything_was_said_nothing_counts_as_conversation() -> None:
    """What a request takes beside its texts stood as 28 tokens of a conversation of 0 messages."""
    breakdown = {"system_prompt": 100, "tool_definitions": 50, "conversation": 28, "current_input": 0, "attachments": 0}
    fixed = {"system_prompt": 90, "instructions": 30, "tool_definitions": 50}
    parts = parts_of(breakdown, fixed, {})
    assert parts["conversation"] == 0
    assert sum(parts.values()) == sum(breakdown.values())
    assert parts_of(breakdown, fixed, {"conversation": 20})["conversation"] == 28
