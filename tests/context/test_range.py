"""A person chooses messages to summarize: their own words stay, or nothing changes."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nca.config.schema import ContextSettings
from nca.context.budget import Budget
from nca.context.driver import run
from nca.context.history import History
from nca.context.meter import Meter
from nca.context.plan import Proposal, compact, no_summarizer
from nca.context.view import Range, Summary, seqs
from nca.messages import Entry, Message
from tests.context.generated_sessions import session
from tests.context.laws import beginnings, squeezed


def compacted(messages: list[Message], only: Range) -> tuple[Proposal, str]:
    """The plan, and its records on one line."""
    history = History()
    for seq, message in enumerate(messages, 1):
        history.append(Entry(seq, message))
    planning = compact(history, Meter(), Budget.of(16_000), ContextSettings(), has_summarizer=False, only=only)
    proposal = run(planning, no_summarizer)
    return proposal, squeezed("\n".join(item.text for item in proposal.view.items if isinstance(item, Summary)))


@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(seed=st.integers(0, 2**32), first=st.integers(1, 30), count=st.integers(0, 30))
def test_the_words_in_a_chosen_range_stay(seed: int, first: int, count: int) -> None:
    made = session(seed)
    messages = list(made.messages[: first + count])
    proposal, records = compacted(messages, (first, first + count))
    hidden = [seq for item in proposal.view.items if isinstance(item, Summary) for seq in seqs(item.ranges)]
    if messages[-1].role != "assistant" or messages[-1].tool_calls:
        asked = [seq for seq, one in enumerate(messages, 1) if one.role == "user" and not one.is_synthetic]
        assert not asked or asked[-1] not in hidden, "it waits for its answer"
    typed = {said.message for said in made.said if said.by == "typed"}
    for seq in typed.intersection(hidden):
        assert any(begun in records for begun in beginnings(messages[seq - 1])), seq
    assert proposal.tokens_after < proposal.tokens_before or not proposal.compacted


@pytest.mark.parametrize("only", [(3, 6), (1, 4), (1, 6)])
def test_a_few_short_messages_stay_as_they_are(only: Range) -> None:
    said = ["rule one: use tabs", "Noted.", "rule two: no Decimal", "Yes.", "thanks", "You are welcome."]
    messages = [Message("assistant" if place % 2 else "user", text) for place, text in enumerate(said)]
    proposal, _ = compacted(messages, only)
    assert not proposal.compacted
