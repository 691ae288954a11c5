"""One number for the next request, its breakdown, and what reports teach."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nca.context.budget import Budget
from nca.context.calibration import Calibration
from nca.context.meter import Meter
from nca.context.request import repair, resolve
from nca.context.tokens import CONVERSATION_TOKENS, message_tokens
from nca.context.view import Marker, View
from nca.messages import SIGNED_THOUGHTS, AttachmentPart, Entry, Message, TextPart, ToolCall, Usage
from tests.context.logs import history_of, logs
from tests.context.samples import call, calling, result, some, talk, user

BUDGET = Budget.of(8_000)
TOOLS = [{"type": "function", "function": {"name": "grep", "description": "Search in files."}}]


@some
@given(logs(), st.sampled_from([0, 700]))
def test_used_is_what_the_request_costs(messages: list[Message], waiting: int) -> None:
    """With what goes with the next message, which is an attachment of it."""
    history, meter = history_of(messages), Meter()
    attached = meter.measure(history, BUDGET).breakdown["attachments"]
    meter.waiting_raw = waiting
    cost = sum(map(message_tokens, repair(resolve(history)))) + waiting
    assert meter.measure(history, BUDGET).breakdown["attachments"] == attached + waiting
    assert meter.raw(history) == cost + CONVERSATION_TOKENS
    assert meter.used(history) == meter.scaled(cost + CONVERSATION_TOKENS) == meter.used_with(history, history.view)


@some
@given(logs(), st.booleans(), st.booleans())
def test_the_breakdown_sums_to_used(messages: list[Message], has_prompt: bool, has_tools: bool) -> None:
    meter = Meter(system_prompt="You are a test." if has_prompt else "", tools=TOOLS if has_tools else ())
    measured = meter.measure(history_of(messages), BUDGET)
    assert sum(measured.breakdown.values()) == measured.used_tokens
    assert set(measured.breakdown) == {
        "system_prompt", "tool_definitions", "conversation", "current_input", "attachments",
    }  # fmt: skip
    assert (measured.breakdown["system_prompt"] > 0) == has_prompt
    assert (measured.breakdown["tool_definitions"] > 0) == has_tools
    assert measured.is_estimate


def test_tools_that_join_count_from_then_on() -> None:
    history, meter = history_of(talk(3)), Meter()
    raw = meter.raw(history)
    meter.learn(raw, history, 2 * raw)
    meter.take_tools(TOOLS)
    with_tools = Meter(tools=TOOLS, calibration=meter.calibration).measure(history, BUDGET)
    assert meter.measure(history, BUDGET) == with_tools
    assert with_tools.is_estimate
    assert with_tools.breakdown["tool_definitions"] > 0


@given(st.floats(0.41, 2.9), st.floats(0.41, 2.9))
def test_the_breakdown_sums_to_used_under_an_anchor_too(learned: float, reported: float) -> None:
    meter = Meter(calibration=Calibration(learned, 5), system_prompt="word " * 3_000, tools=TOOLS)
    history = history_of([*talk(3), user()])
    raw = meter.raw(history)
    meter.learn(raw, history, round(raw * reported))
    measured = meter.measure(history, BUDGET)
    assert measured.used_tokens == round(raw * reported)
    assert sum(measured.breakdown.values()) == measured.used_tokens
    assert min(measured.breakdown.values()) >= 0
    assert not measured.is_estimate


def test_input_and_attachments_are_told_apart_while_they_are_new() -> None:
    attached = Message("user", (TextPart("Look at this. " * 20), AttachmentPart("a.txt", "data " * 200, 1_000)))
    history, meter = history_of([*talk(2), attached]), Meter()
    fresh = meter.measure(history, BUDGET).breakdown
    assert fresh["attachments"] > fresh["current_input"] > 50
    history.append(Entry(history.head + 1, Message("assistant", "I see.")))
    answered = meter.measure(history, BUDGET).breakdown
    assert (answered["attachments"], answered["current_input"]) == (0, 0)


def test_an_anchor_counts_only_what_came_after() -> None:
    history, meter = history_of(talk(10)), Meter()
    raw = meter.raw(history)
    meter.learn(raw, history, 2_000)
    assert meter.used(history) == 2_000
    history.append(Entry(history.head + 1, user("And more? " * 10)))
    assert meter.used(history) == 2_000 + meter.scaled(message_tokens(history.message(history.head)))


BROKEN_OFF = ToolCall("call_cut", "write_file", '{"path": "a.py", "text": "' + "word " * 1_000)


@pytest.mark.parametrize(
    ("answer", "rest"),
    [
        (Message("assistant", "I write it.", (BROKEN_OFF,)), [result("call_cut", "[not valid JSON]")]),
        (Message("assistant", "The beginning. " * 300, is_interrupted=True), []),
    ],
)
def test_an_answer_that_broke_off_does_not_move_the_anchor(answer: Message, rest: list[Message]) -> None:
    """Its report is of what the model wrote, not of what the next request shows of it."""
    history, meter = history_of(talk(10)), Meter()
    raw = meter.raw(history)
    meter.learn(raw, history, 2_000)
    history.append(Entry(history.head + 1, answer))
    meter.answered(history, answer, Usage(2_000, 1_700))
    for message in (*rest, user("And more? " * 1_000)):
        history.append(Entry(history.head + 1, message))
    assert not meter.measure(history, BUDGET).is_estimate
    assert meter.used(history) == 2_000 + meter.scaled(meter.raw(history) - raw)


@pytest.mark.parametrize(("extra", "counted"), [({}, 60), ({SIGNED_THOUGHTS: [{"signature": "s"}]}, 560)])
def test_thoughts_are_a_part_of_the_next_request_only_where_they_are_signed(
    extra: dict[str, Any], counted: int
) -> None:
    history, meter = history_of([*talk(10), user()]), Meter()
    meter.learn(meter.raw(history), history, 2_000)
    answer = Message("assistant", "So it is. " * 20, extra=extra)
    history.append(Entry(history.head + 1, answer))
    meter.answered(history, answer, Usage(2_000, 560, reasoning_tokens=500))
    assert meter.used(history) == 2_000 + counted


@pytest.mark.parametrize("change", ["view", "model", "prompt", "tools"])
def test_an_anchor_of_another_subject_is_not_used(change: str) -> None:
    history, meter = history_of(talk(10)), Meter(model="a", system_prompt="You are a test.")
    meter.learn(meter.raw(history), history, 2_000)
    if change == "view":
        history.view = View((Marker("m", ((1, 2),), "[out]"),), 3)
        assert meter.used(history) == meter.scaled(meter.raw(history))
        return
    other = Meter(
        model="b" if change == "model" else "a",
        system_prompt="You are another." if change == "prompt" else "You are a test.",
        tools=TOOLS if change == "tools" else (),
        calibration=meter.calibration,
    )
    other.anchor = meter.anchor
    assert other.used(history) == other.scaled(other.raw(history))
    assert other.measure(history, BUDGET).is_estimate


def test_a_view_that_is_put_in_force_anew_has_no_report_and_the_others_keep_theirs() -> None:
    history, meter = history_of(talk(10)), Meter()
    whole, marked, other = history.view, *(View((Marker("m", ((1, end),), "[out]"),), end + 1) for end in (2, 4))
    meter.learn(meter.raw(history), history, 2_000)
    history.view = other
    meter.learn(meter.raw(history), history, 1_600)
    history.view = marked
    meter.learn(meter.raw(history), history, 1_800)
    history.view = whole
    assert meter.used(history) == 2_000
    meter.forget(marked)
    history.view = marked
    assert meter.measure(history, BUDGET).is_estimate
    for view, used in ((whole, 2_000), (other, 1_600)):
        history.view = view
        assert meter.used(history) == used


def test_a_report_that_cannot_be_about_this_request_teaches_nothing() -> None:
    history, meter = history_of(talk(10)), Meter()
    before = meter.calibration
    meter.learn(meter.raw(history), history, 10)
    assert meter.calibration is before
    assert meter.anchor is None


def test_the_repair_of_a_broken_log_is_counted() -> None:
    broken = history_of([user(), calling(call("a")), user("And?")])
    assert Meter().raw(broken) > CONVERSATION_TOKENS + broken.view_tokens
    doubled = history_of([user(), calling(call("a")), result("a"), result("a", "again " * 50), user("And?")])
    assert Meter().raw(doubled) < CONVERSATION_TOKENS + doubled.view_tokens


@some
@given(st.lists(logs(max_turns=2), min_size=1, max_size=3), st.integers(1, 5))
def test_a_number_that_was_taken_while_the_log_grew_is_the_number_of_the_whole(
    parts: list[list[Message]], every: int
) -> None:
    history, meter = history_of([]), Meter()
    for message in (message for part in parts for message in part):
        history.append(Entry(history.head + 1, message))
        if history.head % every == 0:
            assert meter.used(history) == Meter().used(history)
    history.view = View((Marker("m", ((1, history.head // 2),), "[out]"),), history.head // 2 + 1)
    assert meter.used(history) == Meter().used(history)


@pytest.mark.parametrize("late", [result("a", "again " * 2_000), result("b", "B")])
def test_results_that_come_late_or_twice_are_counted_as_they_are_sent(late: Message) -> None:
    history, meter = history_of([*talk(1), user(), calling(call("a"), call("b"))]), Meter()
    assert meter.used(history) == Meter().used(history)
    for message in (result("a"), late):
        history.append(Entry(history.head + 1, message))
        assert meter.used(history) == Meter().used(history)


@given(st.lists(st.tuples(st.integers(10, 400), st.floats(0.8, 1.6)), min_size=8, max_size=12), st.integers(0, 900))
def test_reports_that_are_taken_up_again_teach_what_they_taught(steps: list[tuple[int, float]], waiting: int) -> None:
    """Whatever goes with the next message: no report was about that."""
    history, meter, reports = history_of(talk(6)), Meter(provider="mistral"), list[tuple[int, int, int]]()
    for number, (words, density) in enumerate(steps):
        for message in (user("word " * words), calling(call(f"c{number}")), result(f"c{number}")):
            history.append(Entry(history.head + 1, message))
        raw, calls = meter.raw(history), history.view_calls
        reports.append((raw - meter.fixed_raw - history.call_raw * calls, calls, round(raw * density)))
        meter.learn(raw, history, reports[-1][2], calls)
    again = Meter(provider="mistral", calibration=Calibration.unlearned("mistral").taught(1.3, len(steps)))
    again.waiting_raw = waiting
    again.relearn(reports, history)
    assert (again.calibration.lessons, again.calibration.ratio) == (meter.calibration.lessons, 1.3)


def test_a_session_that_goes_on_shows_the_number_it_ended_with_and_learns_nothing_from_it() -> None:
    history, meter = history_of(talk(10)), Meter(calibration=Calibration(1.0, 5))
    meter.restore(meter.raw(history), history, 2_000)
    assert meter.used(history) == 2_000
    assert (meter.calibration.ratio, meter.calibration.samples) == (1.0, 5)
    assert not meter.measure(history, BUDGET).is_estimate
    other = Meter()
    other.restore(other.raw(history), history, 10)
    assert other.measure(history, BUDGET).is_estimate, "such a report was not believed when it came"


VIEWS = (View(), View((Marker("a", ((1, 2),), ""),), 3), View((Marker("b", ((1, 4),), "gone"),), 5))


@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from([None, 0.5, 1.2, 2.4])), max_size=12))
def test_what_a_view_would_take_is_what_it_takes_then(steps: list[tuple[int, float | None]]) -> None:
    """Whichever views were in force before, and whatever was reported about them."""
    history, meter = history_of(talk(6)), Meter()
    for number, reported in steps:
        would = meter.used_again(history, VIEWS[number])
        history.view = VIEWS[number]
        assert meter.used(history) == would
        if reported is not None:
            raw = meter.raw(history)
            meter.learn(raw, history, round(raw * reported))
