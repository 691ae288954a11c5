"""The strategies: Neuron's behaviour and texts, and a valid request whatever the log."""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import nca
from nca.context.validate import CHECKS
from nca.messages import Message
from nca.wire import message_to_dict
from tests.context.logs import logs

SYSTEM = {"role": "system", "content": "You are a helpful assistant."}
CLEARED = "[tool result cleared]"
HEADER = "[Summary of earlier conversation]"
PROSE = "The user asked about Rust, and the assistant explained ownership, borrowing and the checks of the compiler."


def user(text: str = "Go on.") -> dict[str, Any]:
    return {"role": "user", "content": text}


def answer(text: str = "Done.") -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def step(*ids: str, text: str = "found " * 50, **more: Any) -> list[dict[str, Any]]:
    calls = [{"id": id, "type": "function", "function": {"name": "grep", "arguments": "{}"}} for id in ids]
    results = [{"role": "tool", "content": f"{id}: {text}", "tool_call_id": id, **more} for id in ids]
    return [{"role": "assistant", "content": None, "tool_calls": calls}, *results]


RUST = [
    SYSTEM,
    user("What is Rust? " * 20),
    answer("Rust is a systems programming language... " * 20),
    user("How about memory safety?"),
    answer("Rust uses ownership and borrowing... " * 20),
    user("What about async?"),
    answer("Rust supports async/await via futures..."),
]


def contents(rows: Sequence[Mapping[str, Any]]) -> list[Any]:
    return [row["content"] for row in rows]


# The sliding window


def test_a_sliding_window_keeps_the_system_and_the_newest() -> None:
    strategy = nca.SlidingWindow(2, 500)
    assert strategy.compact(RUST) == [SYSTEM, RUST[5], RUST[6]]


def test_it_is_asked_by_the_estimate() -> None:
    tokens = nca.SlidingWindow(2, 0).token_estimate(RUST)
    assert tokens == nca.estimate_messages_tokens(RUST)
    assert nca.SlidingWindow(2, tokens - 1).should_compact(RUST, tokens)
    assert not nca.SlidingWindow(2, tokens).should_compact(RUST, tokens)
    assert nca.SlidingWindow(2, 0, preset="neuron").token_estimate(RUST) == nca.estimate_messages_tokens(
        RUST, preset="neuron"
    )
    assert nca.SlidingWindow(2, 0).token_estimate([]) == 0


def test_a_window_wider_than_the_conversation_changes_nothing() -> None:
    assert nca.SlidingWindow(10, 0).compact(RUST) == RUST


def test_a_window_never_begins_between_a_call_and_its_results() -> None:
    rows = [user("one"), answer("two"), user("three"), *step("a", "b"), answer("four")]
    assert nca.SlidingWindow(2, 0).compact(rows) == rows[2:]
    assert nca.SlidingWindow(1, 0).compact(rows) == [user("three"), answer("four")]


def test_the_newest_user_message_stays_in_a_long_turn() -> None:
    rows = [user("old"), answer("old " * 50), user("The task."), *step("a"), *step("b"), *step("c")]
    assert nca.SlidingWindow(2, 0).compact(rows) == [user("The task."), *step("c")]
    assert nca.SlidingWindow(0, 0).compact(rows) == [user("The task.")]


def test_an_open_step_stays() -> None:
    rows = [user("old " * 50), answer("old " * 50), user("The task."), step("a", "b")[0], step("a", "b")[1]]
    kept = nca.SlidingWindow(0, 0).compact(rows)
    assert kept[:3] == [user("The task."), *rows[3:5]]
    assert kept[3]["content"] == "[Tool result unavailable - conversation was compacted]"


# Clearing of tool results


def test_old_results_are_cleared() -> None:
    rows = [user("Look."), *step("a"), *step("b", "c"), *step("d"), answer()]
    cleared = nca.ToolResultClearing(2, 0).compact(rows)
    assert [row["content"] for row in cleared if row["role"] == "tool"] == [
        CLEARED,
        CLEARED,
        rows[5]["content"],
        rows[7]["content"],
    ]
    assert [row.get("tool_call_id") for row in cleared] == [row.get("tool_call_id") for row in rows]
    assert nca.ToolResultClearing(2, 0).compact(cleared) == cleared


