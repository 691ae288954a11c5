"""A record replaces the older part, and the newest steps stay unchanged."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from nca.config.schema import ContextSettings, SummarizeSettings
from nca.context.budget import Budget
from nca.context.driver import run
from nca.context.history import History
from nca.context.meter import Meter
from nca.context.plan import compact, no_summarizer
from nca.context.record.text import ANSWERED, OF_UP_TO, preface
from nca.context.summary import FOREIGN_HEADERS, HEADER, SummaryReply, SummaryRequest
from nca.context.tokens import message_tokens, text_tokens
from nca.context.view import Stub, Summary, Verbatim, View, hidden_by, seqs, without_ranges
from nca.messages import Message
from tests.context.logs import grow, history_of
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
    step,
    talk,
    user,
)

ONLY = ContextSettings(stages=("summarize",))
WINDOW = 8_000


def summaries(history: History) -> list[Summary]:
    return [item for item in history.view.items if isinstance(item, Summary)]


def test_the_older_part_becomes_one_summary_that_says_what_it_covers() -> None:
    history = history_of([Message("system", "Rules."), *talk(40)])
    proposal = compacted(history, WINDOW, settings=ONLY, summarizer=answering())
    (summary,) = summaries(history)
    assert proposal.stages_used == ("summarize",)
    assert proposal.made_by == summary.made_by == "tester"
    assert summary.text.startswith(f"{HEADER}\n{preface(answered=history.last_answer, numbered=True)}\n\n{PROSE}")
    assert summary.ranges[0][0] == 2
    shown = sent(history)
    assert shown[0]["content"] == "Rules."
    assert shown[1] == {"role": "user", "content": summary.text}
    assert history.view.tail == summary.ranges[-1][1] + 1
    assert shown[-1]["content"] == talk(40)[-1].content


def test_a_record_says_up_to_where_the_person_was_answered() -> None:
    """A task that was done, and stands in it word for word, must not look open; one that waits must not look done."""
    log = [*talk(20), user("Rename it."), *step("a", "x " * 900, path="a.py"), user("And the tests too.")]
    history = history_of([*log, *step("b", "y " * 900, path="b.py")])
    compacted(history, WINDOW, target_ratio=0.1, settings=ONLY)
    (summary,) = summaries(history)
    assert history.last_answer == len(talk(20))
    assert ANSWERED.format(len(talk(20))) in summary.text
    assert f"({len(talk(20)) + 1}) Rename it." in summary.text
    one_task = history_of(
        [user("Rename it."), *(row for n in range(20) for row in step(f"c{n}", "x " * 900, path="a.py"))]
    )
    compacted(one_task, WINDOW, target_ratio=0.1, settings=ONLY)
    assert ANSWERED.partition("(")[0] not in summaries(one_task)[0].text


def test_the_role_system_puts_it_right_behind_the_system_prompt() -> None:
    history = history_of([Message("system", "Rules."), *talk(40)])
    settings = replace(ONLY, summarize=SummarizeSettings(role="system"))
    compacted(history, WINDOW, settings=settings, summarizer=answering())
    assert [row["role"] for row in sent(history)[:3]] == ["system", "system", "user"]


def test_the_summarizer_reads_originals_not_stubs_and_never_a_summary_as_talk() -> None:
    log = [*talk(20), user("Read it."), *step("a", "ORIGINAL " * 60, path="a.py"), assistant(), *talk(20)]
    history = history_of(log)
    history.view = View((Verbatim(1, 42), Stub(43, "[Tool result cleared]", "prune")), 44)
    asked: list[str] = []
    lives: list[tuple[Message, ...]] = []

    def answer(request: SummaryRequest) -> SummaryReply:
        asked.append(request.messages[0].text)
        lives.append(request.live)
        return SummaryReply(PROSE, "m")

    compacted(history, 4_000, settings=ONLY, summarizer=answer, summarizer_window=32_000)
    assert "ORIGINAL" in asked[0]
    assert "[Tool result cleared]" not in asked[0]
    assert lives == [()]
    grow(history, talk(40, start=41))
    compacted(history, 4_000, settings=ONLY, summarizer=answer, summarizer_window=32_000)
    assert "<existing_summary>\n### 1. Goal and intent\nTo test the engine with care" in asked[1]
    assert HEADER not in asked[1]
    assert "ORIGINAL" not in asked[1]


@pytest.mark.parametrize(("window", "words"), [(4_000, 25), (8_000, 40), (16_000, 120)])
def test_prose_says_how_far_it_goes_and_is_written_anew_before_much_is_missing_in_it(window: int, words: int) -> None:
    """In small windows a model was asked once: each later record stood for too little to be worth a question."""
    history, told, asked = history_of([]), set[int](), list[str]()

    def answer(request: SummaryRequest) -> SummaryReply:
        asked.append(request.messages[0].text)
        told.update(int(number) for number in re.findall(r"(?m)^\((\d+)\) ", asked[-1].partition("<transcript>")[2]))
        pending = f"### Pending and next step\n- Step {len(asked)} comes next."
        return SummaryReply(f"{pending}\n### Done\n- Part {len(asked)} of the work, {'as was agreed ' * 8}", "m")

    for turn in range(80):
        grow(
            history,
            [user(f"Go on with part {turn}. " + "word " * words), assistant(f"Done: {turn}. " + "more " * words)],
        )
        proposal = compacted(
            history, window, settings=ONLY, summarizer=answer, summarizer_window=32_000, has_recall=True
        )
        for one in summaries(history):
            of = (one.prose_of or one.ranges) if one.prose else ()
            assert set(seqs(of)) <= told, "the prose was never asked about these"
            untold = without_ranges(one.ranges, of)
            missing = sum(message_tokens(history.message(seq)) for seq in seqs(untold))
            assert missing < proposal.target_tokens, "a room of talk, or what was too little for the first question"
            if of:
                assert (OF_UP_TO.format(of[-1][1]) in one.text) == bool(untold)
                assert f"Part {len(asked)} of the work" in one.text
                assert (f"Step {len(asked)} comes next." in one.text) is not bool(untold), "it may be done by now"
    assert len(asked) > 2


def test_who_names_what_to_keep_is_heard_though_results_alone_make_room_and_whatever_was_written_before() -> None:
    asked: list[str] = []

    def answer(request: SummaryRequest) -> SummaryReply:
        asked.append(request.messages[0].text)
        return SummaryReply(f"### Pending\n- Mend the parser bug first, as was agreed. {len(asked)}", "m")

    reads = [m for n in range(8) for m in step(f"r{n}", f"line {n} of the parser\n" * 300, path=f"f{n}.py")]
    history = history_of([user("Where is the parser bug?"), *reads, assistant("In f3.py."), *talk(3)])
    focused: dict[str, Any] = {"is_manual": True, "focus": "the parser bug"}
    proposal = compacted(history, 64_000, summarizer=answer, **focused)
    assert proposal.stages_used == ("summarize",)
    assert "keep above all: the parser bug" in asked[0]
    grow(history, talk(30, words=200, start=4))
    compacted(history, 64_000, summarizer=answer, **focused)
    assert len(asked) == 2
    assert "Where is the parser bug?" in asked[1], "all that is hidden is read again"


def test_an_earlier_record_is_merged_with_at_least_its_room_however_small_the_rest_is() -> None:
    """A newest step that fills the window once left 150 tokens for the prose, and 600 words of it went."""
    long = "### Goal and intent\nTo split the module.\n\n### Files and code\n" + "".join(
        f"- part_{number}.py holds the functions of part {number}, and what they need.\n" for number in range(40)
    )
    asked: list[SummaryRequest] = []

    def answer(request: SummaryRequest) -> SummaryReply:
        asked.append(request)
        return SummaryReply(long, "m")

    history = history_of(talk(200, words=30))
    compacted(history, 16_000, settings=ONLY, summarizer=answer)
    grow(history, [*talk(20, words=30, start=201), user("Read it."), *step("a", "line of it\n" * 1_700, path="a.py")])
    compacted(history, 16_000, settings=ONLY, summarizer=answer)
    text = "\n".join(str(row["content"]) for row in sent(history))
    assert "part_39.py" in text
    assert all(request.max_tokens > text_tokens(long) for request in asked[1:])


def test_a_model_that_keeps_its_prefix_gets_the_request_s_own_beginning() -> None:
    history = history_of(talk(40))
    before = [entry.message for entry in history.entries]
    live: list[tuple[Message, ...]] = []

    def answer(request: SummaryRequest) -> SummaryReply:
        live.append(request.live)
        return SummaryReply(PROSE, "m")

    compacted(history, WINDOW, settings=ONLY, summarizer=answer)
    last = summaries(history)[0].ranges[-1][1]
    assert list(live[0]) == before[: len(live[0])]
    assert len(live[0]) >= last


def test_the_users_words_are_kept_verbatim() -> None:
    log = [message for number in range(30) for message in (user(f"Wish {number}."), assistant("so " * 150))]
    history = history_of(log)
    compacted(history, WINDOW, settings=ONLY, summarizer=answering())
    text = "\n".join(str(row["content"]) for row in sent(history))
    assert all(f"Wish {number}." in text for number in range(30))


def test_max_messages_limits_what_stays() -> None:
    history = history_of(talk(120, words=6))
    compacted(history, WINDOW, settings=replace(ONLY, max_messages=4), summarizer=answering())
    assert history.head - history.view.tail + 1 <= 4


@pytest.mark.parametrize("turns", [1, 3, 6])
def test_the_newest_turns_stay_that_a_person_wants_to_stay(turns: int) -> None:
    log = [message for n in range(30) for message in (user(f"{n}. {'word ' * 30}"), assistant(f"{n}: {'more ' * 120}"))]
    history = history_of([*log, user("Go on.")])
    compacted(history, WINDOW, settings=replace(ONLY, preserve_turns=turns), target_tokens=2_500)
    assert history.view.tail <= history.head - 2 * (turns - 1)
    compacted(history, WINDOW, settings=replace(ONLY, preserve_turns=30), target_tokens=2_500)
    assert any("What the user said" in one.text for one in summaries(history)), "they take no more than their share"


@pytest.mark.parametrize("target", range(1_500, 4_000, 250))
def test_the_newest_answer_stays_behind_its_question(target: int) -> None:
    log = [message for n in range(20) for message in (user(f"{n}. Why?"), assistant(f"{n} says more of it. " * 45))]
    history = history_of(log)
    compacted(history, WINDOW, settings=ONLY, target_tokens=target)
    assert hidden_by(history.view, history.head) is None
    assert [row["role"] for row in sent(history)][-2:] == ["user", "assistant"]


def test_earlier_messages_have_the_share_that_a_person_sets() -> None:
    log = [
        message for n in range(300) for message in (user(f"{n}. {'word ' * 30}"), assistant(f"{n}: {'more ' * 120}"))
    ]
    history, small = history_of(log), history_of(log)
    compacted(history, 32_000, settings=ONLY)
    compacted(small, 32_000, settings=replace(ONLY, keep_recent_ratio=0.001))
    assert history.head - history.view.tail > 8
    assert small.head - small.view.tail <= 4, "the answer before the newest message costs nothing: it is in the record"


@pytest.mark.parametrize("window", [4_000, 8_000, 32_000])
@pytest.mark.parametrize("words", [40, 400, 4_000])
def test_a_question_that_was_answered_stays_with_its_answer(window: int, words: int) -> None:
    log = [m for n in range(40) for m in (user(f"{n}. {'word ' * 60}"), assistant(f"{n}: {'more ' * words}"))]
    history = history_of(log)
    compacted(history, window, settings=ONLY)
    assert hidden_by(history.view, history.head) is None
    assert sent(history)[-1]["content"].startswith("39: more")


def test_a_pinned_message_that_a_record_hid_is_shown_again() -> None:
    history = history_of([*talk(60, words=40), user("Go on.")])
    compacted(history, WINDOW, settings=ONLY)
    hidden = summaries(history)[0].ranges[0][0] + 4
    history.pins = frozenset({hidden})
    grow(history, [assistant("more " * 2_000), user("And now?")])
    compacted(history, WINDOW, settings=ONLY)
    assert hidden_by(history.view, hidden) is None
    assert str(history.message(hidden).content) in [row["content"] for row in sent(history)]


def test_the_lines_of_a_record_that_came_along_name_no_message() -> None:
    record = f"{HEADER}\n{preface(answered=0, numbered=False)}\n\n### What the user said\n- Use tabs.\n- Never push."
    history = history_of([Message("user", record, source="nca"), *talk(90, words=30), user("Go on.")])
    compacted(history, WINDOW, settings=ONLY)
    (made,) = summaries(history)
    assert "\n- Use tabs.\n- Never push." in made.text
    assert "(1)" not in made.text


def test_of_a_turn_larger_than_the_window_the_newest_steps_stay() -> None:
    history = history_of(agent_turn(100))
    compacted(history, WINDOW, settings=ONLY, summarizer=answering())
    (summary,) = summaries(history)
    assert summary.ranges[0][0] == 2
    shown = sent(history)
    assert "Do turn." in [row["content"] for row in shown]
    assert shown[-1]["content"] == history.message(history.head).content


def test_pins_stay_where_they_are() -> None:
    history = history_of(talk(40), {5, 20})
    compacted(history, WINDOW, settings=ONLY, summarizer=answering())
    covered = {seq for summary in summaries(history) for seq in seqs(summary.ranges)}
    assert covered
    assert not covered & {5, 20}
    shown = [row["content"] for row in sent(history)]
    assert history.message(5).content in shown
    assert history.message(20).content in shown


def test_too_little_is_not_worth_a_summary() -> None:
    history = history_of([user("Hi"), assistant("Hello"), user("x" * 9_000)])
    proposal = compacted(history, 6_000, settings=ONLY, summarizer=answering())
    assert summaries(history) == []
    assert not proposal.compacted


def test_an_open_step_is_not_summarized() -> None:
    history = history_of([*talk(40), user("Now."), calling(call("a"), call("b")), result("a", "first")])
    compacted(history, WINDOW, settings=ONLY, summarizer=answering())
    assert summaries(history)[0].ranges[-1][1] < 81


@pytest.mark.parametrize("words", range(20, 130, 10))
@pytest.mark.parametrize("below", [1, 20, 60])
def test_a_summary_that_would_not_be_smaller_is_not_made(words: int, below: int) -> None:
    history = history_of([user("why " * words), assistant("so " * 60), user("And?")])
    meter = Meter()
    before = meter.used(history)
    target = before - below
    proposal = compacted(
        history, 8_000, settings=ONLY, summarizer=answering(PROSE * 9), meter=meter, target_tokens=target
    )
    assert proposal.compacted == bool(summaries(history))
    assert meter.used(history) < before if proposal.compacted else history.view == View()


@pytest.mark.parametrize("window", [4_000, 8_000, 16_000, 64_000, 128_000])
def test_all_of_the_room_is_used(window: int) -> None:
    said = "line {} of output\n" * 12
    work = [m for n in range(window // 40) for m in step(f"c{n}", said.format(*[n] * 12), path=f"src/m{n % 9}.py")]
    history = history_of([user("Fix the parser."), *work, assistant("Done."), user("Go on.")])
    proposal = compacted(history, window)
    assert 0.85 <= proposal.tokens_after / proposal.target_tokens <= 1.0


@pytest.mark.parametrize("window", [4_000, 8_000, 32_000])
def test_rules_and_words_outlive_any_number_of_compactions(window: int) -> None:
    history = history_of([user("I am Marta. Never touch i18n.py. The bucket is hum-stage-7.")])
    for count in range(1, 9):
        grow(history, [*talk(window // 400, start=100 * count), *agent_turn(window // 400, name=f"work{count}")])
        compacted(history, window)
        text = "\n".join(str(row["content"]) for row in sent(history))
        assert "Never touch i18n.py." in text
        assert "I am Marta." in text
        assert "hum-stage-7" in text
        assert len(summaries(history)) <= 1
    assert summaries(history)


def test_a_burst_of_results_is_cut_before_any_rule_goes() -> None:
    talked = [m for n in range(12) for m in (user(f"Rule {n}: never touch file{n}.py."), assistant("Good."))]
    calls = [call(f"r{n}", "recall", question=str(n)) for n in range(10)]
    burst = [user("Look all of it up."), calling(*calls), *(result(f"r{n}", f"hit {n}\n" * 400) for n in range(10))]
    history = history_of([*talked, *talk(20), *burst])
    proposal = compacted(history, 12_000)
    text = "\n".join(str(row["content"]) for row in sent(history))
    assert all(f"never touch file{n}.py" in text for n in range(12))
    assert all(f"hit {n}\nhit {n}" in text for n in range(10))
    assert proposal.tokens_after <= proposal.target_tokens


def test_messages_that_the_model_names_come_first_however_old() -> None:
    """The numbers are checked: the log has no message 9,999."""
    history = history_of(
        [*talk(40, words=60), user("El archivo schema.sql no se edita."), *talk(200, words=60, start=41)]
    )
    compacted(history, 8_000, settings=ONLY, summarizer=answering(f"{PROSE}\n\nKeep: 81, 9999"))
    (summary,) = summaries(history)
    assert "(81) El archivo schema.sql no se edita." in summary.text
    assert "Keep: 81" in summary.prose
    assert "Keep:" not in summary.text
    without = history_of([entry.message for entry in history.entries])
    compacted(without, 8_000, settings=ONLY)
    assert "(81)" not in summaries(without)[0].text


def test_no_model_is_asked_where_its_answer_would_have_no_room() -> None:
    asked: list[SummaryRequest] = []

    def answer(request: SummaryRequest) -> SummaryReply:
        asked.append(request)
        return SummaryReply(PROSE, "m")

    compacted(history_of(talk(20)), 1_000, settings=ONLY, summarizer=answer)
    assert asked == []


@pytest.mark.parametrize(("most", "target_ratio"), [(0, 0.65), (200, 0.65), (0, 0.2)])
def test_an_answer_is_asked_for_within_its_shares_and_what_a_person_set(most: int, target_ratio: float) -> None:
    asked: list[int] = []

    def answer(request: SummaryRequest) -> SummaryReply:
        asked.append(request.max_tokens)
        return SummaryReply(PROSE, "m")

    settings = replace(ONLY, summarize=SummarizeSettings(max_tokens=most))
    history = history_of(talk(40))
    proposal = compacted(history, WINDOW, settings=settings, summarizer=answer, target_ratio=target_ratio)
    assert 150 <= asked[0] <= min(proposal.target_tokens // 4, proposal.budget_tokens // 10, most or WINDOW)


def test_what_models_wrote_for_a_larger_window_gives_way_to_a_quarter_of_the_room() -> None:
    history = history_of(talk(200))
    written = PROSE + "\n".join(f"- Detail {number} of the work that was agreed upon" for number in range(200))
    compacted(history, 64_000, settings=ONLY, summarizer=answering(written), target_ratio=0.1)
    proposal = compacted(history, WINDOW, settings=ONLY)
    (summary,) = summaries(history)
    assert 0 < text_tokens(summary.prose) <= proposal.target_tokens // 4


def test_a_step_that_wrote_a_long_file_leaves_room_for_the_persons_words() -> None:
    """Its arguments cannot be cut, so they are no part of the target's room."""
    rules = [f"Rule {n}: never touch the part of the house with the number {n}." for n in range(60)]
    turns = [message for rule in rules for message in (user(rule), assistant("Understood. " * 90))]
    wrote = step("w", "Wrote it.", name="write_file", path="a.py", content="value = 1\n" * 4_000)
    history = history_of([*turns, user("Now write it."), *wrote])
    compacted(history, 64_000, settings=replace(ONLY, target_ratio=0.48))
    shown = str(sent(history))
    assert [rule for rule in rules if rule not in shown] == []


