"""Whole compactions reach the target or refuse with the numbers, and never touch protected messages."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nca.config.extensions import STAGES
from nca.config.schema import ContextSettings
from nca.context.budget import Budget
from nca.context.calibration import Calibration
from nca.context.draft import Draft
from nca.context.driver import run
from nca.context.history import History
from nca.context.meter import Meter
from nca.context.plan import compact, no_summarizer
from nca.context.stages.truncate import TRUNCATED
from nca.context.summary import SummaryFailure, SummaryReply, SummaryRequest
from nca.context.summary_input import MAX_CHUNKS
from nca.context.summary_writer import MAX_FAILURES
from nca.context.tokens import text_tokens
from nca.context.validate import CHECKS, validate_request
from nca.context.view import Marker, Stub, Summary, View, check_partition, hidden_by
from nca.errors import ContextDoesNotFit
from nca.messages import AttachmentPart, Message, TextPart, user_message
from nca.words import Span
from tests.context.logs import grow, history_of, logs
from tests.context.promises import is_cut_of
from tests.context.samples import (
    PROSE,
    agent_turn,
    answering,
    assistant,
    call,
    calling,
    compacted,
    contents,
    result,
    sent,
    some,
    step,
    talk,
    user,
)

ALONE = [(stage,) for stage in STAGES]


def refusal(history: History, window: int, stages: tuple[str, ...]) -> ContextDoesNotFit | None:
    try:
        compacted(history, window, stages=stages)
    except ContextDoesNotFit as error:
        return error
    return None


def is_valid(history: History) -> bool:
    return not any(validate_request(sent(history), provider) for provider in CHECKS)


def test_under_the_target_nothing_changes() -> None:
    history = history_of(talk(3))
    proposal = compacted(history, 128_000)
    assert not proposal.compacted
    assert proposal.view == View()
    assert proposal.tokens_before == proposal.tokens_after
    assert (proposal.stages_used, proposal.tokens_saved, proposal.head) == ((), 0, 6)


def test_the_numbers_of_a_compaction() -> None:
    history = history_of([*agent_turn(20, 100), assistant(), *talk(20)])
    meter = Meter()
    before = meter.used(history)
    proposal = compacted(history, 6_000, summarizer=answering(), meter=meter)
    assert proposal.tokens_before == before > proposal.target_tokens >= proposal.tokens_after
    assert proposal.tokens_after == meter.used(history)
    assert proposal.budget_tokens == 3_900
    assert proposal.target_tokens == 2_535
    assert proposal.tokens_saved == before - proposal.tokens_after
    assert set(proposal.stages_used) == set(proposal.saved_by_stage)
    assert all(saved > 0 for saved in proposal.saved_by_stage.values())
    assert sum(proposal.saved_by_stage.values()) == proposal.tokens_saved
    assert proposal.made_by == "tester"
    assert 0 < proposal.kept_facts <= proposal.total_facts


def test_each_stage_runs_only_while_the_view_is_over_the_target() -> None:
    log = [*agent_turn(30, 200), assistant(), user()]
    used = Meter().used(history_of(log))
    proposal = compacted(history_of(log), used * 5 // 3, settings=ContextSettings())
    assert proposal.stages_used == ("prune",)


def test_the_list_of_stages_is_the_order_and_the_switch() -> None:
    log = [*agent_turn(30, 200), assistant(), *talk(10), user()]
    assert compacted(history_of(log), 4_000, stages=["truncate", "prune"]).stages_used == ("truncate",)
    assert compacted(history_of(log), 128_000, stages=[]).stages_used == ()


@pytest.mark.parametrize("stages", [STAGES, *ALONE])
def test_one_turn_of_a_hundred_steps_lands(stages: tuple[str, ...]) -> None:
    history = history_of([*talk(2), *agent_turn(100, 100)])
    meter = Meter()
    proposal = compacted(history, 4_000, stages=stages, meter=meter)
    assert proposal.compacted
    assert meter.used(history) <= proposal.budget_tokens
    if "truncate" in stages:
        assert meter.used(history) <= proposal.target_tokens
    assert is_valid(history)
    assert "Do turn." in contents(history)
    assert contents(history)[-1] == history.message(history.head).content


@pytest.mark.parametrize("summarizer", [answering(), no_summarizer])
def test_pins_and_the_users_words_survive_twenty_compactions(summarizer: object) -> None:
    pinned = {2, 5, 30}
    history = history_of(talk(20), pinned)
    turn = 21
    for _ in range(20):
        grow(history, [*talk(15, start=turn), *step(f"c{turn}", "out " * 100, path=f"src/{turn}.py"), assistant()])
        turn += 15
        proposal = compacted(history, 6_000, summarizer=summarizer)
        assert proposal.compacted
        check_partition(history.view)
        shown = contents(history)
        # A pin may stand in one message with the answer behind it.
        assert all(any(str(history.message(seq).content) in text for text in shown) for seq in pinned)
        assert all(hidden_by(history.view, seq) is None for seq in pinned)
        assert is_valid(history)
        assert sum(isinstance(item, Summary) for item in history.view.items) <= 6


@some
@given(logs(), st.sampled_from([500, 1_000, 4_000]), st.sampled_from([STAGES, *ALONE]))
def test_it_refuses_only_where_the_untouchable_part_is_larger(
    messages: list[Message], window: int, stages: tuple[str, ...]
) -> None:
    history, meter = history_of(messages), Meter()
    locked = sum(block.raw for block in Draft(history, meter).blocks() if block.is_locked)
    refused = refusal(history, window, stages)
    if refused is not None:
        marker_and_repairs = 80
        assert meter.scaled(meter.fixed_raw + locked + marker_and_repairs) > refused.budget_tokens
        assert refused.used_tokens > refused.budget_tokens


def test_refusal_names_the_numbers_and_what_to_do() -> None:
    history = history_of([Message("system", "Rules. " * 2_000), user("Hi")])
    before = history.view
    with pytest.raises(ContextDoesNotFit) as refused:
        compacted(history, 2_000)
    error = refused.value
    assert error.budget_tokens == 1_300
    assert error.used_tokens > 4_000
    assert f"{error.used_tokens:,}" in error.message
    assert "1,300 (window 2,000, of which 700" in error.message
    assert "larger window" in error.advice
    assert history.view is before


@pytest.mark.parametrize(
    "text", ["word " * 9_000, "日本語" * 4_000, "🦀" * 9_000, "x" * 60_000, "paragraph.\n\n" * 4_000]
)
@pytest.mark.parametrize("window", [600, 2_000, 8_000])
@pytest.mark.parametrize("stages", [STAGES, *ALONE])
def test_a_newest_message_that_alone_is_too_large_is_cut_visibly(
    text: str, window: int, stages: tuple[str, ...]
) -> None:
    history, meter = history_of([*talk(10), user(text)]), Meter()
    proposal = compacted(history, window, stages=stages, meter=meter)
    newest = sent(history)[-1]["content"]
    assert meter.used(history) <= proposal.budget_tokens
    assert f"; recall expand={history.head} …]" in newest
    assert is_cut_of(newest, text)
    assert text_tokens(newest) > window // 8


def test_an_attachment_that_alone_is_too_large_is_cut_visibly() -> None:
    attached = Message("user", (TextPart("Look at this."), AttachmentPart("a.txt", "data line\n" * 4_000, 40_000)))
    history = history_of([*talk(3), attached])
    compacted(history, 4_000)
    newest = sent(history)[-1]["content"]
    assert newest.startswith('Look at this.\n\n<file path="a.txt">\ndata line\n')
    assert newest.endswith(" lines; recall expand=7 …]")
    assert "data line\n</file>" in newest


def test_of_a_newest_message_that_is_too_large_the_typed_text_stays_and_each_paste_has_its_tags() -> None:
    rule = "Compare it with today's. Never mention customer 4471, and answer in German."
    logs = [
        "\n".join(f"12:{number % 60:02} INFO {day} {number} of it" for number in range(3_000)) for day in ("a", "b")
    ]
    said = (Span("The log of yesterday:\n", "typed"), Span(logs[0], "pasted"), Span(f"\n{rule}\n", "typed"))
    asked = user_message((*said, Span(logs[1], "pasted"), Span("\nWhich is worse?", "typed")))
    history, meter = history_of([*talk(10), asked]), Meter()
    proposal = compacted(history, 16_000, meter=meter)
    newest = sent(history)[-1]["content"]
    assert 0.9 * proposal.target_tokens < meter.used(history) <= proposal.budget_tokens
    assert newest.startswith("The log of yesterday:\n\n<pasted>\n12:00 INFO a 0 of it\n")
    assert f"</pasted>\n\n{rule}\n\n<pasted>\n12:00 INFO b 0 of it\n" in newest
    assert "12:59 INFO b 2999 of it\n</pasted>\n\nWhich is worse?\n[… cut from" in newest


FILE = "".join(f"def part_{number}(order):\n    return order.{number}\n" for number in range(40))


@pytest.mark.parametrize("window", [2_500, 3_000])
def test_of_a_file_that_was_attached_again_and_again_one_is_enough(window: int) -> None:
    """Every question stays, and only the newest copy of the file may take room."""
    asked = [f"What about part {number} of it, and its limit?" for number in range(14)]
    messages = []
    for text in asked:
        messages += [
            Message("user", (TextPart(text), AttachmentPart("cart.py", FILE, len(FILE)))),
            assistant("That is how it is done here. " * 12),
        ]
    history = history_of([*messages, user("And now?")])
    assert compacted(history, window).compacted
    request = "\n".join(str(row["content"]) for row in sent(history))
    assert all(text in request for text in asked)
    assert request.count("def part_0(order)") <= 1


@given(
    st.lists(st.sampled_from(["word " * 60, "日本語" * 60, "short"]), min_size=1, max_size=30),
    st.sampled_from([STAGES, *ALONE]),
)
def test_the_newest_message_is_byte_identical_where_it_fits(texts: list[str], stages: tuple[str, ...]) -> None:
    messages = [message for text in texts for message in (user(text), assistant(text))]
    history = history_of([*messages, user("The newest: " + "new " * 60)])
    compacted(history, 1_000, stages=stages)
    assert sent(history)[-1] == {"role": "user", "content": "The newest: " + "new " * 60}


def test_a_manual_compaction_aims_below_what_is_there() -> None:
    history = history_of(talk(20))
    proposal = compacted(history, 128_000, is_manual=True, summarizer=answering())
    assert proposal.compacted
    assert proposal.target_tokens < proposal.tokens_before
    assert proposal.tokens_after < proposal.tokens_before


@given(st.lists(st.tuples(st.integers(1, 8), st.integers(1, 30)), min_size=1, max_size=12), st.floats(0.8, 1.3))
@example([(1, 1), (1, 1), (1, 1)], 1.0)
@example([(1, 1), (1, 1), (1, 1)], 1.1)
@example([(1, 1), (1, 1), (6, 1), (1, 9), (8, 30), (1, 17)], 1.0)
@example([(1, 1), (6, 1), (1, 1), (2, 13), (8, 30), (1, 17)], 1.0)
def test_a_manual_compaction_keeps_all_that_a_person_said(sizes: list[tuple[int, int]], reported: float) -> None:
    """However small the chat is: it saves room among what others said, or it changes nothing."""
    rules = [f"Rule {place}: {'never push to main; ' * words}" for place, (words, _) in enumerate(sizes)]
    answers = ["Understood, so be it. " * words for _, words in sizes]
    history = history_of([one for pair in zip(map(user, rules), map(assistant, answers), strict=True) for one in pair])
    meter = Meter()
    meter.learn(meter.raw(history), history, round(meter.raw(history) * reported))
    compacted(history, 128_000, is_manual=True, meter=meter)
    seen = "\n".join(contents(history))
    assert [rule for rule in rules if rule[:24] not in seen] == []


def test_a_target_can_be_given_and_never_exceeds_the_budget() -> None:
    assert compacted(history_of(talk(40)), 8_000, target_tokens=700).target_tokens == 700
    assert compacted(history_of(talk(40)), 2_000, target_tokens=99_000).target_tokens == 1_300


@pytest.mark.parametrize(("learned", "reported"), [(1.5, 0.5), (1.2, 0.9), (0.8, 1.0), (1.15, 1.15)])
def test_under_an_anchor_too_it_comes_out_smaller_or_changes_nothing(learned: float, reported: float) -> None:
    for share in (30, 50, 70, 90, 99):
        history, meter = history_of(talk(30)), Meter(calibration=Calibration(learned, 5))
        raw = meter.raw(history)
        meter.learn(raw, history, round(raw * reported))
        before = meter.used(history)
        proposal = compacted(history, 20_000, target_tokens=before * share // 100, meter=meter)
        assert proposal.tokens_before == before
        assert proposal.compacted == (proposal.tokens_after < before)
        assert sum(proposal.saved_by_stage.values()) == proposal.tokens_saved
        assert proposal.compacted or proposal.view == View()


@some
@given(logs(), st.sampled_from([1_000, 4_000]), st.sampled_from([STAGES, *ALONE]))
def test_what_is_hidden_is_found_and_the_log_is_never_rewritten(
    messages: list[Message], window: int, stages: tuple[str, ...]
) -> None:
    before = msgspec.json.encode(messages)
    history = history_of(messages)
    refusal(history, window, stages)
    assert msgspec.json.encode([entry.message for entry in history.entries]) == before
    shown = {entry.seq for entry in history.visible()}
    for seq in range(1, history.head + 1):
        assert (hidden_by(history.view, seq) is None) == (seq in shown)


def test_the_stage_of_each_stub_is_told() -> None:
    history = history_of([*agent_turn(30, 200), assistant(), *talk(3, 400), user()])
    compacted(history, 2_000, stages=["prune", "truncate"])
    assert {item.stage for item in history.view.items if isinstance(item, Stub)} <= {"prune", "truncate"}


def test_markers_have_the_seed_s_text_and_ids() -> None:
    history = history_of(talk(40))
    compacted(history, 4_000, stages=["truncate"])
    (marker,) = [item for item in history.view.items if isinstance(item, Marker)]
    assert marker.text == f"{TRUNCATED} [recall expand={marker.ranges[0][0]}-{marker.ranges[-1][1]}]"
    assert marker.id
    assert marker.ranges


def test_failures_of_the_summarizer_are_told_and_it_lands_all_the_same() -> None:
    history = history_of(talk(40))
    proposal = compacted(history, 8_000, summarizer=answering("I'm sorry, but I can't help with that."))
    assert proposal.failures == ("the summarizer refused",) * 2
    assert proposal.made_by == "extract"
    assert proposal.tokens_after <= proposal.target_tokens


def test_twice_is_once_for_each_stage_alone() -> None:
    log = [*talk(20), *agent_turn(30, 100), assistant(), *talk(5)]
    for stages in (STAGES, *ALONE):
        for window in (1_500, 4_000, 8_000):
            history = history_of(log)
            compacted(history, window, stages=stages, summarizer=answering())
            view = history.view
            again = compacted(history, window, stages=stages, summarizer=answering())
            assert not again.compacted
            assert history.view == view


def test_the_planner_may_be_driven_step_by_step() -> None:
    history = history_of(talk(60))
    planning = compact(history, Meter(), Budget.of(8_000), ContextSettings(), focus="the tests")
    request = next(planning)
    assert isinstance(request, SummaryRequest)
    assert "the tests" in request.instruction
    planning.close()
    assert history.view == View()
    same = run(compact(history, Meter(), Budget.of(8_000), ContextSettings()), no_summarizer)
    assert same.made_by == "extract"


@pytest.mark.parametrize("window", [4_000, 16_000])
def test_a_summarizers_own_window_bounds_what_it_is_asked(window: int) -> None:
    asked: list[SummaryRequest] = []

    def answer(request: SummaryRequest) -> SummaryFailure:
        asked.append(request)
        return SummaryFailure("late")

    compacted(history_of(talk(400)), 64_000, summarizer=answer, summarizer_window=window)
    assert len(asked) == 2
    assert all(Meter().scaled(text_tokens(request.messages[0].text)) <= window for request in asked)


@some
@given(logs(20), st.sampled_from([1_500, 3_000, 6_000]), st.integers(0, MAX_CHUNKS), st.sampled_from([1, 2, 9]))
def test_with_a_small_summarizer_that_fails_somewhere_it_is_valid_and_smaller(
    messages: list[Message], window: int, at: int, times: int
) -> None:
    history, asked = history_of([*messages, *talk(40), user("And now?")]), 0

    def answer(request: SummaryRequest) -> SummaryReply | SummaryFailure:
        nonlocal asked
        asked += 1
        tokens = Meter().scaled(text_tokens(request.messages[0].text) + request.max_tokens)
        assert tokens <= window
        return SummaryFailure("rate limit") if at < asked <= at + times else SummaryReply(PROSE, "tester")

    proposal = compacted(history, 12_000, summarizer=answer, summarizer_window=window, is_manual=True)
    assert asked <= MAX_CHUNKS + MAX_FAILURES
    assert sum(failure == "rate limit" for failure in proposal.failures) <= MAX_FAILURES
    assert proposal.compacted
    assert proposal.tokens_after < proposal.tokens_before
    check_partition(history.view)
    assert is_valid(history)


def test_a_summary_keeps_the_facts_of_what_it_covers() -> None:
    log = [
        message for n in range(12) for message in (user(), *step(f"c{n}", "x " * 100, path=f"src/{n}.py"), assistant())
    ]
    history = history_of([*log, *talk(10)])
    proposal = compacted(history, 3_000, stages=["summarize"], summarizer=answering(PROSE))
    assert proposal.total_facts >= 10
    assert proposal.kept_facts == proposal.total_facts


def test_an_open_step_is_whole_whatever_it_costs() -> None:
    waiting = [calling(call("a", "shell", command="make"), call("b", "shell")), result("a", "line " * 300)]
    history = history_of([*talk(30), user("Now."), *waiting])
    compacted(history, 2_000)
    assert [message.content for message in waiting] == contents(history)[-3:-1]