def test_a_result_shorter_than_the_placeholder_and_a_failure_s_first_line_stay() -> None:
    rows = [user("Look."), *step("a", text="ok"), *step("b", text="no such file\n" + "trace " * 90, _error=True)]
    cleared = nca.ToolResultClearing(0, 0).compact([*rows, answer()])
    assert cleared[2]["content"] == "a: ok"
    assert cleared[4]["content"] == f"{CLEARED} b: no such file"


# Summaries


def test_older_messages_become_one_summary() -> None:
    asked: list[Any] = []

    def summarizer(messages: list[dict[str, Any]]) -> str:
        asked.extend(messages)
        return PROSE

    rows = nca.Summarization(summarizer, 2, 500).compact(RUST)
    assert rows == [SYSTEM, user(f"{HEADER}\n{PROSE}"), RUST[5], RUST[6]]
    assert "systems programming language" in asked[0]["content"]
    assert "What about async?" not in asked[0]["content"]


def test_an_earlier_summary_is_merged_and_not_summarized_as_talk() -> None:
    asked: list[str] = []

    def summarizer(messages: list[dict[str, Any]]) -> str:
        asked.append(messages[0]["content"])
        return "Second. " + PROSE

    once = nca.Summarization(lambda _: PROSE, 2, 0).compact(RUST)
    grown = [*once, user("And generics? " * 40), answer("They are monomorphized... " * 40), user("Thanks."), answer()]
    twice = nca.Summarization(summarizer, 2, 0).compact(grown)
    assert twice == [SYSTEM, user(f"{HEADER}\nSecond. {PROSE}"), user("Thanks."), answer()]
    assert f"<existing_summary>\n{PROSE}\n</existing_summary>" in asked[0]
    assert asked[0].count(PROSE) == 1


def test_a_summary_in_one_long_turn_stands_behind_its_task() -> None:
    rows = [user("The task."), *[row for n in range(9) for row in step(f"c{n}")], answer()]
    once = nca.Summarization(lambda _: PROSE, 2, 0).compact(rows)
    assert contents(once)[:2] == ["The task.", f"{HEADER}\n{PROSE}"]
    again = [*once, *[row for n in range(9) for row in step(f"d{n}")], answer()]
    twice = nca.Summarization(lambda _: PROSE.replace("Rust", "Go"), 2, 0).compact(again)
    assert sum(str(row["content"]).startswith(HEADER) for row in twice) == 1
    assert twice[0] == user("The task.")


def broken(_: Any) -> str:
    raise RuntimeError("no")


@pytest.mark.parametrize("summarizer", [None, broken, lambda _: "", lambda _: None, lambda _: "I'm sorry, I can't."])
def test_without_a_usable_answer_code_writes_the_summary(summarizer: Any) -> None:
    rows = nca.Summarization(summarizer, 2, 0).compact(RUST)
    assert rows[1]["content"].startswith(f"{HEADER}\n")
    assert "Rust" in rows[1]["content"]
    assert rows[2:] == RUST[5:]


def test_code_keeps_what_it_told_before_and_its_summary_does_not_grow_for_ever() -> None:
    strategy = nca.Summarization(None, 2, 0)
    rows = [SYSTEM, user("Never touch lock.py, whatever the reason. " + "It is generated. " * 10)]
    sizes = []
    for number in range(40):
        done = answer(f"Part {number} is written. " * 12)
        rows += [user(f"Now part {number}, please."), *step(f"c{number}", text="found it " * 60), done]
        rows = strategy.compact(rows)
        if not number:
            continue
        (summary,) = [row for row in rows if str(row["content"]).startswith(HEADER)]
        assert "Never touch lock.py" in summary["content"]
        assert len(set(re.findall("(?m)^### .*", summary["content"]))) == summary["content"].count("### ")
        sizes.append(nca.estimate_tokens(summary["content"]))
    assert max(sizes) < 1_300
    assert "part 0," in summary["content"]
    assert "part 38," in summary["content"]


def test_what_a_model_wrote_stays_beside_what_code_tells_later() -> None:
    once = nca.Summarization(lambda _: PROSE, 2, 0).compact(RUST)
    grown = [*once, user("Use generics. " * 40), answer("They are monomorphized... " * 40), user("Thanks."), answer()]
    twice = nca.Summarization(None, 2, 0).compact(grown)
    assert twice[0] == SYSTEM
    assert twice[1]["content"].startswith(f"{HEADER}\n{PROSE}\n\n")
    assert "Use generics." in twice[1]["content"]
    assert twice[2:] == [user("Thanks."), answer()]


