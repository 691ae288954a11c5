"""What a record says of the work, over a recorded session in small windows."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nca.config.layers import defaults
from nca.context.meter import Meter
from nca.context.request import resolve
from nca.context.stages.truncate import TRUNCATED
from nca.context.view import Summary, View, check_partition
from nca.library.replay import replay
from nca.messages import Entry, Message, ToolCall
from nca.tools.toolbox import default_toolbox
from nca.wire import message_from_dict
from tests.context.logs import history_of
from tests.context.samples import assistant, call, calling, compacted, result, sent, step, talk, user

SESSION = Path(__file__).parents[2] / "data" / "sessions" / "fahrplan.jsonl"
WINDOWS = (8_000, 12_000, 16_000, 24_000)
CHANGES = ("edit_file", "write_file")
UNREAD = re.compile(r"\n- (?:(all|\d+) of (the decisions|what still fails): recall scope=\w+|how .*? ended.*)")
RANGE = re.compile(r"recall expand=(\d+)(?:-(\d+))?")


def session() -> list[Message]:
    return [message_from_dict(json.loads(line)) for line in SESSION.read_text(encoding="utf-8").splitlines()]


def changes(messages: Sequence[Message]) -> Iterator[tuple[str, bool]]:
    """The path of each call that changes a file, and whether it did, as the session's own tools say it."""
    calls = {call.id: call for message in messages for call in message.tool_calls}
    for message in messages:
        call = calls.get(message.tool_call_id, ToolCall("", "", ""))
        if message.role == "tool" and call.name in CHANGES:
            yield json.loads(call.arguments)["path"], not message.text.startswith("Error: ")


def requests(window: int) -> tuple[list[tuple[int, str]], set[int]]:
    """Each request with the message before it, as all its text; and the messages behind which it was compacted."""
    seen: list[tuple[int, str]] = []

    def watch(head: int, shown: Sequence[Message]) -> None:
        texts = [message.text for message in shown]
        given = [json.loads(call.arguments) for message in shown for call in message.tool_calls]
        seen.append((head, "\n".join([*texts, *(str(value) for one in given for value in one.values())])))

    loaded = defaults().with_values({"model.context_window": window}, "the test")
    found = replay(session(), loaded, tools=default_toolbox(Path()).definitions(window), watch=watch)
    return seen, {one.after_message for one in found.compactions}


@pytest.mark.parametrize("window", WINDOWS)
def test_the_state_of_the_work_stays_before_what_one_call_brings_back(window: int) -> None:
    messages = session()
    seen, compactions = requests(window)
    assert compactions
    for head, text in seen:
        done = list(changes(messages[:head]))
        assert [path for path, has_changed in done if has_changed and path not in text] == []
        failing = [path for path, has_changed in dict(done).items() if not has_changed]
        behind = [path for path, _ in done if f"[edited {path}:" in text]
        listed = [path for path, _ in done if f"still fails: `edit_file {path}`" in text and path not in behind]
        assert head not in compactions or set(listed) <= set(failing)


@pytest.mark.parametrize("window", WINDOWS)
def test_every_step_of_the_turn_in_progress_is_shown_listed_or_can_be_recalled(window: int) -> None:
    messages = session()
    for head, text in requests(window)[0]:
        newest = max(seq for seq, message in enumerate(messages[:head], 1) if message.role == "user")
        named = {seq for first, last in RANGE.findall(text) for seq in range(int(first), int(last or first) + 1)}
        plain = " ".join(text.split())
        for seq, message in enumerate(messages[newest:head], newest + 1):
            for one in message.tool_calls:
                asked = " ".join(str(next(iter(json.loads(one.arguments).values()))).split())
                assert asked[:40] in plain or seq in named, (head, seq, one)


def test_results_that_the_model_has_just_asked_for_have_their_share_of_the_room() -> None:
    said = [user(f"Always keep the promise of part {number}: {'it holds for callers, ' * 30}.") for number in range(12)]
    talked = [message for one in said for message in (one, assistant("Noted."))]
    short, long = "-" * 70 + "\nRan 81 tests in 0.2s\n\nOK", "a line of the file\n" * 200
    asked = calling(call("a", "shell", command="python -m unittest"), call("b", "read_file", path="a.py"))
    history = history_of([*talked, user("And now?"), asked, result("a", short), result("b", long)])
    compacted(history, 8_000, meter=Meter(provider="openai"))
    *_, shown, cut = (row["content"] for row in sent(history))
    assert shown == short
    assert len(cut) > 1_500
    assert "left out; recall expand=28 lines=" in cut


