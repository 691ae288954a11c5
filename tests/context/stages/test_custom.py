"""Stages of other packages: their changes apply if they are valid, and never break a request."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nca.compat.strategies import Composite, SlidingWindow, Summarization, ToolResultClearing
from nca.context.draft import Draft
from nca.context.meter import Meter
from nca.context.stages.custom import Strategy, act, consult
from nca.context.validate import CHECKS, validate_request
from nca.context.view import Marker, Stub, Summary, Verbatim, check_partition
from nca.errors import ConfigError, ContextDoesNotFit
from nca.messages import Message
from tests.context.logs import history_of, logs
from tests.context.samples import assistant, compacted, contents, draft_of, sent, step, talk, user

Rows = list[dict[str, Any]]
PROSE = "They talked about many things and decided to go on with the plan as it stands."


class Stage:
    """A stage made of a function."""

    def __init__(self, compact: Callable[[Rows], Any], *, wants: bool = True) -> None:
        self._compact = compact
        self.wants = wants
        self.told: list[int] = []

    def should_compact(self, messages: Sequence[Mapping[str, Any]], token_count: int) -> bool:
        self.told.append(token_count)
        return self.wants

    def compact(self, messages: Sequence[Mapping[str, Any]]) -> Rows:
        answer: Rows = self._compact([dict(row) for row in messages])
        return answer

    def token_estimate(self, messages: Sequence[Mapping[str, Any]]) -> int:
        return 0


def acted(draft: Draft, load: Callable[[str], Any], name: str = "mine") -> str:
    """Drive `act` with the stage that `load` gives."""
    acting = act(draft, name)
    try:
        acting.send(consult(next(acting), load))
    except StopIteration as done:
        told: str = done.value
        return told
    raise AssertionError("it asked twice")


def run(draft: Draft, compact: Callable[[Rows], Any]) -> str:
    return acted(draft, lambda _: Stage(compact))


def shown(draft: Draft) -> list[Any]:
    draft.history.view = draft.view()
    return contents(draft.history)


def is_unchanged(draft: Draft) -> bool:
    return draft.view() == draft.history.view


def test_messages_that_are_gone_leave_behind_an_empty_marker() -> None:
    draft = draft_of([*talk(5), user("Now.")])
    assert run(draft, lambda rows: rows[4:]) == ""
    (marker, kept) = draft.view().items[0], draft.view().tail
    assert isinstance(marker, Marker)
    assert (marker.ranges, marker.text, kept) == (((1, 4),), "", 5)
    assert len(shown(draft)) == 7


def test_a_text_in_their_place_stands_for_them() -> None:
    draft = draft_of([Message("system", "Rules."), *talk(5), user("Now.")])
    run(draft, lambda rows: [rows[0], {"role": "user", "content": PROSE}, *rows[5:]])
    summary = draft.view().items[1]
    assert isinstance(summary, Summary)
    assert (summary.ranges, summary.text, summary.prose, summary.made_by) == (((2, 5),), PROSE, PROSE, "mine")
    assert shown(draft)[:3] == ["Rules.", PROSE, draft.history.message(6).content]


def test_changed_contents_become_stubs() -> None:
    log = [user("Look."), *step("a", "found " * 90), *step("b", "found " * 90), assistant("word " * 90), user("Now.")]
    draft = draft_of(log)

    def shorten(rows: Rows) -> Rows:
        return [{**row, "content": row["content"][:20]} if row["content"] else row for row in rows]

    assert run(draft, shorten) == ""
    stubs = [item for item in draft.view().items if isinstance(item, Stub)]
    assert [(stub.seq, stub.stage) for stub in stubs] == [(3, "mine"), (5, "mine"), (6, "mine")]
    assert stubs[0].text == ("found " * 90)[:20]
    assert shown(draft)[-1] == "Now."


def test_clearing_and_dropping_at_once() -> None:
    log = [*talk(3), *step("a", "found " * 90), *step("b", "found " * 90), user("Now.")]
    draft = draft_of(log)

    def both(rows: Rows) -> Rows:
        return [{**row, "content": "(short)"} if row["role"] == "tool" else row for row in rows[2:]]

    run(draft, both)
    assert [type(item) for item in draft.view().items] == [Marker, Verbatim, Stub, Verbatim, Stub]
    check_partition(draft.view())


@pytest.mark.parametrize(
    "compact",
    [
        lambda rows: rows,
        lambda rows: [{**row, "content": f"{row['content']} and more"} for row in rows],
        lambda rows: [*rows, *rows],
        lambda rows: [*rows[::-1]],
        lambda rows: [*rows, {"role": "user", "content": "Something new"}],
        lambda rows: [{"role": "assistant", "content": "I was never said"}, *rows[2:]],
        lambda rows: [rows[0], {"role": "user", "content": "In between"}, *rows[1:]],
        lambda rows: [{"role": "robot", "content": "x"}],
        lambda rows: [],
        lambda rows: None,
        lambda rows: "Summary",
        lambda rows: [5],
        lambda rows: rows[10],
    ],
)
def test_what_cannot_be_understood_changes_nothing(compact: Callable[[Rows], Any]) -> None:
    draft = draft_of([Message("system", "Rules."), user("Now.")])
    before = draft.raw
    run(draft, compact)
    assert is_unchanged(draft)
    assert draft.raw == before


def test_why_it_did_nothing_is_told() -> None:
    draft = draft_of(talk(3))
    assert "returned something that is not a message: message 1: role 'robot'" in run(
        draft, lambda _: [{"role": "robot"}]
    )
    assert run(draft, lambda rows: rows[99]) == "the stage mine raised IndexError: list index out of range"
    assert run(draft, lambda _: None) == "the stage mine gave no list of messages"
    new = {"role": "user", "content": "New"}
    assert (
        run(draft, lambda rows: [*rows, new]) == "the stage mine gave messages that are not those of the conversation"
    )

    def load(name: str) -> Strategy:
        raise ConfigError(f"no stage {name}")

    assert acted(draft, load) == "no stage mine"
    assert is_unchanged(draft)


def test_a_stage_that_does_not_want_to_is_left_alone() -> None:
    draft = draft_of(talk(3))
    stage = Stage(lambda rows: rows[2:], wants=False)
    assert acted(draft, lambda _: stage) == ""
    assert stage.told == [draft.tokens]
    assert is_unchanged(draft)


def test_what_is_untouchable_stays() -> None:
    log = [Message("system", "Rules. " * 20), *talk(2), user("The task. " * 20), *step("a", "found " * 90)[:1]]
    draft = Draft(history_of(log, {3}), Meter())
    run(draft, lambda rows: rows[-1:])
    assert [item.ranges for item in draft.view().items if isinstance(item, Marker)] == [((2, 2),), ((4, 5),)]
    draft = Draft(history_of(log, {3}), Meter())
    run(draft, lambda rows: [{**row, "content": "x"} for row in rows])
    assert [item.seq for item in draft.view().items if isinstance(item, Stub)] == [2, 4, 5]


def test_half_a_pair_is_not_dropped() -> None:
    log = [*talk(2), *step("a", "found " * 90), assistant(), user("Now.")]
    draft = draft_of(log)
    run(draft, lambda rows: [row for row in rows if row["role"] != "tool"])
    assert is_unchanged(draft)


def test_summaries_and_markers_of_before_may_be_absorbed() -> None:
    history = history_of([*talk(9), user("Now.")])
    for prose, keep in ((PROSE, 15), (f"Again. {PROSE}", 11)):
        draft = Draft(history, Meter())
        strategy = Summarization(lambda _, prose=prose: prose, keep, 0)  # type: ignore[misc]
        acted(draft, lambda _, strategy=strategy: strategy)  # type: ignore[misc]
        history.view = draft.view()
    assert [item.ranges for item in history.view.items if isinstance(item, Summary)] == [((1, 8),)]
    assert contents(history)[0] == f"[Summary of earlier conversation]\nAgain. {PROSE}"


def test_an_answer_may_repeat_what_was_said_before() -> None:
    draft = draft_of([user("Go on."), assistant("Done. " * 9), user("Go on."), assistant("Done. " * 9), user("Go on.")])
    run(draft, lambda rows: rows[2:])
    assert [item.ranges for item in draft.view().items if isinstance(item, Marker)] == [((1, 2),)]


def test_the_parts_of_a_message_survive() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:,x"}}
    rows = [{"role": "user", "content": [{"type": "text", "text": "See"}, image]}]
    from nca.wire import messages_from_list

    draft = draft_of([*messages_from_list(rows), *talk(3)])
    run(draft, lambda given: [given[0], *given[3:]])
    assert shown(draft)[0] == rows[0]["content"]


OWN = [
    SlidingWindow(2, 0),
    ToolResultClearing(1, 0),
    Summarization(lambda _: PROSE, 3, 0),
    Composite([ToolResultClearing(0, 0), SlidingWindow(4, 0)], 10),
    Stage(lambda rows: rows[::2]),
    Stage(lambda rows: [{**row, "content": "short"} for row in rows]),
    Stage(lambda rows: [{"role": "system", "content": "S"}, *rows[3:]]),
    Stage(lambda rows: [row for row in rows if row["role"] != "tool"]),
    Stage(lambda rows: rows[len(rows) // 2 :]),
]


@given(logs(), st.sampled_from(OWN), st.sampled_from(OWN))
def test_no_stage_breaks_a_request(messages: list[Message], one: Any, two: Any) -> None:
    history = history_of(messages)
    before = msgspec.json.encode(messages)
    for stage in (one, two):
        draft = Draft(history, Meter())
        raw, system = draft.raw, [entry.message for entry in history.entries if entry.message.role == "system"]
        acted(draft, lambda _, stage=stage: stage)  # type: ignore[misc]
        assert draft.raw <= raw
        check_partition(draft.view())
        history.view = draft.view()
        rows = sent(history)
        assert [row["content"] for row in rows if row["role"] == "system" and row["content"] != "S"] == [
            message.content for message in system
        ]
        for provider in CHECKS:
            assert not validate_request(rows, provider)
    assert msgspec.json.encode(messages) == before


@given(logs(), st.sampled_from(OWN), st.sampled_from([500, 2_000]))
def test_behind_it_the_other_stages_land(messages: list[Message], stage: Any, window: int) -> None:
    history, meter = history_of(messages), Meter()
    try:
        proposal = compacted(history, window, stages=["mine", "truncate"], meter=meter, load_stage=lambda _: stage)
    except ContextDoesNotFit:
        return
    assert meter.used(history) <= proposal.budget_tokens
    assert proposal.compacted == (proposal.tokens_after < proposal.tokens_before)
    assert set(proposal.stages_used) <= {"mine", "truncate"}
    assert not any(validate_request(sent(history), provider) for provider in CHECKS)


def test_what_it_saved_and_why_it_did_not_is_told() -> None:
    stage = Stage(lambda rows: rows[10:])
    history = history_of([*talk(40), user("Now.")])
    proposal = compacted(history, 4_000, stages=["mine", "truncate"], load_stage=lambda _: stage)
    assert proposal.stages_used == ("mine", "truncate")
    assert proposal.saved_by_stage["mine"] > 0
    broken = Stage(lambda rows: rows[999])
    proposal = compacted(history_of(talk(40)), 4_000, stages=["mine", "truncate"], load_stage=lambda _: broken)
    assert proposal.stages_used == ("truncate",)
    assert proposal.stage_failures == ("the stage mine raised IndexError: list index out of range",)
    assert proposal.notices == ("Not used: the stage mine raised IndexError: list index out of range.",)
