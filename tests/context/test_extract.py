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