def test_a_result_that_was_just_asked_for_is_not_cut_while_there_is_room_below_the_ceiling() -> None:
    said = [user(f"Always keep the promise of part {number}: {'it holds for callers, ' * 30}.") for number in range(6)]
    talked = [message for one in said for message in (one, assistant("Noted. " + "So be it. " * 40))]
    file = "a line of the file\n" * 190
    history = history_of([*talked, user("And now?"), calling(call("b", "read_file", path="a.py")), result("b", file)])
    meter = Meter(provider="openai")
    compacted(history, 8_000, meter=meter)
    assert sent(history)[-1]["content"] == file
    assert all(f"promise of part {number}" in str(sent(history)) for number in range(6))
    assert meter.used(history) < 0.8 * 8_000


@pytest.mark.parametrize(("rows", "lines"), [(120, 420), (140, 420), (150, 300), (170, 300)])
def test_a_short_result_stays_whole_where_what_may_not_be_cut_is_above_the_ceiling(rows: int, lines: int) -> None:
    """A pasted log and a large change leave no room below the ceiling, and there is room below the budget."""
    said = [user(f"Always keep the promise of part {number}: {'it holds for callers, ' * 10}.") for number in range(12)]
    talked = [message for one in said for message in (one, assistant("Noted."))]
    log = "".join(f"2026-11-21 01:{row:02}:00 INFO  runner  done in {row} ms\n" for row in range(rows))
    changed = call("a", "edit_file", path="a.py", old_text="x = 1\n" * 60, new_text="x = 2\n" * lines)
    tests = (
        "-" * 70 + "\nFAIL: test_it (tests.IdleTests)\nAssertionError: 1 != 2\n" * 5 + "Ran 81 tests in 0.2s\n\nFAILED"
    )
    asked = calling(changed, call("b", "shell", command="python -m unittest"))
    history = history_of([*talked, user(log), asked, result("a", "edited a.py: line 4"), result("b", tests)])
    proposal = compacted(history, 12_000, meter=Meter(provider="openai"))
    assert proposal.target_tokens < proposal.tokens_after < proposal.budget_tokens
    assert [row["content"] for row in sent(history)][-2:] == ["edited a.py: line 4", tests]


def test_the_answer_that_the_newest_message_answers_stays_before_other_words() -> None:
    said = [user(f"The part {number} has a story: {'it was built by hand, ' * 30}.") for number in range(40)]
    talked = [message for one in said for message in (one, assistant("Noted, I keep that in mind for the release."))]
    question = "The changelog still names the old command. Shall I adjust the second entry or leave it to you?"
    steps = [one for number in range(30) for one in step(f"s{number}", "a line of the file\n" * 20)]
    history = history_of(
        [*talked, user("Look at the changelog."), assistant(question), user("Yes, the second."), *steps]
    )
    for _ in range(2):
        compacted(history, 4_000)
        (record,) = [item for item in history.view.items if isinstance(item, Summary)]
        assert question in record.text
        assert "of what the user said: recall" in record.text
        for message in step("more", "a line of the file\n" * 200):
            history.append(Entry(history.head + 1, message))


def test_a_failure_that_a_later_message_in_view_mends_is_not_listed() -> None:
    log = [
        user("Fix a.py."),
        *step("a", "Error: a.py was not read in this session; read it first", "edit_file", path="a.py", is_error=True),
        *step("b", "2 failed, 3 passed", "shell", command="pytest -q"),
        *step("c", "line\n" * 600, "read_file", path="b.py"),
        *step("d", "[edited a.py: line 1]", "edit_file", path="a.py", new_text="x = 1"),
        *step("e", "5 passed", "shell", command="pytest -q"),
        assistant("Done."),
        *talk(2, 60),
        user("And now?"),
    ]
    history = history_of(log)
    compacted(history, 2_400, stages=["summarize"])
    assert history.view != View()
    shown = "\n".join(message.text for message in resolve(history))
    assert "still fails" not in shown
    assert "→ 2 failed" not in shown


