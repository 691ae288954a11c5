"""Turn trimming: the oldest half of the complete turns becomes one summary."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nca.config.schema import ContextSettings
from nca.context.history import complete_turns
from nca.context.plan import no_summarizer
from nca.context.record.compose import plain_record
from nca.context.record.past import Past
from nca.context.tokens import MESSAGE_TOKENS
from nca.context.validate import CHECKS, validate_request
from nca.context.view import Marker, Summary, check_partition
from nca.errors import ContextDoesNotFit
from nca.messages import Message
from tests.context.logs import grow, history_of, logs
from tests.context.samples import (
    PROSE,
    agent_turn,
    answering,
    assistant,
    call,
    calling,
    compacted,
    result,
    sent,
    talk,
    user,
)

FOUR = ContextSettings(max_turns=4)
WINDOW = 100_000


def test_the_oldest_half_becomes_a_summary_however_much_room_there_is() -> None:
    log = [Message("system", "Rules."), *talk(6, words=200), user("Now this.")]
    history = history_of(log)
    proposal = compacted(history, WINDOW, settings=FOUR, summarizer=answering())
    assert proposal.compacted
    assert proposal.stages_used == ("trim",)
    assert proposal.trimmed_text.startswith(PROSE)
    assert "Question 1" in proposal.trimmed_text
    assert proposal.made_by == "tester"
    (summary,) = (item for item in history.view.items if isinstance(item, Summary))
    assert summary.ranges == ((2, 7),)
    assert [row["content"] for row in sent(history)][2:] == [message.text for message in log[7:]]
    assert "Question 1" in summary.text
    again = compacted(history, WINDOW, settings=FOUR, summarizer=answering())
    assert not again.compacted
    assert again.trimmed_text == ""


def test_without_a_model_the_summary_is_made_by_code() -> None:
    history = history_of(talk(6))
    proposal = compacted(history, WINDOW, settings=FOUR, summarizer=no_summarizer)
    assert proposal.compacted
    assert "Answer 3" in proposal.trimmed_text
    assert "Answer 4" not in proposal.trimmed_text


@pytest.mark.parametrize(("count", "kept"), [(4, 4), (5, 3), (6, 3), (9, 3), (40, 3)])
def test_it_is_due_above_the_limit_and_halves_until_it_is_met(count: int, kept: int) -> None:
    history = history_of(talk(count))
    compacted(history, WINDOW, settings=FOUR)
    assert len(complete_turns(history.visible())) == kept


def test_a_turn_that_begins_in_a_pinned_step_stays_and_twice_is_once() -> None:
    """It was counted among those that go, so the next compaction trimmed once more."""
    step = [calling(call("a", "shell")), user("Go on meanwhile."), result("a", "done")]
    history = history_of([*step, *talk(4)], {1})
    compacted(history, WINDOW, settings=ContextSettings(max_turns=3))
    assert len(complete_turns(history.visible(), history.pins)) <= 3
    assert not compacted(history, WINDOW, settings=ContextSettings(max_turns=3)).compacted


def test_turns_smaller_than_a_summary_leave_behind_how_to_find_them() -> None:
    log = [one for number in range(1, 7) for one in (user(f"Why {number}"), assistant(f"So {number}"))]
    history = history_of(log)
    proposal = compacted(history, WINDOW, settings=FOUR, summarizer=answering())
    assert proposal.compacted
    assert "So 3" in proposal.trimmed_text
    assert ["recall expand=1-6" in item.text for item in history.view.items if isinstance(item, Marker)] == [True]
    assert "Why 1" in plain_record(history, Past.of(history).spans, 500), "they are no messages that a person cleared"
    assert [row["content"] for row in sent(history)][-6:] == [message.text for message in log[6:]]


def test_the_turn_in_progress_and_pins_stay() -> None:
    log = [*talk(3), *agent_turn(8)]
    history = history_of(log, pins={2})
    proposal = compacted(history, WINDOW, settings=ContextSettings(max_turns=1))
    assert proposal.compacted
    assert history.message(2).text in [row["content"] for row in sent(history)]
    assert [row["content"] for row in sent(history)][-16:] == [message.content for message in log[-16:]]
    pinned = history_of(talk(3), pins={1, 3, 5})
    assert not compacted(pinned, WINDOW, settings=ContextSettings(max_turns=1)).compacted


def test_summaries_merge_when_turns_are_trimmed_again() -> None:
    history = history_of(talk(6, words=200))
    compacted(history, WINDOW, settings=FOUR, summarizer=answering())
    grow(history, talk(3, words=200, start=7))
    compacted(history, WINDOW, settings=FOUR, summarizer=answering())
    (summary,) = (item for item in history.view.items if isinstance(item, Summary))
    assert summary.ranges == ((1, 12),)


def test_as_a_stage_it_halves_once_and_only_over_the_target() -> None:
    settings = ContextSettings(stages=("trim",))
    history = history_of(talk(20, words=80))
    assert not compacted(history, WINDOW, settings=settings).compacted
    proposal = compacted(history, 5_500, settings=settings, summarizer=answering())
    assert proposal.stages_used == ("trim",)
    assert "Question 1" in proposal.trimmed_text
    assert len(complete_turns(history.visible())) == 10
    few = history_of(talk(4, words=200))
    assert not compacted(few, 3_000, settings=settings, summarizer=answering(), target_tokens=500).compacted


def test_what_a_repair_adds_beside_trimmed_turns_counts_before_the_stages_run() -> None:
    settings = ContextSettings(max_turns=1, stages=("condense", "trim", "truncate"))
    for length in range(50, 100):
        rule, numbers = f"Always answer in one line{'x' * length}.", " ".join(map(str, range(350)))
        log = [
            *(Message("system", "Rules."), user(rule), assistant("Yes."), user("")),
            *(assistant("Fine."), Message("system", "A rule from the middle."), user(numbers), user("")),
            *(calling(call("a")), result("a"), Message("system", "Another rule."), assistant()),
        ]
        history = history_of(log)
        compacted(history, 1_000, settings=settings, summarizer=answering())
        assert not compacted(history, 1_000, settings=settings, summarizer=answering()).compacted, length


@given(logs(), st.integers(1, 4), st.sampled_from([1_000, 4_000, 128_000]), st.sets(st.integers(1, 12), max_size=2))
def test_whatever_the_log_it_lands_and_twice_is_once(
    messages: list[Message], limit: int, window: int, pins: set[int]
) -> None:
    settings = ContextSettings(max_turns=limit, stages=("condense", "trim", "truncate"))
    history = history_of([*messages, assistant("Done.")], pins)
    try:
        proposal = compacted(history, window, settings=settings, summarizer=answering())
    except ContextDoesNotFit:
        return
    check_partition(proposal.view)
    assert proposal.tokens_after < proposal.tokens_before or not proposal.compacted
    if proposal.compacted:
        # A turn whose message is empty costs nothing, so taking it out saves nothing.
        shown = complete_turns(history.visible(), history.pins)
        said = [seq for seq in shown if history.run_tokens(seq, seq) > MESSAGE_TOKENS]
        assert len(said) <= limit or len(shown) == limit + 1
    for provider in CHECKS:
        assert validate_request(sent(history), provider) == []
    assert not compacted(history, window, settings=settings, summarizer=answering()).compacted
