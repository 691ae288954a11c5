"""The older part becomes one summary; ranks merge like a binary counter, and the ledger is kept once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from nca.config.schema import ContextSettings, SummarizeSettings
from nca.context.history import History
from nca.context.ledger import CATEGORIES, USER_WORDS
from nca.context.meter import Meter
from nca.context.plan import no_summarizer
from nca.context.stages.summarize import Sizes, sizes
from nca.context.summary import FOREIGN_HEADERS, HEADER, SummaryReply, SummaryRequest
from nca.context.summary_format import PREFACE
from nca.context.tokens import text_tokens
from nca.context.view import Stub, Summary, Verbatim, View, check_partition, seqs
from nca.messages import Entry, Message
from tests.context.logs import history_of
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


def grow(history: History, messages: list[Message]) -> None:
    for message in messages:
        history.append(Entry(history.head + 1, message))


def test_the_older_part_becomes_one_summary_that_says_what_it_covers() -> None:
    history = history_of([Message("system", "Rules."), *talk(40)])
    proposal = compacted(history, WINDOW, settings=ONLY, summarizer=answering())
    (summary,) = summaries(history)
    assert proposal.stages_used == ("summarize",)
    assert proposal.made_by == summary.made_by == "tester"
    assert summary.text.startswith(f"{HEADER}\n{PREFACE}\n\n{PROSE}")
    assert summary.ranges[0][0] == 2
    shown = sent(history)
    assert shown[0]["content"] == "Rules."
    assert shown[1] == {"role": "user", "content": summary.text}
    assert history.view.tail == summary.ranges[-1][1] + 1
    assert shown[-1]["content"] == talk(40)[-1].content


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
    assert f"<existing_summary>\n{PROSE}\n</existing_summary>" in asked[1]
    assert HEADER not in asked[1]
    assert "ORIGINAL" not in asked[1]


def test_a_model_that_keeps_its_prefix_gets_the_request_s_own_beginning() -> None:
    history = history_of(talk(40))
    before = [entry.message for entry in history.entries]
    live: list[tuple[Message, ...]] = []

    def answer(request: SummaryRequest) -> SummaryReply:
        live.append(request.live)
        return SummaryReply(PROSE, "m")

    compacted(history, WINDOW, settings=ONLY, summarizer=answer)
    last = summaries(history)[0].ranges[-1][1]
    assert list(live[0]) == before[:last]


def test_ranks_merge_like_a_binary_counter() -> None:
    history, covered = history_of([]), 0
    turn = 1
    for count in range(1, 9):
        grow(history, talk(40, start=turn))
        turn += 40
        compacted(history, WINDOW, settings=ONLY, summarizer=answering(f"{PROSE} Part {count}."))
        check_partition(history.view)
        found = summaries(history)
        assert sum(2**summary.rank for summary in found) == count
        ranks = [summary.rank for summary in found]
        assert ranks == sorted(set(ranks), reverse=True)
        hidden = [seq for summary in found for seq in seqs(summary.ranges)]
        assert hidden == list(range(1, len(hidden) + 1))
        assert len(hidden) > covered
        covered = len(hidden)
        assert len({summary.id for summary in found}) == len(found)
    assert [summary.rank for summary in summaries(history)] == [3]


@pytest.mark.parametrize("window", [8_000, 32_000])
def test_the_ledger_is_merged_once_and_no_fact_stands_twice(window: int) -> None:
    history = history_of([])
    for count in range(1, 8):
        work = [user(f"Please always run the {count} tests."), *step(f"r{count}", "x " * 200, path=f"src/m{count}.py")]
        work += step(f"e{count}", f"Error: cannot open file {count}", "shell", command=f"make {count}", is_error=True)
        work += step(f"s{count}", "x " * 200, path="src/shared.py")
        grow(history, [*work, assistant("Done."), *talk(window // 200, start=100 * count)])
        compacted(history, window, settings=ONLY, summarizer=answering(f"{PROSE} Part {count}."))
        found = summaries(history)
        assert found
        assert [bool(summary.ledger) for summary in found] == [False] * (len(found) - 1) + [True]
        newest = found[-1]
        for category in (*CATEGORIES, USER_WORDS):
            facts = newest.ledger.get(category, [])
            assert len(facts) == len(set(facts))
        assert newest.ledger["Files read"].count("src/shared.py") == 1
        assert [f"src/m{number}.py" in newest.ledger["Files read"] for number in range(1, count + 1)] == [True] * count
        assert newest.ledger["Errors"] == [f"Error: cannot open file {number}" for number in range(1, count + 1)]
        text = "\n".join(str(row["content"]) for row in sent(history))
        assert text.count("### Ledger") == 1
        assert text.count("src/shared.py") == 1


def test_an_older_summary_of_another_rank_keeps_its_prose_and_gives_its_ledger() -> None:
    history = history_of(talk(40))
    old = Summary(
        "old", ((1, 4),), f"{HEADER}\nold\n\n### Ledger\nFiles read: z.py", "old", {"Files read": ["z.py"]}, 1
    )
    history.view = View((old,), 5)
    compacted(history, WINDOW, settings=ONLY, summarizer=answering())
    first, second = summaries(history)
    assert (first.id, first.prose, first.ledger, first.rank, first.ranges) == ("old", "old", {}, 1, ((1, 4),))
    assert "z.py" not in first.text
    assert second.ledger["Files read"] == ["z.py"]


def test_the_users_words_are_kept_verbatim() -> None:
    log = [message for number in range(30) for message in (user(f"Wish {number}."), assistant("so " * 150))]
    history = history_of(log)
    compacted(history, WINDOW, settings=ONLY, summarizer=answering())
    text = "\n".join(str(row["content"]) for row in sent(history))
    assert all(f"Wish {number}." in text for number in range(30))


def test_the_newest_whole_turns_stay() -> None:
    history = history_of(talk(40))
    compacted(history, WINDOW, settings=ONLY, summarizer=answering())
    first_kept = history.view.tail
    assert history.message(first_kept).role == "user"
    assert history.head - first_kept >= 9


def test_max_messages_limits_what_stays() -> None:
    history = history_of(talk(40))
    compacted(history, WINDOW, settings=replace(ONLY, max_messages=4), summarizer=answering())
    assert history.head - history.view.tail + 1 == 4


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


def test_sizes_keep_to_settings_shares_and_what_goes_away() -> None:
    settings = ContextSettings()
    assert sizes(settings, 200_000, 100_000, 100_000, 9_000) == Sizes(2_000, 1_000, 3_000)
    assert sizes(settings, 8_000, 100_000, 100_000, 9_000) == Sizes(800, 400, 800)
    small = sizes(settings, 200_000, 600, 100_000, 100)
    assert small.words == 100
    assert small.prose + small.ledger + small.words <= 450
    none = sizes(settings, 200_000, 600, -100, 100)
    assert none.prose + none.ledger + none.words == 0
    in_need = sizes(settings, 200_000, 600, -100, 100, cuttable_raw=2_000)
    assert (in_need.prose, in_need.words) == (0, 100)
    assert 0 < in_need.ledger <= 100
    assert sizes(settings, 200_000, 600, -100, 100, cuttable_raw=100) == none


@pytest.mark.parametrize("summarizer", [answering(PROSE * 40), no_summarizer])
@pytest.mark.parametrize("window", [2_000, 8_000, 64_000])
def test_a_summary_keeps_to_its_shares(window: int, summarizer: Any) -> None:
    history = history_of([message for number in range(window // 100) for message in talk(1, 60, start=number)])
    compacted(history, window, settings=ONLY, summarizer=summarizer)
    (summary,) = summaries(history)
    budget = window - -(-window * 35 // 100)
    assert text_tokens(summary.prose) <= min(2_000, budget // 10)
    assert (
        text_tokens(summary.text) <= min(2_000, budget // 10) + min(1_000, budget // 20) + min(3_000, budget // 10) + 60
    )
    assert Meter().used(history) <= budget


@pytest.mark.parametrize("header", FOREIGN_HEADERS)
def test_another_tool_s_summary_is_merged_and_never_taken_for_talk(header: str) -> None:
    foreign = user(f"{header}\nWe must always keep the ticket ABC-1234 and ABC-1234 in mind.")
    history = history_of([foreign, assistant("I see."), *talk(40)])
    asked: list[str] = []

    def answer(request: SummaryRequest) -> SummaryReply:
        asked.append(request.messages[0].text)
        return SummaryReply(PROSE, "m")

    compacted(history, WINDOW, settings=ONLY, summarizer=answer, summarizer_window=64_000)
    assert "<existing_summary>\nWe must always keep" in asked[0]
    assert asked[0].count("ABC-1234") == 2
    (summary,) = summaries(history)
    assert "ABC-1234" not in "".join(summary.ledger[USER_WORDS])
    assert summary.text.count(HEADER) == 1


@pytest.mark.parametrize("words", range(20, 130, 10))
@pytest.mark.parametrize("below", [1, 20, 60])
def test_a_summary_that_would_not_be_smaller_is_not_made(words: int, below: int) -> None:
    history = history_of([user("why " * words), assistant("so " * 60), user("And?")])
    meter = Meter()
    before = meter.used(history)
    target = before - below
    settings = replace(ONLY, preserve_turns=1)
    proposal = compacted(
        history, 8_000, settings=settings, summarizer=answering(PROSE * 9), meter=meter, target_tokens=target
    )
    assert proposal.compacted == bool(summaries(history))
    assert meter.used(history) < before if proposal.compacted else history.view == View()