@given(
    st.integers(20, 120),
    st.sampled_from([4, 40]),
    st.sampled_from([4_000, 8_000, 12_000]),
    st.booleans(),
    st.sampled_from([("read_file", "path"), ("shell", "command")]),
)
def test_a_last_record_looks_for_nothing_that_it_has_no_room_for_and_says_the_same(
    turns: int, words: int, window: int, is_exact: bool, tool: tuple[str, str]
) -> None:
    messages: list[Message] = []
    arguments: dict[str, Any] = {tool[1]: "pytest"}
    for number in range(turns):
        said = f"Request {number}: " + f"the report needs table {number} " * words
        tried = step(f"a{number}", "1 failed\nexit code: 1", tool[0], **arguments)
        messages += [user(said + "Never drop it." * (number % 5 == 0)), *tried]
        messages.append(assistant(f"We decided to keep table {number}."))
    whole, short = history_of([*messages, user("Now.")]), history_of([*messages, user("Now.")])
    compacted(whole, window, is_exact=is_exact, has_summarizer=False)
    compacted(short, window, is_exact=is_exact, has_summarizer=False, is_last=True)
    texts = [[message.text for message in resolve(history)] for history in (whole, short)]
    assert [UNREAD.sub("", text) for text in texts[0]] == [UNREAD.sub("", text) for text in texts[1]]
    records = [item for item in short.view.items if isinstance(item, Summary)]
    for record in records:
        is_short = "- all of the decisions: recall scope=decisions" in record.text
        assert ("decisions" in record.ledger) != is_short
        assert not is_short or "of what the user said: recall" in record.text
    assert not (turns == 120 and words == 40) or "all of the decisions" in str(records)


def test_what_a_marker_hides_goes_into_the_next_record_and_the_marker_goes() -> None:
    said = [user("Hello."), assistant("Hi."), user("Never touch lock.py."), assistant("I will not.")]
    history = history_of([*said, *talk(30), user("And now?"), *step("a", "a line of the file\n" * 40)])
    compacted(history, 2_000, stages=("truncate",))
    assert TRUNCATED in str(sent(history))
    assert "lock.py" not in str(sent(history))
    for message in (*talk(30), user("Go on.")):
        history.append(Entry(history.head + 1, message))
    compacted(history, 2_000)
    texts = str(sent(history))
    assert TRUNCATED not in texts
    assert "Never touch lock.py." in texts
    check_partition(history.view)


def test_a_plan_that_the_newest_message_answers_keeps_its_steps_where_there_is_room() -> None:
    steps = [
        f"{number}. Change part {number} of main.py, and add a test for what it refuses." for number in range(1, 9)
    ]
    plan = "The encoding is an argument of each function.\n\nThe plan:\n" + "\n".join(steps)
    done = [one for number in range(12) for one in step(f"s{number}", "a line of the file\n" * 60)]
    for turns, window, count in ((40, 16_000, 8), (20, 12_000, 8), (30, 5_000, 3)):
        history = history_of([*talk(turns), user("Make a plan."), assistant(plan), user("Implement it."), *done])
        compacted(history, window)
        (record,) = [item for item in history.view.items if isinstance(item, Summary)]
        latest = record.text.partition("### The latest answer")[2].partition("###")[0]
        assert all(one in latest for one in steps[:count])
        assert (" …" in latest) == (count < len(steps))


def test_a_result_that_is_little_larger_than_its_part_stays_whole_where_a_larger_one_gives_it() -> None:
    said = [user(f"Always keep the promise of part {number}: {'it holds for callers, ' * 30}.") for number in range(12)]
    talked = [message for one in said for message in (one, assistant("Noted."))]
    sizes = range(30, 300, 4)
    cuts = []
    for lines in sizes:
        little, large = "a line of the file\n" * lines, "a line of the book\n" * 300
        asked = calling(call("a", "read_file", path="a.py"), call("b", "read_file", path="b.py"))
        history = history_of([*talked, user("And now?"), asked, result("a", little), result("b", large)])
        compacted(history, 8_000, meter=Meter(provider="openai"))
        shown = sent(history)[-2]["content"]
        assert "left out" in sent(history)[-1]["content"]
        cuts.append((len(little) - len(shown)) / len(little))
    assert 0 in cuts
    assert max(cuts) > 0.3
    assert not any(0 < one < 0.2 for one in cuts), "it stays whole or loses much"
