"""Skipping messages that are certain to go gives the same view as looking at all."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from nca.config.schema import ContextSettings, DeduplicateSettings, PruneSettings
from nca.context.budget import Budget
from nca.context.draft import Draft, covered
from nca.context.fit import fit
from nca.context.history import History
from nca.context.meter import Meter
from nca.context.policy import target_tokens
from nca.context.settled_prefix import recent_raw, settled_stretches
from nca.context.stages.deduplicate import deduplicate, fix_pointers
from nca.context.stages.prune import prune
from nca.context.stages.truncate import truncate
from nca.context.view import Marker, View, check_partition
from nca.messages import Message
from tests.context.logs import history_of, logs
from tests.context.promises import too_large
from tests.context.samples import agent_turn, assistant, compacted, contents, some, step, talk, user

TARGET_RATIO = 0.40
SETTINGS = ContextSettings(
    stages=("prune", "deduplicate", "truncate"),
    # What is saved in messages that go anyway is no reason to clear others: here it must not decide.
    prune=PruneSettings(minimum_savings_tokens=0),
    deduplicate=DeduplicateSettings(minimum_ratio=0.0),
)


def worked(history: History, window: int, near: int) -> tuple[Draft, View, int]:
    budget, meter = Budget.of(window), Meter()
    draft = Draft(history, meter, recent_raw=near)
    target = target_tokens(budget, draft.fixed_tokens(), TARGET_RATIO)
    if draft.tokens > target:
        tokens = budget.budget_tokens
        prune(draft, SETTINGS.prune, target_tokens=target, budget_tokens=tokens)
        deduplicate(draft, SETTINGS.deduplicate, target_tokens=target)
        truncate(draft, SETTINGS.truncate, target_tokens=target, budget_tokens=tokens)
        fix_pointers(draft)
        if draft.settle() > target:
            fit(draft, SETTINGS, target, budget)
    # A marker's name follows from what the draft counted when it was put there.
    items = [msgspec.structs.replace(item, id="") if isinstance(item, Marker) else item for item in draft.view().items]
    return draft, View(tuple(items), draft.view().tail), target


turns = st.lists(
    st.one_of(
        st.builds(talk, st.integers(1, 12), st.integers(1, 60)),
        st.builds(lambda steps, words: [*agent_turn(steps, words), assistant()], st.integers(1, 9), st.integers(1, 80)),
        # One path each: a read in a far stretch supersedes none before it, which a later one that is shown would do.
        st.integers(0).map(lambda n: [*step(f"r{n}", "line " * 300, path=f"src/{n}.py"), assistant()]),
    ),
    max_size=12,
    unique_by=lambda part: str(part[0].tool_calls or id(part)),
)
windows = st.integers(1_200, 6_000)
few_pins = st.sets(st.integers(1, 60), max_size=2)


@some
@given(turns, windows, few_pins)
def test_a_log_with_a_far_stretch_lands_where_all_of_it_does(
    parts: list[list[Message]], window: int, pins: set[int]
) -> None:
    log = [user(), assistant(), *(message for part in parts for message in part), user("And now?")]
    history = history_of(log, {pin for pin in pins if pin <= len(log)})
    near = recent_raw(history, Meter(), Budget.of(window), SETTINGS, TARGET_RATIO)
    coarse, view, target = worked(history, window, near)
    fine, expected, _ = worked(history, window, 0)
    check_partition(view)
    assert coarse.tokens <= max(target, fine.tokens)
    event("the same view" if view == expected else "another view")


@pytest.mark.parametrize("count", [12, 40, 200])
@pytest.mark.parametrize("window", [1_200, 3_000, 6_000])
def test_a_far_stretch_changes_nothing_but_the_work(count: int, window: int) -> None:
    history = history_of([*talk(count), *agent_turn(4), assistant(), *talk(count, 20, start=count), user("And now?")])
    near = recent_raw(history, Meter(), Budget.of(window), SETTINGS, TARGET_RATIO)
    coarse, view, _ = worked(history, window, near)
    fine, expected, _ = worked(history, window, 0)
    assert view == expected
    assert coarse.tokens == fine.tokens


@some
@given(logs(), st.integers(2, 40), windows, few_pins)
def test_a_broken_log_with_a_far_stretch_lands_too(
    messages: list[Message], count: int, window: int, pins: set[int]
) -> None:
    log = [*talk(count), *messages, *agent_turn(6), *talk(count), user("And now?")]
    history = history_of(log, {pin for pin in pins if pin <= len(log)})
    near = recent_raw(history, Meter(), Budget.of(window), SETTINGS, TARGET_RATIO)
    coarse, view, target = worked(history, window, near)
    fine, _, _ = worked(history, window, 0)
    check_partition(view)
    assert coarse.tokens <= max(target, fine.tokens)


@some
@given(logs(), logs(), st.integers(100, 2_000), few_pins)
def test_what_repairs_change_in_a_far_stretch_goes_with_it(
    messages: list[Message], later: list[Message], near: int, pins: set[int]
) -> None:
    """A draft without it counts what the request will: nothing that stays seems cheaper than it is."""
    log = [*talk(1), *messages, *talk(1), *later, *talk(2), user("And now?")]
    draft = Draft(history_of(log, {pin for pin in pins if pin <= len(log)}), Meter(), recent_raw=near)
    settled = [block for block in draft.blocks() if block.settled_turns]
    if settled:
        draft.replace(settled, Marker("", covered(settled), ""))
        counted = draft.raw
        draft.settle()
        assert abs(draft.raw - counted) <= len(settled), "each share is rounded"


def test_stretches_leave_the_first_exchange_what_is_locked_and_the_newest() -> None:
    history = history_of([*talk(30), user("And now?")], {21})
    found = settled_stretches(history, 1, 200, {21, history.head})
    assert [stretch.first for stretch in found] == [3, 23]
    assert found[0].last == 20
    assert history.run_tokens(found[1].last + 1, history.head) > 200
    assert all(stretch.turns > 1 for stretch in found)
    assert settled_stretches(history, 1, 10**9, set()) == []


def test_a_result_that_comes_late_keeps_its_call_near() -> None:
    call, result = step("late", path="a.py")
    history = history_of([*talk(4), call, user("Wait."), result, assistant(), *talk(30), user()])
    for stretch in settled_stretches(history, 1, 300, {9}):
        assert not {9, 10, 11} & set(range(stretch.first, stretch.last + 1))


@pytest.mark.parametrize("stages", [("prune",), ("condense", "truncate"), ("trim", "summarize")])
def test_where_no_stage_hides_the_oldest_all_is_near(stages: tuple[str, ...]) -> None:
    settings = ContextSettings(stages=stages)
    assert recent_raw(history_of(talk(3)), Meter(), Budget.of(8_000), settings, 0.5) == 0


def test_a_long_log_is_compacted_with_a_summary_too() -> None:
    history = history_of([*talk(400), user("And now?")])
    proposal = compacted(history, 4_000)
    assert proposal.stages_used == ("summarize",)
    assert too_large(contents(history), proposal.tokens_after, proposal.target_tokens, proposal.budget_tokens) == ""