def test_the_target_rises_before_a_message_of_the_person_goes() -> None:
    """Unless somebody has set it; and no further than compactions stay rare."""
    rules = [
        f"Rule {n}: never touch part {n} of the house, and ask me before what is near is moved." for n in range(1_500)
    ]
    log = [message for rule in rules for message in (user(rule), assistant("Understood. " * 20))]
    missing, targets = [], []
    for ratio in ("auto", 0.4):
        history, budget = history_of(log), Budget.of(128_000)
        proposal = run(compact(history, Meter(), budget, replace(ONLY, target_ratio=ratio)), no_summarizer)
        history.view = proposal.view
        shown = str(sent(history))
        missing.append(sum(rule not in shown for rule in rules))
        targets.append(proposal.target_tokens / budget.budget_tokens)
        assert proposal.tokens_after <= proposal.target_tokens
    assert missing[0] == 0 < missing[1]
    assert targets[1] < 0.41 < targets[0] <= 0.72


def test_bounds_of_a_person_hold() -> None:
    history = history_of([m for n in range(80) for m in (user(f"Wish {n}: " + "so " * 30), assistant("Good."))])
    settings = replace(ONLY, summarize=SummarizeSettings(user_turns_tokens=200))
    compacted(history, 8_000, settings=settings)
    (summary,) = summaries(history)
    said = summary.text.partition("### What the user said")[2].partition("###")[0]
    assert 0 < len(said) < 200 * 4 + 40


