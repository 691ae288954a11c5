"""A view while it is edited: its parts, counted as what they become."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nca.config.schema import ContextSettings
from nca.context.budget import Budget
from nca.context.draft import Draft, covered
from nca.context.driver import run
from nca.context.meter import Meter
from nca.context.plan import compact, no_summarizer
from nca.context.record.steps import LEAST_RESULT_TOKENS
from nca.context.request import resolve
from nca.context.view import Marker, Stub, Summary, Verbatim, View, check_partition
from nca.errors import ContextDoesNotFit
from nca.messages import MediaPart, Message, TextPart
from tests.context.logs import history_of, logs
from tests.context.samples import (
    agent_turn,
    answering,
    assistant,
    call,
    calling,
    compacted,
    draft_of,
    result,
    some,
    step,
    talk,
    user,
)

SLACK_TOKENS = 100
"""Raw tokens: a marker, the repairs and the shortest contents that stay where all else is fixed."""


@some
@given(logs(), st.sets(st.integers(1, 20), max_size=3))
def test_a_fresh_draft_is_the_history_s_view_at_its_cost(messages: list[Message], pins: set[int]) -> None:
    draft = draft_of(messages, pins)
    assert draft.view() == View()
    assert draft.raw == draft.meter.raw(draft.history)
    assert draft.settle() == draft.tokens == draft.meter.used(draft.history)
    assert [seq for block in draft.blocks() for seq in block.seqs] == list(range(1, len(messages) + 1))
    assert draft.fixed_tokens() <= draft.tokens + draft.meter.scaled(40 * len(messages))


@some
@given(logs(), st.data())
def test_any_hiding_is_a_partition_and_settles_at_its_exact_cost(messages: list[Message], data: st.DataObject) -> None:
    draft = draft_of(messages)
    blocks = draft.blocks()
    first = data.draw(st.integers(0, len(blocks) - 1))
    last = data.draw(st.integers(first, len(blocks) - 1))
    draft.replace(blocks[first : last + 1], Marker("m", covered(blocks[first : last + 1]), "[out]"))
    view = draft.view()
    check_partition(view)
    draft.settle()
    draft.history.view = view
    assert draft.tokens == Meter().used(draft.history)
    again = Draft(draft.history, Meter())
    assert again.view() == view
    assert again.tokens == draft.tokens


def test_a_rich_view_comes_back_as_it_was() -> None:
    history = history_of([*talk(4), *agent_turn(3), *talk(2)])
    view = View(
        (
            Summary("s", ((1, 3), (6, 6)), "sum"),
            Verbatim(4, 5),
            Marker("c", ((7, 7),), ""),
            Verbatim(8, 10),
            Stub(11, "[Tool result cleared]", "prune"),
        ),
        12,
    )
    history.view = view
    draft = Draft(history, Meter())
    assert draft.view() == view
    assert draft.tokens == Meter().used(history)
    stubbed = [block for block in draft.blocks() if block.stubs]
    assert [(block.first, block.last, list(block.stubs)) for block in stubbed] == [(10, 11, [11])]


def test_turns_and_what_stands_before_them() -> None:
    draft = draft_of([Message("system", "Rules."), assistant(), *talk(2), *agent_turn(2)])
    assert [block.turn for block in draft.blocks()] == [0, 0, 1, 1, 2, 2, 3, 3, 3]
    assert [[block.first for block in turn] for turn in draft.turns()] == [[3, 4], [5, 6], [7, 8, 10]]


def test_a_synthetic_user_message_begins_no_turn() -> None:
    draft = draft_of([user(), Message("user", "A record.", source="nca"), assistant()])
    assert [block.turn for block in draft.blocks()] == [1, 1, 1]


def test_stubs_save_what_they_say() -> None:
    draft = draft_of([user(), *step("a", "line " * 200), user()])
    block = draft.blocks()[1]
    before = draft.raw
    promised = draft.saving(block, 3, "[gone]")
    assert draft.put_stub(block, 3, "[gone]", "prune") == promised == before - draft.raw
    assert draft.saving(block, 3, "[gone]") == 0
    assert draft.saving(block, 3, "[gone] and more than that") < 0
    assert draft.shown(block)[1].content == "[gone]"


@some
@given(st.text("ab .", min_size=1, max_size=300).filter(str.strip))
def test_a_stub_that_is_taken_back_costs_what_the_message_costs(text: str) -> None:
    picture = MediaPart("image", {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}})
    thoughts = {"thinking_blocks": [{"type": "thinking", "thinking": "why? " * 40, "signature": "s"}]}
    draft = draft_of(
        [Message("user", (TextPart("See."), picture)), Message("assistant", "Seen. " * 90, extra=thoughts), user("Go.")]
    )
    before = draft.settle()
    for block in draft.blocks():
        for seq in block.seqs:
            draft.put_stub(block, seq, text, "prune")
            assert draft.tokens == draft.settle()
            draft.remove_stub(block, seq)
            assert draft.tokens == draft.settle() == before


def test_fixed_is_prompt_pins_system_and_the_newest_user_message() -> None:
    log = [Message("system", "Rules. " * 20), *talk(5), user("newest " * 20)]
    history = history_of(log, {3})
    draft = Draft(history, Meter(system_prompt="You are a test."))
    meter = draft.meter
    parts = history.run_tokens(1, 1) + history.run_tokens(3, 3) + history.run_tokens(12, 12)
    assert draft.fixed_tokens() == meter.scaled(meter.fixed_raw + parts)


def test_an_open_step_is_fixed_with_what_it_holds_so_far() -> None:
    waiting = [calling(call("a", "shell", command="make " * 90), call("b", "shell")), result("a", "line " * 3_000)]
    closed = draft_of([*talk(5), user("Now."), *waiting, result("b")])
    history = history_of([*talk(5), user("Now."), *waiting])
    draft = Draft(history, Meter())
    own = history.run_tokens(11, 13)
    assert own > 3_000
    assert draft.meter.scaled(draft.meter.fixed_raw + own) <= draft.fixed_tokens() <= draft.tokens
    # Of new results as much is fixed as they are cut to at most; of their calls, all.
    least = history.run_tokens(11, 12) + LEAST_RESULT_TOKENS + closed.history.run_tokens(14, 14)
    assert closed.fixed_tokens() == closed.meter.scaled(closed.meter.fixed_raw + least)


def test_a_pin_inside_a_step_fixes_all_of_it() -> None:
    """A call does not stay without its results, nor a result without its call."""
    history = history_of([user(), *step("a", "line " * 200), assistant(), user("Now.")], {3})
    draft = Draft(history, Meter())
    parts = history.run_tokens(2, 3) + history.run_tokens(5, 5)
    assert draft.fixed_tokens() == draft.meter.scaled(draft.meter.fixed_raw + parts)


@some
@given(logs(), st.sampled_from(["", "short", "line " * 400, "日本語" * 400]), st.sampled_from([2_000, 8_000, 128_000]))
def test_a_manual_compaction_never_aims_below_what_no_stage_may_touch(
    messages: list[Message], text: str, window: int
) -> None:
    waiting = [calling(call("x1", "shell", command=text), call("x2", "shell")), result("x1", text)] if text else []
    history = history_of([*messages, user("Now."), *waiting])
    draft = Draft(history, Meter())
    fixed = draft.fixed_tokens()
    slack = draft.meter.scaled(SLACK_TOKENS)
    try:
        proposal = compacted(history, window, is_manual=True)
    except ContextDoesNotFit:
        proposal = None
    if proposal is None:
        assert fixed + slack > Budget.of(window).budget_tokens
        return
    assert proposal.target_tokens >= min(fixed, proposal.budget_tokens)
    assert proposal.tokens_after <= max(proposal.target_tokens, fixed) + slack


def test_a_manual_compaction_during_a_large_open_step_reaches_its_target_and_no_more() -> None:
    waiting = [calling(call("a", "shell", command="make"), call("b", "shell")), result("a", "line " * 4_000)]
    history = history_of([*talk(80), user("Now."), *waiting])
    proposal = compacted(history, 32_000, is_manual=True, summarizer=answering())
    assert proposal.tokens_after <= proposal.target_tokens
    assert [entry.seq for entry in history.visible()][-3:] == [161, 162, 163]


def test_what_is_covered_is_merged() -> None:
    draft = draft_of(talk(3))
    assert covered([*draft.blocks()[:3], Marker("m", ((4, 4), (6, 6)), "")]) == ((1, 4), (6, 6))


def test_a_stub_behind_messages_that_a_summary_took_from_their_middle() -> None:
    history = history_of(talk(4))
    view = View((Summary("s", ((1, 2), (4, 4)), "sum"), Verbatim(3, 3), Stub(5, "[cut]", "truncate")), 6)
    history.view = view
    draft = Draft(history, Meter())
    assert draft.view() == view
    assert draft.tokens == Meter().used(history)


def test_results_that_the_model_has_not_seen_stay_and_are_cut_only_at_last() -> None:
    steps = [step(f"c{number}", f"line {number} of it\n" * 60) for number in range(20)]
    log = [user("Read them all."), *(message for one in steps for message in one)]
    history, meter = history_of(log), Meter()
    budget = Budget.of(4_000, 1_000)
    view = run(compact(history, meter, budget, ContextSettings()), no_summarizer).view
    shown = resolve(history, view)
    assert shown[-2:] == steps[-1], "the newest step is what the model waits for"
    huge = [*log, *step("last", "word " * 9_000)]
    view = run(compact(history_of(huge), meter, budget, ContextSettings()), no_summarizer).view
    shown = resolve(history_of(huge), view)
    assert shown[-1].tool_call_id == "last"
    assert shown[-1].text.startswith("word word")
    assert meter.used_with(history_of(huge), view) <= budget.budget_tokens


def test_results_are_seen_once_an_answer_or_the_person_follows() -> None:
    log = [user("Read."), *step("a", "out " * 500)]
    assert draft_of(log).blocks()[-1].is_unseen
    assert not any(block.is_unseen for block in draft_of([*log, assistant("Done.")]).blocks())
    assert not any(block.is_unseen for block in draft_of([*log, user("Never mind.")]).blocks())
