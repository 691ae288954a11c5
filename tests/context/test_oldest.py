"""Messages that cannot stay are passed over, and the view is the one that a look at every message gives."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.material import coding_session
from nca.config.extensions import STAGES
from nca.config.schema import ContextSettings, DeduplicateSettings, PruneSettings, TruncateSettings
from nca.context.budget import Budget
from nca.context.driver import run
from nca.context.history import History
from nca.context.meter import Meter
from nca.context.oldest import without_oldest
from nca.context.plan import Planning, Proposal, compact, no_summarizer
from nca.context.view import PASSED, Marker, Stub, View, check_partition
from nca.errors import ContextDoesNotFit
from nca.messages import Message
from nca.wire import messages_from_list
from tests.context.logs import history_of, logs
from tests.context.samples import agent_turn, assistant, some, step, talk, user

SHORTENING = ("prune", "deduplicate", "truncate")
LOOKS_AT_ALL = "nothing"
"""A stage that does nothing. A foreign stage may look at any message, so beside one none is passed over."""


def nothing(_: Planning) -> Iterator[Any]:
    return iter(())


def planned(history: History, window: int, stages: tuple[str, ...], fraction: float) -> Proposal | None:
    """None if it is refused."""
    settings = ContextSettings(
        stages=stages,
        # Savings in messages that go anyway are no reason to clear others: here they must not decide.
        prune=PruneSettings(minimum_savings_tokens=0),
        deduplicate=DeduplicateSettings(minimum_ratio=0.0),
        truncate=TruncateSettings(fraction=fraction),
    )
    more = {LOOKS_AT_ALL: nothing}
    planning = compact(history, Meter(), Budget.of(window), settings, has_summarizer=False, more_stages=more)  # type: ignore[arg-type]
    try:
        return run(planning, no_summarizer)
    except ContextDoesNotFit:
        return None


def shown(view: View) -> View:
    """Without the names of markers, which follow from the draft's count when they were put there."""
    items = (msgspec.structs.replace(item, id="") if isinstance(item, Marker) else item for item in view.items)
    return msgspec.structs.replace(view, items=tuple(items))


def assert_same(history: History, window: int, stages: tuple[str, ...], fraction: float = 0.5) -> None:
    found, expected = (planned(history, window, some, fraction) for some in (stages, (*stages, LOOKS_AT_ALL)))
    assert (found is None) == (expected is None)
    if found is None or expected is None:
        return
    assert shown(found.view) == shown(expected.view)
    assert found.tokens_after == expected.tokens_after
    assert all(item.id != PASSED for item in found.view.items if isinstance(item, Marker))


whole_turns = (
    st.builds(talk, st.integers(1, 12), st.integers(1, 60)),
    st.builds(lambda steps, words: [*agent_turn(steps, words), assistant()], st.integers(1, 9), st.integers(1, 80)),
    st.integers(0, 5).map(lambda n: [user(), *step(f"r{n}", "line " * 300, path=f"src/{n}.py"), assistant()]),
)
windows = st.integers(1_200, 6_000)
few_pins = st.sets(st.integers(1, 60), max_size=2)
stage_sets = st.sampled_from([SHORTENING, SHORTENING[:2], ("truncate",), STAGES])


def log_of(parts: list[list[Message]], steps: int, pins: set[int]) -> History:
    log = [user(), assistant(), *(message for part in parts for message in part), *agent_turn(steps)]
    return history_of(log, {pin for pin in pins if pin <= len(log)})


@some
@given(
    st.lists(st.one_of(*whole_turns), max_size=12),
    st.integers(1, 60),
    windows,
    few_pins,
    stage_sets,
    st.sampled_from([0.2, 0.5, 1.0]),
)
def test_what_is_passed_over_changes_no_view(
    parts: list[list[Message]], steps: int, window: int, pins: set[int], stages: tuple[str, ...], fraction: float
) -> None:
    assert_same(log_of(parts, steps, pins), window, stages, fraction)


@some
@given(st.lists(st.one_of(*whole_turns, logs(2)), max_size=12), st.integers(1, 60), windows, few_pins, stage_sets)
def test_of_a_broken_log_as_much_fits(
    parts: list[list[Message]], steps: int, window: int, pins: set[int], stages: tuple[str, ...]
) -> None:
    """Repairs among messages that go are not counted beside those that stay."""
    history = log_of(parts, steps, pins)
    found, expected = (planned(history, window, some, 0.5) for some in (stages, (*stages, LOOKS_AT_ALL)))
    assert (found is None) == (expected is None)
    if found is not None and expected is not None:
        check_partition(found.view)
        assert found.tokens_after <= max(found.target_tokens, expected.tokens_after)


@pytest.mark.parametrize("stages", [SHORTENING, SHORTENING[:2], STAGES])
@pytest.mark.parametrize("window", [8_000, 32_000])
def test_a_long_session_has_the_same_view(window: int, stages: tuple[str, ...]) -> None:
    assert_same(history_of(messages_from_list(coding_session(1_000))), window, stages)


def test_a_draft_begins_with_little_more_than_can_stay() -> None:
    for log in (talk(5_000), agent_turn(5_000), [*talk(2_500), *agent_turn(2_500)]):
        history = history_of(log)
        start, turns = without_oldest(history, 2_000)
        assert sum(1 for _ in start.visible()) < 400
        assert turns == sum(m.role == "user" for m in log) - sum(e.message.role == "user" for e in start.visible())
    assert without_oldest(history_of(talk(20)), 20_000)[1] == 0


def test_where_messages_go_in_any_case_no_saving_is_too_small() -> None:
    """The results of the first exchange too, however few results there are after it."""
    log = [*agent_turn(3, 200), assistant(), *talk(120), *step("one", "line " * 60), assistant(), *talk(4), user()]
    history = history_of(log)
    settings = ContextSettings(stages=SHORTENING)
    planning = compact(history, Meter(), Budget.of(8_000), settings, has_summarizer=False)
    view = run(planning, no_summarizer).view
    assert [item.seq for item in view.items if isinstance(item, Stub)] == [3, 5, 7]