@pytest.mark.parametrize("header", FOREIGN_HEADERS)
def test_another_tool_s_summary_is_merged_and_never_taken_for_talk(header: str) -> None:
    foreign = Message("user", f"{header}\nWe must always keep the ticket ABC-1234 and ABC-1234 in mind.", source="nca")
    history = history_of([foreign, assistant("I see."), *talk(60)])
    asked: list[str] = []

    def answer(request: SummaryRequest) -> SummaryReply:
        asked.append(request.messages[0].text)
        return SummaryReply(PROSE, "m")

    compacted(history, 6_000, settings=ONLY, summarizer=answer, summarizer_window=64_000)
    assert "<existing_summary>\nWe must always keep" in asked[0]
    (summary,) = summaries(history)
    assert "ABC-1234" not in summary.text
    assert summary.text.count(HEADER) == 1


def test_files_that_were_changed_stay_known_over_compactions() -> None:
    history = history_of([user("Change them all.")])
    for count in range(4):
        edits = [
            message
            for n in range(30)
            for message in step(f"{count}_{n}", "done", "edit_file", path=f"f{n % 7}.py", new_text="x")
        ]
        grow(history, [*edits, assistant("Done."), user("And more.")])
        compacted(history, 4_000)
    assert summaries(history)
    text = str(sent(history))
    assert all(f"f{n}.py" in text for n in range(7))
