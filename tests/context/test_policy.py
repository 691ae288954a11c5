"""When what is due: both sides of every boundary."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nca.config.schema import ContextSettings
from nca.context.budget import Budget, Measurement
from nca.context.policy import (
    FRESH,
    Action,
    Decision,
    Moment,
    PolicyState,
    Thresholds,
    aim_ratio,
    decide,
    has_too_many_turns,
    is_due,
    is_made_for_less,
    is_worth_it,
    rungs_ahead,
    target_ratio,
    target_tokens,
    thresholds,
)
from tests.context.logs import history_of
from tests.context.samples import talk

BUDGET = Budget(20_000, 10_000, 10_000)
AUTO = ContextSettings()


def usual(**more: Any) -> ContextSettings:
    """The settings as they are in a usual window, in whatever window."""
    return ContextSettings(**{"compact_threshold": 0.80, "target_ratio": 0.40, **more})


DEFAULTS = usual()
windows = st.integers(1, 3_000_000)


def at(used: int) -> Measurement:
    return Measurement(used, BUDGET)


def asked(moment: Moment, used: int, state: PolicyState = FRESH, *, by_provider: bool = False, **more: Any) -> Decision:
    return decide(at(used), state, usual(**more), moment, by_provider=by_provider)


def rungs(used: int, state: PolicyState = FRESH, **more: Any) -> list[tuple[str, int, bool]]:
    ahead = rungs_ahead(at(used), state, usual(**more), prepares=True)
    return [(rung.action, rung.tokens, rung.is_reached) for rung in ahead]


def test_the_settings_defaults() -> None:
    assert (AUTO.info_threshold, AUTO.idle_threshold) == (0.60, 0.0)
    assert AUTO.stages == ("prune", "deduplicate", "summarize", "truncate")
    large, settings = Budget(200_000, 100_000, 100_000), usual()
    assert thresholds(large, AUTO) == thresholds(large, settings) == Thresholds(60_000, 80_000, 75_000, 80_000)
    assert target_ratio(large, AUTO) == settings.target_ratio


@given(st.integers(1, 200_000))
def test_in_a_small_window_compaction_is_later_and_keeps_more(tokens: int) -> None:
    budget = Budget(2 * tokens, tokens, tokens)
    at, target = thresholds(budget, AUTO), target_ratio(budget, AUTO)
    assert (at.compact >= 0.95 * tokens) == (tokens <= 40_000)
    assert target == pytest.approx(min(0.80, max(0.40, 20_000 / tokens)))
    # It is well below the threshold, the warning is where it always is, and a number that was given holds.
    assert aim_ratio(budget, AUTO) == target <= 0.9 * at.compact / tokens
    assert at.warn == thresholds(budget, usual()).warn
    assert thresholds(budget, usual()).compact == at.warn


# Boundaries


@pytest.mark.parametrize(("used", "notice"), [(6_000, None), (6_001, "info"), (7_999, "info"), (8_000, "warning")])
def test_after_a_turn_the_info_line_comes_above_and_the_warning_at_its_threshold(used: int, notice: str | None) -> None:
    decision = asked("after turn", used)
    assert decision.notice == notice
    assert decision.action == ("notice" if notice else "nothing")


@pytest.mark.parametrize(("used", "action"), [(7_499, "nothing"), (7_500, "prepare"), (9_000, "prepare")])
def test_in_idle_time_preparation_begins_at_its_threshold(used: int, action: Action) -> None:
    assert asked("idle", used).action == action


@pytest.mark.parametrize(("used", "action"), [(7_999, "nothing"), (8_000, "compact"), (10_001, "compact")])
def test_before_a_request_compaction_is_due_at_its_threshold(used: int, action: Action) -> None:
    assert asked("before request", used).action == action
    assert is_due(at(used), DEFAULTS) == (action == "compact")


@pytest.mark.parametrize(("used", "action"), [(8_000, "nothing"), (8_999, "nothing"), (9_000, "compact")])
def test_within_a_step_of_a_plan_compaction_waits_while_there_is_room(used: int, action: Action) -> None:
    decision = decide(at(used), FRESH, DEFAULTS, "before request", is_within_step=True)
    assert (decision.action, decision.is_due) == (action, True)
    # Not where the window has become smaller, and never beyond half of what is left.
    assert decide(at(used), FRESH.model_changed(), DEFAULTS, "before request", is_within_step=True).action == "compact"
    high = replace(DEFAULTS, compact_threshold=0.95)
    assert decide(at(9_750), FRESH, high, "before request", is_within_step=True).action == "compact"
    assert decide(at(9_749), FRESH, high, "before request", is_within_step=True).action == "nothing"


@pytest.mark.parametrize(("used", "action"), [(10_000, "nothing"), (10_001, "refuse")])
def test_what_does_not_fit_after_a_compaction_is_refused(used: int, action: Action) -> None:
    assert asked("compaction tried", used).action == action


def test_shares_count_whole_tokens_exactly() -> None:
    hundred = Budget(200, 100, 100)
    # 0.55 * 100 is 55.000000000000007, and 0.57 * 100 is 56.99999999999999.
    assert thresholds(hundred, usual(compact_threshold=0.55)).compact == 55
    assert thresholds(hundred, usual(info_threshold=0.57)).info == 57
    assert thresholds(hundred, usual(compact_threshold=0.553)).compact == 56


@given(windows, st.integers(1, 100), st.integers(0, 3_000_000))
def test_the_threshold_and_the_usage_that_is_shown_agree(window: int, percent: int, used: int) -> None:
    budget = Budget.of(window)
    compact = thresholds(budget, usual(compact_threshold=percent / 100)).compact
    assert (used >= compact) == (used * 100 >= percent * budget.budget_tokens)


# The threshold raised, lowered or absolute


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"compact_threshold": 0.95}, (6_000, 9_000, 9_500)),
        ({"compact_threshold": 1.0}, (6_000, 9_500, 10_000)),
        ({"compact_threshold": 0.7}, (6_000, 6_500, 7_000)),
        ({"compact_threshold": 0.5}, (4_500, 4_500, 5_000)),
        ({"compact_threshold": 0.04}, (200, 200, 400)),
        ({"compact_threshold": 0.95, "idle_threshold": 0.75}, (6_000, 7_500, 9_500)),
        ({"compact_threshold": 0.95, "info_threshold": 0.9}, (9_000, 9_000, 9_500)),
        ({"compact_threshold": 0.5, "idle_threshold": 0.75, "info_threshold": 1.0}, (10_000, 5_000, 5_000)),
        ({"compact_tokens": 5_000}, (4_500, 4_500, 5_000)),
        ({"compact_tokens": 9_000}, (6_000, 7_500, 8_000)),
        ({"compact_tokens": 9_000, "compact_threshold": 0.95}, (6_000, 8_500, 9_000)),
    ],
)
def test_rungs_that_nobody_set_follow_the_compaction_threshold(
    settings: dict[str, Any], expected: tuple[int, ...]
) -> None:
    found = thresholds(BUDGET, usual(**settings))
    assert (found.info, found.prepare, found.compact) == expected


def test_with_a_raised_threshold_only_the_warning_stays_at_80_percent() -> None:
    assert asked("idle", 7_800, compact_threshold=0.95).action == "nothing"
    assert asked("before request", 8_500, compact_threshold=0.95).action == "nothing"
    assert asked("after turn", 7_999, compact_threshold=0.95).notice == "info"
    warned = asked("after turn", 8_000, compact_threshold=0.95)
    assert (warned.notice, warned.is_due) == ("warning", False)
    assert asked("after turn", 9_499, warned.state, compact_threshold=0.95).notice is None
    # What is due is said anew.
    due = asked("before request", 9_500, warned.state, compact_threshold=0.95)
    assert (due.action, due.notice) == ("compact", "warning")


def test_an_absolute_threshold_is_met_to_the_token() -> None:
    budget = Budget(200_000, 64_000, 136_000)
    for tokens in (1, 49_999, 50_000, 50_001, 108_799):
        assert thresholds(budget, usual(compact_tokens=tokens)).compact == tokens
    assert thresholds(budget, usual(compact_tokens=500_000)).compact == 108_800


# Notices


def test_a_notice_comes_once_for_each_crossing() -> None:
    seen, state = [], FRESH
    for used in (6_500, 7_000, 8_500, 8_600, 6_500, 8_500, 5_000, 6_500):
        decision = asked("after turn", used, state)
        seen.append(decision.notice)
        state = decision.state
    assert seen == ["info", None, "warning", None, None, "warning", None, "info"]


def test_the_usage_that_a_compaction_has_said_is_not_said_again() -> None:
    state, seen = FRESH.compacted(at(7_500)), []
    for used in (7_600, 7_900, 6_100, 7_900, 5_900, 6_100):
        decision = asked("after turn", used, state)
        seen.append(decision.notice)
        state = decision.state
    assert seen == [None, None, None, None, None, "info"]
    assert asked("after turn", 8_500, FRESH.compacted(at(7_500))).notice == "warning", "what is due is said"
    assert asked("after turn", 7_900, FRESH.compacted(at(7_500)), auto="preview").notice == "info"
    assert asked("after turn", 6_100, FRESH.compacted(at(4_000))).notice == "info"


def test_the_warning_after_a_turn_is_not_repeated_before_the_request() -> None:
    warned = asked("after turn", 8_500).state
    assert asked("before request", 8_500, warned).notice is None
    assert asked("before request", 8_500).notice == "warning"
    assert asked("before request", 8_500, asked("before request", 8_500).state).notice is None


def test_no_warning_where_nothing_will_be_compacted() -> None:
    quiet = FRESH.edited(at(8_500))
    assert asked("after turn", 8_900, quiet).notice == "info"
    assert asked("after turn", 8_900, by_provider=True).notice == "info"


def test_a_compaction_and_another_model_let_notices_come_again() -> None:
    warned = asked("after turn", 8_500).state
    assert warned.compacted(at(5_000)).shown == frozenset()
    assert warned.model_changed().shown == frozenset()
    assert warned.edited(at(8_500)).shown == {"due"}


# The state


@pytest.mark.parametrize(("used", "action"), [(8_999, "nothing"), (9_000, "compact")])
@pytest.mark.parametrize(
    "state",
    [
        FRESH.compacted(at(8_500)),
        FRESH.compacted_in_vain(at(8_500)),
        FRESH.edited(at(8_500)),
        FRESH.rearmed(at(8_500)),
    ],
    ids=["compacted", "in vain", "undone", "preview"],
)
def test_it_comes_again_after_a_growth_of_5_percent_of_the_budget(
    state: PolicyState, used: int, action: Action
) -> None:
    assert asked("before request", used, state).action == action
    assert asked("idle", used, state).action == ("prepare" if action == "compact" else "nothing")


def test_it_is_not_armed_below_its_threshold() -> None:
    state = FRESH.compacted(at(4_000))
    assert asked("before request", 7_999, state).action == "nothing"
    assert asked("before request", 8_000, state).action == "compact"


def test_after_two_in_vain_it_gives_up_once_and_for_what_fits() -> None:
    once = FRESH.compacted_in_vain(at(8_000))
    assert (once.has_given_up, once.gives_up_now) == (False, False)
    assert asked("before request", 9_000, once).action == "compact"
    twice = once.compacted_in_vain(at(9_000))
    assert (twice.has_given_up, twice.gives_up_now) == (True, True)
    for moment in ("before request", "idle", "after turn"):
        assert not asked(moment, 10_000, twice).is_due
        assert asked(moment, 10_000, twice).action in ("nothing", "notice")
    assert asked("before request", 10_001, twice).action == "compact"
    third = twice.compacted_in_vain(at(10_001))
    assert (third.has_given_up, third.gives_up_now) == (True, False)


@pytest.mark.parametrize(
    "changed",
    [
        lambda state: state.compacted(at(5_000)),
        lambda state: state.edited(at(5_000)),
        lambda state: state.reconfigured(),
        lambda state: state.model_changed(),
    ],
    ids=["compacted", "undone", "settings", "model"],
)
def test_it_tries_again_once_something_has_changed(changed: Any) -> None:
    given_up = FRESH.compacted_in_vain(at(8_000)).compacted_in_vain(at(8_500))
    assert given_up.has_given_up
    assert asked("before request", 9_500, changed(given_up)).action == "compact"


def test_another_model_is_named_as_the_trigger_of_the_next_request_alone() -> None:
    state = FRESH.compacted(at(7_900)).model_changed()
    decision = asked("before request", 8_000, state)
    assert (decision.action, decision.trigger) == ("compact", "model")
    assert asked("before request", 8_000, decision.state).trigger == "threshold"
    fitted = asked("before request", 5_000, state).state
    assert asked("before request", 8_000, fitted).trigger == "threshold"


# Over the budget, off, preview, by the provider


def test_what_exceeds_the_budget_is_compacted_whatever_the_state_says() -> None:
    quiet = FRESH.edited(at(9_900))
    assert asked("before request", 10_000, quiet).action == "nothing"
    assert asked("before request", 10_001, quiet).action == "compact"
    assert asked("idle", 10_001, quiet).action == "prepare"


def test_off_warns_and_refuses_what_does_not_fit() -> None:
    first = asked("before request", 8_000, auto="off")
    assert (first.action, first.notice, first.is_due) == ("notice", "warning", True)
    assert asked("before request", 8_000, first.state, auto="off").action == "nothing"
    assert asked("before request", 10_000, first.state, auto="off").action == "nothing"
    assert asked("before request", 10_001, first.state, auto="off").action == "refuse"
    assert asked("before request", 10_001, auto="off").notice == "warning"
    assert asked("idle", 9_999, auto="off").action == "nothing"


@pytest.mark.parametrize("auto", ["off", "preview"])
def test_where_nothing_compacts_by_itself_a_turn_that_fills_the_budget_says_so_once(auto: str) -> None:
    warned = asked("after turn", 9_900, auto=auto)
    assert warned.notice == "warning"
    assert asked("after turn", 10_000, warned.state, auto=auto).notice is None
    full = asked("after turn", 10_001, warned.state, auto=auto)
    assert (full.action, full.notice) == ("notice", "warning")
    assert asked("after turn", 10_500, full.state, auto=auto).notice is None
    assert asked("before request", 10_500, full.state, auto=auto).notice is None
    less = asked("after turn", 9_000, full.state, auto=auto)
    assert less.notice is None
    assert asked("after turn", 10_001, less.state, auto=auto).notice == "warning"
    assert asked("after turn", 10_001, auto=auto).notice == "warning"


def test_preview_is_decided_on_as_a_compaction_and_nothing_is_prepared() -> None:
    decision = asked("before request", 8_000, auto="preview")
    assert decision.action == "compact"
    assert asked("idle", 9_999, auto="preview").action == "nothing"
    reported = decision.state.rearmed(at(8_000))
    assert asked("before request", 8_499, reported, auto="preview").action == "nothing"
    assert asked("before request", 8_500, reported, auto="preview").action == "compact"


def test_where_the_provider_compacts_only_an_exceeded_budget_is_ours() -> None:
    assert asked("before request", 10_000, by_provider=True).action == "nothing"
    assert asked("before request", 10_001, by_provider=True).action == "compact"
    assert asked("idle", 10_001, by_provider=True).action == "nothing"


# What is ahead


def test_the_rungs_ahead_are_those_that_decide_uses() -> None:
    assert rungs(6_000) == [("notice", 6_000, False), ("prepare", 7_500, False), ("compact", 8_000, False)]
    assert rungs(6_001) == [("prepare", 7_500, False), ("compact", 8_000, False)]
    assert rungs(7_500) == [("prepare", 7_500, True), ("compact", 8_000, False)]
    assert rungs(8_000) == [("compact", 8_000, True)]
    assert rungs(8_000, FRESH.compacted(at(8_000))) == [("compact", 8_500, False)]
    assert rungs(0, idle_threshold=1.0) == [("notice", 6_000, False), ("compact", 8_000, False)]
    assert rungs(0, auto="preview") == [("notice", 6_000, False), ("compact", 8_000, False)]
    assert rungs(0, auto="off") == []


# How far


@given(windows, st.integers(0, 4_000_000), st.floats(0.01, 1.0))
def test_the_target_is_the_ratio_or_what_cannot_shrink_and_a_quarter_of_the_rest(
    window: int, fixed: int, target_ratio: float
) -> None:
    budget = Budget.of(window)
    target = target_tokens(budget, fixed, target_ratio)
    assert target >= int(target_ratio * budget.budget_tokens)
    assert target >= fixed
    if fixed <= budget.budget_tokens:
        assert target <= budget.budget_tokens


def test_target_numbers() -> None:
    budget = Budget(200_000, 64_000, 136_000)
    assert target_tokens(budget, 0, 0.5) == 68_000
    assert target_tokens(budget, 100_000, 0.5) == 118_000
    assert target_tokens(budget, 200_000, 0.5) == 200_000


@pytest.mark.parametrize(("threshold", "aim"), [(0.8, 0.5), (0.95, 0.5), (0.5, 0.4), (0.55, 0.44), (0.56, 0.5)])
def test_the_aim_stays_well_below_the_threshold(threshold: float, aim: float) -> None:
    settings = usual(compact_threshold=threshold, target_ratio=0.5)
    assert aim_ratio(Budget.of(100_000), settings) == pytest.approx(aim, abs=0.001)


@pytest.mark.parametrize(("saved", "is_worth"), [(499, False), (500, True)])
def test_what_was_prepared_is_worth_5_percent_of_the_budget(saved: int, is_worth: bool) -> None:
    assert is_worth_it(saved, BUDGET) == is_worth


@pytest.mark.parametrize(
    ("after", "used", "is_less"), [(3_199, 3_500, True), (3_200, 3_500, False), (3_199, 3_501, False)]
)
def test_more_is_shown_in_a_larger_window_only_where_it_is_worth_it(after: int, used: int, is_less: bool) -> None:
    assert is_made_for_less(after, at(used), DEFAULTS) == is_less


@pytest.mark.parametrize(
    ("auto", "unhelpful", "used", "beside"),
    [("on", 0, 9_000, 4_600), ("on", 0, 3_000, 3_000), ("on", 2, 9_000, 9_000), ("preview", 0, 9_000, 9_000)],
)
def test_more_has_the_room_that_a_compaction_would_make(auto: str, unhelpful: int, used: int, beside: int) -> None:
    state = PolicyState(unhelpful=unhelpful)
    assert state.used_beside_more(at(used), usual(auto=auto), 1_000) == beside


@pytest.mark.parametrize(("limit", "is_due"), [(0, False), (3, True), (4, False)])
def test_too_many_turns_are_more_than_the_limit(limit: int, is_due: bool) -> None:
    assert has_too_many_turns(history_of(talk(4)), limit) == is_due


# What holds everywhere

usages = st.integers(0, 12_000)
shares = st.integers(1, 100).map(lambda percent: percent / 100)
everything = st.builds(
    ContextSettings,
    auto=st.sampled_from(["on", "off", "preview"]),
    info_threshold=shares,
    idle_threshold=st.just(0.0) | shares,
    compact_threshold=shares,
    compact_tokens=st.just(0) | st.integers(1, 12_000),
)
states = st.builds(
    PolicyState,
    rearm_tokens=st.just(0) | usages,
    said_tokens=st.just(0) | usages,
    unhelpful=st.integers(0, 3),
    shown=st.frozensets(st.sampled_from(["info", "warning"])),
    trigger=st.sampled_from(["threshold", "model"]),
)
moments = st.sampled_from(["after turn", "idle", "before request", "compaction tried"])


@given(usages, states, everything, moments, st.booleans())
def test_what_fits_is_never_refused_and_what_does_not_is_never_let_through(
    used: int, state: PolicyState, settings: ContextSettings, moment: Moment, by_provider: bool
) -> None:
    action = decide(at(used), state, settings, moment, by_provider=by_provider).action
    if at(used).fits:
        assert action != "refuse"
    elif moment == "before request":
        assert action == ("refuse" if settings.auto == "off" else "compact")
    elif moment == "compaction tried":
        assert action == "refuse"


@given(usages, states, everything, st.booleans())
def test_what_is_due_is_compacted_next(
    used: int, state: PolicyState, settings: ContextSettings, by_provider: bool
) -> None:
    now = [decide(at(used), state, settings, moment, by_provider=by_provider) for moment in ("after turn", "idle")]
    then = decide(at(used), state, settings, "before request", by_provider=by_provider)
    assert {decision.is_due for decision in now} == {then.is_due}
    assert (then.action == "compact") == (then.is_due and settings.auto != "off")
    if now[0].notice == "warning":
        assert then.is_due


@given(usages, usages, states, everything, st.booleans())
def test_more_usage_never_means_that_less_is_done(
    one: int, other: int, state: PolicyState, settings: ContextSettings, by_provider: bool
) -> None:
    less, more = sorted((one, other))
    strength = ("nothing", "notice", "prepare", "compact", "refuse")
    fresh = replace(state, shown=frozenset())
    for moment in ("idle", "before request", "compaction tried"):
        actions = [decide(at(used), fresh, settings, moment, by_provider=by_provider).action for used in (less, more)]
        assert strength.index(actions[0]) <= strength.index(actions[1])


@given(usages, states, everything)
def test_the_rungs_ahead_are_true(used: int, state: PolicyState, settings: ContextSettings) -> None:
    ahead = rungs_ahead(at(used), state, settings, prepares=True)
    assert [rung.tokens for rung in ahead] == sorted(rung.tokens for rung in ahead)
    for rung in ahead:
        moment: Moment = {"notice": "after turn", "prepare": "idle", "compact": "before request"}[rung.action]  # type: ignore[assignment]
        # A notice comes above its number, the others at it.
        there = max(used, rung.tokens + (rung.action == "notice"))
        assert decide(at(there), replace(state, shown=frozenset()), settings, moment).action == rung.action
        if not rung.is_reached and rung.action != "notice":
            assert decide(at(rung.tokens - 1), state, settings, moment).action != rung.action


@given(usages, usages, everything)
def test_after_a_compaction_no_second_one_before_the_usage_has_grown(
    after: int, growth: int, settings: ContextSettings
) -> None:
    used = after + growth % 500
    decision = decide(at(used), FRESH.compacted(at(after)), settings, "before request")
    assert decision.is_due == (not at(used).fits)