def test_a_summary_that_would_not_be_smaller_is_not_made() -> None:
    rows = [user("Hi"), answer("Hello"), user("Bye"), answer("Bye")]
    assert nca.Summarization(lambda _: "They greeted each other. " * 20, 2, 0).compact(rows) == rows


# Several in order


def test_the_cheapest_comes_first_and_is_enough() -> None:
    rows = [user("Look."), *step("a", text="found " * 900), *step("b"), answer("It is there."), user("Thanks.")]
    both = nca.Composite([nca.ToolResultClearing(1, 0), nca.SlidingWindow(1, 0)], 600)
    assert both.should_compact(rows, both.token_estimate(rows))
    once = both.compact(rows)
    assert once[2]["content"] == CLEARED
    assert len(once) == len(rows)
    assert both.token_estimate(once) <= 600
    tight = nca.Composite([nca.ToolResultClearing(1, 0), nca.SlidingWindow(1, 0)], 50)
    assert tight.compact(rows) == [user("Thanks.")]


def test_under_its_limit_a_composite_does_nothing() -> None:
    assert nca.Composite([nca.SlidingWindow(0, 0)], 100_000).compact(RUST) == RUST


class Rogue:
    """A strategy that somebody wrote in a hurry."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def should_compact(self, messages: Sequence[Mapping[str, Any]], token_count: int) -> bool:
        return True

    def compact(self, messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        given: list[dict[str, Any]] = self.answer(messages)
        return given

    def token_estimate(self, messages: Sequence[Mapping[str, Any]]) -> int:
        return 0


def test_what_a_strategy_breaks_is_repaired_and_what_grows_is_not_taken() -> None:
    rows = [user("Look."), *step("a", text="found " * 90), answer(), user("Thanks.")]
    halves = nca.Composite([Rogue(lambda messages: list(messages[2:]))], 10).compact(rows)
    assert not any(nca.validate_request(halves, provider) for provider in CHECKS)
    assert nca.Composite([Rogue(lambda messages: [*messages, *messages])], 10).compact(rows) == rows

    def spoil(messages: Any) -> Any:
        messages[0]["content"] = "spoiled"
        return messages

    before = copy.deepcopy(rows)
    nca.Composite([Rogue(spoil)], 10).compact(rows)
    assert rows == before


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (None, "Rogue.compact gave messages: expected a list of messages, found nothing"),
        ([], "Rogue.compact gave messages: the list is empty"),
        ([{"role": "robot", "content": "x"}], "Rogue.compact gave message 1: role 'robot' is not known"),
    ],
)
def test_an_answer_that_is_no_conversation_is_refused(given: Any, said: str) -> None:
    with pytest.raises(nca.InvalidMessages) as refused:
        nca.Composite([Rogue(lambda _: given)], 1).compact(RUST)
    assert said in str(refused.value)


def test_a_composite_is_a_strategy_itself() -> None:
    inner = nca.Composite([nca.ToolResultClearing(0, 0)], 1)
    assert isinstance(inner, nca.Strategy)
    assert nca.Composite([inner, nca.SlidingWindow(2, 0)], 1).compact(RUST) == [SYSTEM, RUST[5], RUST[6]]


# Whatever the log


def strategies(keep: int, provider: str) -> list[Any]:
    return [
        nca.SlidingWindow(keep, 0, provider=provider),
        nca.ToolResultClearing(keep, 0, provider=provider),
        nca.Summarization(lambda _: PROSE, keep, 0, provider=provider),
        nca.Summarization(None, keep, 0, provider=provider),
        nca.Composite([nca.ToolResultClearing(keep, 0), nca.SlidingWindow(keep, 0)], 0, provider=provider),
    ]


@given(logs(), st.integers(0, 6), st.integers(0, 4), st.sampled_from(["", "openai", "anthropic", "mistral"]))
def test_it_is_valid_and_smaller_or_the_same(messages: list[Message], keep: int, which: int, provider: str) -> None:
    rows = [message_to_dict(message, annotate=True) for message in messages]
    before = copy.deepcopy(rows)
    strategy = strategies(keep, provider)[which]
    whole = nca.SlidingWindow(10_000, 0, provider=provider).compact(rows)
    compacted = strategy.compact(rows)
    assert rows == before
    for name in CHECKS if not provider else [provider]:
        assert not nca.validate_request(compacted, name)
    assert strategy.token_estimate(compacted) < strategy.token_estimate(whole) or compacted == whole
    system = [row for row in rows if row["role"] == "system"]
    assert [row for row in compacted if row["role"] == "system"] == [row for row in whole if row["role"] == "system"]
    assert len([row for row in compacted if row["role"] == "system"]) == len(system)
    # As it is sent: a blank part of a message is refused by providers, so it is not.
    newest = [row["content"] for row in rows if row["role"] == "user"][-1]
    sent = [row["content"] for row in whole if row["role"] == "user"][-1:]
    assert not newest.strip() or sent[0] in contents(compacted)


@given(logs(), st.integers(0, 6), st.sampled_from([0, 1, 4]))
def test_twice_is_once(messages: list[Message], keep: int, which: int) -> None:
    # A log that arrives broken is another one when it has been repaired: a step may be open no longer.
    rows = nca.SlidingWindow(10_000, 0).compact([message_to_dict(message) for message in messages])
    strategy = strategies(keep, "")[which]
    once = strategy.compact(rows)
    assert strategy.compact(once) == once


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: nca.SlidingWindow(-1, 10), "keep_last = -1 is not valid; valid: a whole number from 0"),
        (lambda: nca.SlidingWindow(2.5, 10), "keep_last = 2.5 is not valid"),  # type: ignore[arg-type]
        (lambda: nca.SlidingWindow(True, 10), "keep_last = True is not valid"),
        (lambda: nca.SlidingWindow(2, float("nan")), "max_tokens = nan is not valid"),  # type: ignore[arg-type]
        (lambda: nca.SlidingWindow(2, 10, preset="gpt"), "preset = 'gpt' is not valid"),  # type: ignore[arg-type]
        (lambda: nca.SlidingWindow(2, 10, provider=None), "provider: expected text"),  # type: ignore[arg-type]
        (lambda: nca.ToolResultClearing(None, 10), "keep_results = None is not valid"),  # type: ignore[arg-type]
        (lambda: nca.Summarization("gpt", 2, 10), "summarizer: expected something to call"),  # type: ignore[arg-type]
        (lambda: nca.Summarization(None, 2, 10, window_tokens=-1), "window_tokens = -1 is not valid"),
        (lambda: nca.Summarization(None, 2, 10, focus=1), "focus: expected text"),  # type: ignore[arg-type]
        (lambda: nca.Composite([], 10), "strategies: the list is empty"),
        (lambda: nca.Composite("prune", 10), "strategies: expected a list of strategies"),  # type: ignore[arg-type]
        (lambda: nca.Composite([nca.SlidingWindow], 10), "strategies, entry 1: a type is no strategy"),  # type: ignore[list-item]
        (lambda: nca.Composite([5], 10), "strategies, entry 1: a number is no strategy"),  # type: ignore[list-item]
        (lambda: nca.Composite([nca.SlidingWindow(1, 1)], -1), "max_tokens = -1 is not valid"),
    ],
)
def test_bad_arguments_are_named(make: Any, said: str) -> None:
    with pytest.raises(nca.UsageError) as refused:
        make()
    assert said in str(refused.value)


def test_numbers_may_be_written_as_people_do() -> None:
    assert nca.SlidingWindow(2, "80k").max_tokens == 80_000  # type: ignore[arg-type]


def test_nothing_to_compact_is_refused() -> None:
    with pytest.raises(nca.InvalidMessages, match="the list is empty"):
        nca.SlidingWindow(2, 10).compact([])


def test_a_strategy_counts_with_its_own_density() -> None:
    rows = [{"role": "user", "content": "x" * 600}]
    assert nca.SlidingWindow(2, 180, preset="neuron").token_estimate(rows) == 154
    dense = nca.SlidingWindow(2, 180, preset="neuron", chars_per_token=3)
    assert dense.should_compact(rows, dense.token_estimate(rows))
    with pytest.raises(nca.UsageError, match="chars_per_token = 0 is not valid"):
        nca.ToolResultClearing(2, 180, chars_per_token=0)
