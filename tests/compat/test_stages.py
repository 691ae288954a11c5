"""CowAgent's condense stage: question and answer of finished turns stay, the steps between them go."""

from __future__ import annotations

import pytest
from hypothesis import given

from nca.compat.stages import condense
from nca.config.schema import ContextSettings
from nca.context.history import History
from nca.context.validate import CHECKS, validate_request
from nca.context.view import Marker, check_partition
from nca.messages import Message
from tests.context.logs import history_of, logs
from tests.context.samples import agent_turn, assistant, calling, compacted, draft_of, sent, step, talk, user
from tests.context.samples import call as a_call

ONLY = ContextSettings(stages=("condense",))


def condensed(messages: list[Message], pins: set[int] | None = None) -> History:
    draft = draft_of(messages, pins)
    condense(draft, "c")
    draft.history.view = draft.view()
    return draft.history


def texts(history: History) -> list[object]:
    return [row["content"] for row in sent(history)]


def test_each_finished_turn_keeps_its_question_and_its_answer() -> None:
    log = [*agent_turn(3), assistant("First."), *agent_turn(2, name="two"), assistant("Second."), user("Third?")]
    history = condensed(log)
    assert texts(history) == ["Do turn.", "First.", "Do two.", "Second.", "Third?"]
    (marker,) = (item for item in history.view.items if isinstance(item, Marker))
    assert (marker.text, marker.ranges) == ("", ((2, 7), (10, 13)))


def test_what_is_said_between_the_steps_goes_with_them() -> None:
    log = [user("Q"), calling(a_call("a"), text="Let me look."), *step("b"), assistant("It is so."), user("Next")]
    history = condensed([log[0], log[1], Message("tool", "out", tool_call_id="a"), *log[2:]])
    assert texts(history) == ["Q", "It is so.", "Next"]


def test_a_turn_that_never_came_to_an_answer_keeps_its_last_step() -> None:
    history = condensed([*agent_turn(3), user("Never mind.")])
    assert [row["role"] for row in sent(history)] == ["user", "assistant", "tool", "assistant", "user"]


@pytest.mark.parametrize(("count", "acts"), [(4, True), (5, False)])
def test_it_acts_on_fewer_than_five_turns(count: int, acts: bool) -> None:
    log = [message for n in range(count) for message in (*agent_turn(2, name=f"n{n}"), assistant())]
    assert (len(texts(condensed(log))) < len(log)) == acts


def test_the_turn_in_progress_pins_and_plain_talk_stay() -> None:
    running = agent_turn(4)
    assert texts(condensed(running)) == texts(history_of(running))
    assert texts(condensed(talk(3))) == texts(history_of(talk(3)))
    history = condensed([*agent_turn(2), assistant(), user()], pins={3})
    assert [row["role"] for row in sent(history)] == ["user", "assistant", "tool", "assistant", "user"]


def test_in_a_compaction_it_is_a_stage_like_the_others() -> None:
    history = history_of([*agent_turn(40, 60), assistant("Done."), user("Next")])
    before = list(history.entries)
    proposal = compacted(history, 8_000, settings=ONLY)
    assert proposal.stages_used == ("condense",)
    assert texts(history) == ["Do turn.", "Done.", "Next"]
    assert history.entries == before
    assert not compacted(history, 8_000, settings=ONLY).compacted


@given(logs())
def test_whatever_the_log_the_request_stays_valid_and_settles(messages: list[Message]) -> None:
    history = condensed(messages)
    check_partition(history.view)
    for provider in CHECKS:
        assert validate_request(sent(history), provider) == []
    once = history.view
    assert condensed_again(history) == once


def condensed_again(history: History) -> object:
    from nca.context.draft import Draft
    from nca.context.meter import Meter

    draft = Draft(history, Meter())
    condense(draft, "c")
    return draft.view()
