"""A provider's own summary in the view: pins and newest words stay, for any log."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nca.config.schema import ContextSettings
from nca.context.budget import Budget
from nca.context.history import History
from nca.context.meter import Meter
from nca.context.provider_side import ProviderSummary, adopt
from nca.context.request import BLOCKS, request_messages
from nca.context.rules.untouchable import untouchable
from nca.context.tokens import text_tokens
from nca.context.validate import validate_request
from nca.context.view import Marker, Range, Summary, Verbatim, View, check_partition, hidden_by
from nca.messages import Message
from tests.context.logs import grow, history_of, logs
from tests.context.samples import assistant, some, talk, user

MODEL = "anthropic/claude-sonnet-5-5"
BLOCK = {"type": "compaction", "content": "What was done, and what is left."}
WROTE = ProviderSummary(BLOCK, MODEL)
BUDGET = Budget.of(20_000, 4_000, 0)


def adopted(history: History) -> View:
    """The history with the provider's summary in force; its view."""
    proposal = adopt(history, Meter(provider="anthropic"), BUDGET, ContextSettings(), WROTE)
    history.view = proposal.view
    return proposal.view


def rows_for(history: History, model: str = MODEL, *, with_blocks: bool = True) -> list[dict[str, object]]:
    return request_messages(history, provider="anthropic", model=model, with_blocks=with_blocks)


def test_the_block_follows_its_text_and_the_newest_words_stay() -> None:
    history = history_of([*talk(20), user("The newest.")])
    view = adopted(history)
    (summary,) = view.items
    assert isinstance(summary, Summary)
    assert (summary.prose, summary.made_by, summary.block) == (BLOCK["content"], MODEL, BLOCK)
    rows = rows_for(history)
    assert [row["role"] for row in rows] == ["user", "assistant", "user"]
    assert rows[1] == {"role": "assistant", "content": None, BLOCKS: {"compaction_blocks": [BLOCK]}}
    assert rows[2]["content"] == "The newest."


def test_the_record_beside_it_takes_a_sixth_of_the_budget_at_most() -> None:
    history = history_of([user(f"Rule {n}: " + " ".join(f"{n}-{word}" for word in range(40))) for n in range(150)])
    summary = adopted(history).items[0]
    assert isinstance(summary, Summary)
    record_tokens = text_tokens(summary.text) - text_tokens(BLOCK["content"])
    assert 0.9 * BUDGET.budget_tokens / 6 < record_tokens <= BUDGET.budget_tokens / 6


def test_no_one_else_gets_the_block() -> None:
    history = history_of([*talk(20), user("The newest.")])
    adopted(history)
    for rows in (rows_for(history, "anthropic/other"), rows_for(history, ""), rows_for(history, with_blocks=False)):
        assert not any(BLOCKS in row for row in rows)
        assert str(rows[0]["content"]).count(BLOCK["content"]) == 1


def test_what_stands_before_the_summary_keeps_the_block_at_home() -> None:
    history = history_of([user("A rule."), assistant("Yes."), *talk(20), user("The newest.")], pins={1})
    adopted(history)
    rows = rows_for(history)
    assert rows[0]["content"] == "A rule."
    assert not any(BLOCKS in row for row in rows)


def test_a_second_one_takes_the_place_of_the_first_and_a_cleared_part_stays_cleared() -> None:
    history = history_of(talk(12))
    cleared: tuple[Range, ...] = ((1, 4),)
    history.view = View((Marker("clear4", cleared, ""),), 5)
    adopted(history)
    grow(history, (*talk(12), user("The newest.")))
    view = adopted(history)
    assert [type(item) for item in view.items] == [Marker, Summary]
    assert view.items[0] == Marker("clear4", cleared, "")
    assert len([row for row in rows_for(history) if BLOCKS in row]) == 1


def test_where_nothing_may_go_nothing_changes() -> None:
    history = history_of([user("Only this. " * 2_000)])
    proposal = adopt(history, Meter(), BUDGET, ContextSettings(), WROTE)
    assert (proposal.compacted, proposal.view) == (False, history.view)


@some
@given(logs(), st.sets(st.integers(1, 40), max_size=3))
def test_whatever_the_log_the_view_is_valid_and_nothing_locked_goes(messages: list[Message], pins: set[int]) -> None:
    history = history_of(messages, pins={seq for seq in pins if seq <= len(messages)})
    locked = untouchable(history)
    view = adopted(history)
    check_partition(view)
    assert not any(hidden_by(view, seq) for seq in locked)
    assert all(isinstance(item, Verbatim | Summary) for item in view.items)
    if messages:
        for model in (MODEL, "anthropic/other"):
            assert validate_request(rows_for(history, model), "anthropic") == []
