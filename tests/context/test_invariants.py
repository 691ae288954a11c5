"""Invariants of the engine on random logs."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from nca.config.extensions import STAGES
from nca.config.schema import ContextSettings
from nca.context.budget import Budget
from nca.context.driver import run
from nca.context.history import History
from nca.context.meter import Meter
from nca.context.plan import Proposal, compact, no_summarizer
from nca.context.request import request_messages
from nca.context.rules.untouchable import untouchable
from nca.context.summary import SummaryFailure, SummaryReply, SummaryRequest
from nca.context.validate import CHECKS, validate_request
from nca.context.view import check_partition
from nca.errors import ContextDoesNotFit
from nca.messages import Message
from tests.context.effort import patient, trying
from tests.context.logs import history_of, logs

windows = st.sampled_from([600, 1_000, 2_000, 4_000, 8_000, 128_000])
stage_sets = st.one_of(
    st.just(STAGES), st.sampled_from([(stage,) for stage in STAGES]), st.permutations(STAGES).map(tuple)
)


Answering = Callable[[SummaryRequest], SummaryReply | SummaryFailure]


def summarizers(kind: str) -> Answering:
    """Summarizers that behave in the ways that real ones do."""

    def answer(request: SummaryRequest) -> SummaryReply | SummaryFailure:
        answers: dict[str, SummaryReply | SummaryFailure] = {
            "good": SummaryReply("### 1. Goal and intent\nTo test the engine, with care and in full.", "m"),
            "empty": SummaryReply(""),
            "white": SummaryReply(" \n\t "),
            "refusal": SummaryReply("I'm sorry, I can't help with that."),
            "call": SummaryReply("", has_tool_calls=True),
            "echo": SummaryReply(request.messages[0].text),
            "long": SummaryReply("blah " * 20_000),
            "fails": SummaryFailure("rate limit"),
            "none": SummaryFailure("no summarizer", is_final=True),
        }
        return answers[kind]

    return answer


kinds = st.sampled_from(["good", "empty", "white", "refusal", "call", "echo", "long", "fails", "none"])


def planned(
    messages: list[Message], window: int, stages: tuple[str, ...], kind: str, pins: set[int]
) -> tuple[History, Proposal | None, Meter, Budget]:
    """A compaction; the proposal is None where what may not be touched does not fit."""
    history = history_of(messages, pins)
    meter, budget = Meter(), Budget.of(window)
    planning = compact(history, meter, budget, ContextSettings(stages=stages))
    refused: list[ContextDoesNotFit] = []
    try:
        proposal = run(planning, summarizers(kind))
    except ContextDoesNotFit as error:
        refused.append(error)
    if refused:
        assert refused[0].used_tokens > refused[0].budget_tokens
        return history, None, meter, budget
    return history, proposal, meter, budget


@patient
@trying(0.4)
@given(logs(), windows, stage_sets, kinds, st.sets(st.integers(1, 12), max_size=2))
def test_compaction_lands_stays_valid_and_settles(
    messages: list[Message], window: int, stages: tuple[str, ...], kind: str, pins: set[int]
) -> None:
    before = msgspec.json.encode(messages)
    history, proposal, meter, budget = planned(messages, window, stages, kind, pins)
    assert msgspec.json.encode(messages) == before
    if proposal is None:
        return
    check_partition(proposal.view)
    assert proposal.tokens_after <= max(budget.budget_tokens, proposal.target_tokens)
    if proposal.compacted:
        assert proposal.tokens_after < proposal.tokens_before
    else:
        assert proposal.view == history.view
    history.view = proposal.view
    assert meter.used(history) == proposal.tokens_after
    again = run(
        compact(history, meter, budget, ContextSettings(stages=stages)),
        summarizers(kind),
    )
    assert not again.compacted
    request = request_messages(history)
    for provider in CHECKS:
        assert validate_request(request, provider) == []


@patient
@trying(0.25)
@given(logs(), windows, kinds)
def test_system_first_and_newest_user_whole(messages: list[Message], window: int, kind: str) -> None:
    history, proposal, meter, budget = planned(messages, window, STAGES, kind, set())
    if proposal is None:
        return
    request = request_messages(history, view=proposal.view)
    system = [message.content for message in messages if message.role == "system"]
    assert [row["content"] for row in request[: len(system)]] == system
    newest = history.newest_user
    if newest is None:
        return
    message = messages[newest - 1]
    # An open call must stay too; in a log that is broken it may be a large one in the midst of it.
    staying = meter.scaled(sum(history.run_tokens(seq, seq) for seq in untouchable(history)))
    if isinstance(message.content, str) and message.content.strip() and staying < budget.budget_tokens // 2:
        assert message.content in [row["content"] for row in request if row["role"] == "user"]


@patient
@trying(0.2)
@given(logs())
def test_a_request_grows_only_at_its_end(messages: list[Message]) -> None:
    """Invariant 14: with the same view, each request is a prefix of the next (at the points where one is sent)."""
    whole = [message for message in messages if message.role != "system"]
    history = history_of(whole)
    longer = history_of([*whole, Message("assistant", "Yes."), Message("user", "And now?")])
    first, second = request_messages(history), request_messages(longer)
    if first[-1]["role"] in ("user", "tool") and whole[-1].role in ("user", "tool"):
        assert msgspec.json.encode(second[: len(first)]) == msgspec.json.encode(first)


@patient
@trying(0.15)
@given(logs())
def test_the_deterministic_path_is_deterministic(messages: list[Message]) -> None:
    once = planned(messages, 1_000, STAGES, "none", set())[1]
    assert once == planned(messages, 1_000, STAGES, "none", set())[1]


def test_no_summarizer_is_final() -> None:
    assert no_summarizer(SummaryRequest("", (), (), 1)).is_final
