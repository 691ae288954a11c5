"""The extract by code: a line each, the newest kept, never over its length."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nca.context.extract import call_line, extract_text
from nca.context.tokens import text_tokens
from nca.messages import AttachmentPart, Message, TextPart
from tests.context.logs import logs
from tests.context.samples import assistant, call, result, some, step, user


def test_calls_are_one_line_each_with_name_main_argument_and_outcome() -> None:
    assert call_line(call("a", path="./a.py", offset=3), result("a", "text")) == "- read_file a.py → ok"
    assert call_line(call("a", "shell", command="make\n  test"), None) == "- shell make test → no result"
    failed = result("a", "No such file\nor directory", is_error=True)
    assert call_line(call("a", "shell"), failed) == "- shell → failed: No such file or directory"


def test_a_turn() -> None:
    log = [
        Message("user", (TextPart("Fix the build."), AttachmentPart("log.txt", "boom", 4))),
        *step("a", "boom", "shell", command="make", is_error=True),
        assistant("The linker is missing. " * 30),
        Message("user", "A reminder.", is_synthetic=True),
    ]
    lines = extract_text(log, ["- Answered: earlier"], 1_000).splitlines()
    assert lines[:4] == [
        "- Answered: earlier",
        "- User: Fix the build.",
        "- Attached log.txt",
        "- shell make → failed: boom",
    ]
    assert lines[4].startswith("- Answered: The linker is missing.")
    assert len(lines[4]) < 320
    assert len(lines) == 5


@some
@given(logs(), st.lists(st.text(max_size=200), max_size=2), st.integers(0, 400))
def test_it_never_exceeds_its_length(messages: list[Message], existing: list[str], most: int) -> None:
    assert text_tokens(extract_text(messages, existing, most)) <= most


def test_the_newest_stay_and_what_is_left_out_is_counted_through_merges() -> None:
    log = [message for number in range(40) for message in (user(f"Question {number}?"), assistant(f"Answer {number}."))]
    first = extract_text(log[:40], [], 100)
    second = extract_text(log[40:], [first], 100)
    assert second.endswith("- Answered: Answer 39.")
    kept = second.splitlines()
    assert kept[0] == f"- ({80 - (len(kept) - 1)} earlier lines left out)"
    assert second.count("left out") == 1


def test_half_the_room_is_for_the_newest_and_half_for_what_matters_most() -> None:
    log = [message for number in range(40) for message in step(f"{number}", "out", "shell", command=f"make {number}")]
    scores = [0.3] * len(log)
    scores[2 * 4 + 1] = scores[2 * 20 + 1] = 0.9
    lines = extract_text(log, [], 100, scores).splitlines()
    numbers = [int(line.split()[3]) for line in lines[1:]]
    assert lines[0] == f"- ({40 - len(numbers)} earlier lines left out)"
    assert numbers == sorted(numbers)
    assert numbers[:2] == [4, 20]
    # Of equal ones the newest.
    assert numbers[2:] == list(range(40 - len(numbers) + 2, 40))
    assert extract_text(log, [], 1_000, scores) == extract_text(log, [], 1_000)


def test_merged_again_a_failure_outlives_what_went_well() -> None:
    calls = [call(f"{number}", "shell", command=f"make {number}") for number in range(60)]
    lines = [call_line(one, result(one.id, "no target", is_error=number == 5)) for number, one in enumerate(calls)]
    kept = extract_text([], ["\n".join(lines)], 100).splitlines()
    assert kept[1] == "- shell make 5 → failed: no target"
    assert kept[-1] == "- shell make 59 → ok"


@some
@given(logs(), st.integers(20, 400), st.data())
def test_lines_keep_their_order_and_once_more_changes_nothing(
    messages: list[Message], most: int, data: st.DataObject
) -> None:
    shares = st.floats(0, 1, allow_nan=False)
    scores = data.draw(st.lists(shares, min_size=len(messages), max_size=len(messages)))
    whole = extract_text(messages, [], 1_000_000, scores).splitlines()
    text = extract_text(messages, [], most, scores)
    rest = iter(whole)
    assert all(line in rest for line in text.splitlines() if "earlier lines left out" not in line)
    assert extract_text([], [text], most) == text
