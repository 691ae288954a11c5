"""The importance of messages: an example for each score, and properties for any log."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nca.context.importance import (
    ANSWER,
    BULK_CHARS,
    CHANGE,
    CHATTER,
    DECISION,
    FILES_IN_PLAY,
    FIXED,
    IN_PLAY,
    OUTPUT,
    PINNED,
    REFERRED,
    RULE,
    SUPERSEDED,
    SYNTHETIC,
    SYSTEM,
    UNFIXED,
    WORDS,
    Mark,
    importances,
)
from nca.context.record.known import Known
from nca.messages import AttachmentPart, Entry, Message, TextPart
from tests.context.logs import logs
from tests.context.samples import assistant, call, calling, result, some, step, user

OTHER_FILES = [one for number in range(FILES_IN_PLAY) for one in step(f"other_{number}", path=f"other{number}.py")]


def entries_of(messages: list[Message]) -> list[Entry]:
    return [Entry(seq, message) for seq, message in enumerate(messages, 1)]


def marks(messages: list[Message], pins: frozenset[int] = frozenset()) -> list[Mark]:
    found = importances(entries_of(messages), Known(), pins)
    return [(found[seq].score, found[seq].reasons[0]) for seq in range(1, len(messages) + 1)]


def test_what_a_person_says_ranks_above_what_a_model_says() -> None:
    log = [
        Message("system", "You are a test."),
        user("Please look at the parser."),
        user("Never touch the lexer."),
        Message("user", "A reminder.", source="nca"),
        calling(call("a", "shell", command="ls"), text="Let me look."),
        result("a", "one file"),
        assistant("The root cause is a stale cache."),
        assistant("Done."),
    ]
    assert marks(log) == [SYSTEM, WORDS, RULE, SYNTHETIC, CHATTER, OUTPUT, DECISION, ANSWER]
    assert RULE[0] > WORDS[0] > UNFIXED[0] > DECISION[0] > IN_PLAY[0] > REFERRED[0] > ANSWER[0] > OUTPUT[0] > CHATTER[0]
    assert CHATTER[0] > max(SUPERSEDED[0], FIXED[0])


def test_an_error_matters_until_the_same_call_succeeds() -> None:
    failed = step("a", "Error: no target", "shell", command="make", is_error=True)
    other = step("b", "built", "shell", command="make docs")
    fixed = step("c", "built", "shell", command="make")
    assert marks([user(), *failed, *other])[2] == UNFIXED
    assert marks([user(), *failed, *other, *fixed])[2] == FIXED
    assert marks([user(), *fixed, *failed])[4] == UNFIXED
    again = step("d", "Error: again", "shell", command="make", is_error=True)
    assert marks([user(), *failed, *again])[2:5:2] == [UNFIXED, UNFIXED]


def test_a_change_that_failed_is_fixed_by_another_of_the_same_file() -> None:
    failed = step("a", "Error: text not found", "edit_file", path="a.py", old="x", is_error=True)
    assert marks([user(), *failed, *step("b", "ok", "edit_file", path="./a.py", old="y")])[2] == FIXED
    assert marks([user(), *failed, *step("b", "ok", "edit_file", path="b.py", old="y")])[2] == UNFIXED


def test_files_read_or_changed_last_are_in_play() -> None:
    log = [user(), *step("a", "text", path="a.py")]
    assert marks([*log, *OTHER_FILES[:-2]])[2] == IN_PLAY
    assert marks([*log, *OTHER_FILES])[2] == OUTPUT
    changed = [user(), *step("a", "ok", "write_file", path="a.py")]
    assert marks([*changed, *OTHER_FILES])[1:3] == [CHANGE, CHANGE]
    attached = Message("user", (TextPart("And this?"), AttachmentPart("a.py", "text", 4)))
    assert marks([*log, *OTHER_FILES, attached])[2] == IN_PLAY


def test_a_result_that_a_later_call_shows_anew_is_superseded() -> None:
    first, second = step("a", path="a.py", offset=5, limit=5), step("b", path="a.py")
    assert marks([user(), *first, *second])[2:5:2] == [SUPERSEDED, IN_PLAY]
    assert marks([user(), *second, *first])[2:5:2] == [IN_PLAY, IN_PLAY]
    status = [step(id, "clean", "shell", command="git status") for id in "ab"]
    assert marks([user(), *status[0], *status[1]])[2:5:2] == [SUPERSEDED, OUTPUT]
    broken = step("b", "Error: no such file", path="a.py", is_error=True)
    assert marks([user(), *step("a", path="a.py"), *broken])[2] == IN_PLAY


def test_what_later_messages_name_is_referred_to() -> None:
    log = [user(), *step("a", "commit 1a2b3c4d", "shell", command="git log"), assistant("Looked.")]
    assert marks([*log, *step("b", "a diff", "shell", command="git show 1a2b3c4d")])[2] == REFERRED
    assert marks([*log, user("What is 1a2b3c4d?")])[2] == REFERRED
    assert marks([*log, user("What is it?")])[2] == OUTPUT
    # A mention counts for the nearest message before it; another output with the same name is none.
    again = step("c", "still 1a2b3c4d", "shell", command="git status")
    assert marks([*log, *again])[2] == OUTPUT
    assert marks([*log, *again, user("What is 1a2b3c4d?")])[2:6:3] == [OUTPUT, REFERRED]
    assert marks([user(), assistant("See PROJ-17."), user("Close PROJ-17.")])[1] == REFERRED
    read = [user(), *step("a", "text", path="a.py"), *step("b", "ok", "edit_file", path="a.py")]
    assert marks([*read, *OTHER_FILES])[2] == REFERRED


def test_bulk_costs_a_little_and_says_so() -> None:
    long = "line\n" * BULK_CHARS
    log = [user(long), *step("a", long, "shell"), *step("b", long, path="a.py"), assistant(long)]
    found = importances(entries_of(log), Known(), frozenset())
    assert (found[3].score, found[3].reasons) == (0.2, ("bulk",))
    assert (found[5].score, found[5].reasons) == (0.6, ("a file in play", "bulk"))
    assert (found[1].score, found[6].score) == (WORDS[0], ANSWER[0])


@pytest.mark.parametrize("seq", [1, 2, 3])
def test_pins_overrule(seq: int) -> None:
    log = [user(), *step("a", "x" * 2 * BULK_CHARS, "shell")]
    assert marks(log, frozenset({seq}))[seq - 1] == PINNED


@some
@given(logs(), st.sets(st.integers(1, 12), max_size=3))
def test_it_is_a_share_with_a_reason_and_always_the_same(messages: list[Message], pins: set[int]) -> None:
    before = msgspec.json.encode(messages)
    known = Known()
    found = importances(entries_of(messages), known, pins)
    assert sorted(found) == list(range(1, len(messages) + 1))
    assert all(0 <= one.score <= 1 and one.reasons and all(one.reasons) for one in found.values())
    assert all(found[seq].score == 1 for seq in pins if seq in found)
    assert importances(entries_of(messages), known, pins) == found
    assert importances(entries_of(messages), Known(), pins) == found
    assert msgspec.json.encode(messages) == before
