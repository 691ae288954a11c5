"""What can still be read of what was said: begun, whole, or not at all."""

from __future__ import annotations

from nca.context.history import History
from nca.context.record.said import said_in
from nca.context.retention import KeptFacts, kept_in_words
from nca.context.view import Marker, Summary, Verbatim, View
from nca.messages import Entry, Message, TextPart, ToolCall

LONG = "Send the letter on Monday. " + "It names the two of us and nobody else. " * 6


def counted(record: str) -> dict[str, tuple[int, int]]:
    texts = ("Never touch a.py.", LONG, "Use make check.")
    messages = [Message("user", text, source="typed") for text in texts]
    history = History(Entry(seq, message) for seq, message in enumerate(messages, 1))
    return KeptFacts(history, View((Summary("s", ((1, 3),), record),), 4)).by_kind()


def test_a_message_that_is_cut_is_not_counted_as_whole() -> None:
    found = counted(f"- (1) Never touch a.py.\n- (2) {LONG[:90]} […]")
    assert found == {"words": (2, 3), "whole": (1, 2)}
    assert kept_in_words(found) == "2 of 3 of your messages, 1 of them whole"


def test_what_was_said_anew_or_cleared_is_not_missed() -> None:
    messages = [Message("user", text, source="typed") for text in ("Go on #e401.", "Go on.", "And now?")]
    history = History(Entry(seq, message) for seq, message in enumerate(messages, 1))
    retried = Marker("retry1", ((1, 1),), "")
    history.view = View((retried, Verbatim(2, 3)), 4)
    after = View((retried, Summary("s", ((2, 2),), "- (2) Go on."), Verbatim(3, 3)), 4)
    assert KeptFacts(history, after).by_kind() == {"words": (2, 2)}


def test_what_was_taken_back_is_not_missed() -> None:
    messages = [Message("user", text, source="typed") for text in ("Go on.", "Never mind.", "And now?")]
    history = History(Entry(seq, message) for seq, message in enumerate(messages, 1))
    history.view = View((Verbatim(1, 1),), 3, ((2, 2),))
    after = View((Summary("s", ((1, 1),), "- (1) Go on."),), 3, ((2, 2),))
    assert KeptFacts(history, after).by_kind() == {"words": (2, 2)}


def test_where_all_that_is_kept_is_whole_nothing_more_is_said() -> None:
    assert kept_in_words(counted(f"- (1) Never touch a.py.\n- (2) {LONG}")) == "2 of 3 of your messages"


def test_a_paste_that_is_cut_makes_its_message_less_than_whole() -> None:
    pasted = "\n".join(f"line {number}" for number in range(40))
    both = (TextPart("Why does this fail?\n", source="typed"), TextPart(pasted, source="pasted"))
    messages = [Message("user", both), Message("user", pasted, source="pasted")]
    history = History(Entry(seq, message) for seq, message in enumerate(messages, 1))
    view = View((Summary("s", ((1, 2),), f"Why does this fail?\n{pasted[:100]}"),), 3)
    assert KeptFacts(history, view).by_kind() == {"words": (2, 2), "whole": (0, 2)}


def test_the_sum_counts_each_message_once() -> None:
    history = History([Entry(1, Message("user", LONG, source="typed"))])
    view = View((Summary("s", ((1, 1),), LONG[:100]),), 2)
    assert KeptFacts(history, view).count() == (1, 1)


def test_the_model_s_answers_are_said_and_are_no_facts() -> None:
    texts = ("It is Tuesday.", LONG, "Gone.")
    said = [Message("user", "What day?", source="typed"), Message("assistant", texts[0])]
    said += [Message("user", "And the letter?", source="typed"), Message("assistant", texts[1])]
    said += [Message("user", "And he?", source="typed"), Message("assistant", texts[2])]
    history = History(Entry(seq, message) for seq, message in enumerate(said, 1))
    record = f"- What day?\n- And the letter?\n- And he?\n{texts[0]}\n{LONG[:30]} […]"
    facts = KeptFacts(history, View((Summary("s", ((1, 6),), record),), 7))
    assert facts.by_kind() == {"words": (3, 3), "answers": (1, 3), "answers_cut": (1, 3)}
    assert kept_in_words(facts.by_kind()) == "3 of 3 of your messages, 1 of 3 answers whole, 1 cut"
    assert facts.count() == (3, 3)


def test_files_that_commands_changed_are_counted() -> None:
    history = History([Entry(1, Message("user", LONG, source="typed"))])
    view = View((Summary("s", ((1, 1),), f"{LONG}\n- out.db: changed"),), 2)
    changed = ((1, "out.db", "changed"), (1, "gone.csv", "deleted"), (1, "out.db", "changed"))
    assert KeptFacts(history, view, changed).by_kind() == {"words": (1, 1), "files": (1, 2)}


def test_of_a_long_log_the_messages_of_both_ends_are_counted_among_all() -> None:
    texts = [f"Question {number} about one thing." for number in range(3_000)]
    messages = [one for text in texts for one in (Message("user", text, source="typed"), Message("assistant", "Yes."))]
    history = History(Entry(seq, message) for seq, message in enumerate(messages, 1))
    record = "\n".join(f"- {text}" for text in texts[:10])
    found = KeptFacts(history, View((Summary("s", ((1, 5_980),), record),), 5_981)).by_kind()
    assert found == {"words": (20, 3_000), "looked_at": (2_500, 3_000)}, (
        "of the answers nobody knows how many there are"
    )
    assert kept_in_words(found) == "20 of 3,000 of your messages, 2,500 of 3,000 looked at"


def test_a_reason_typed_at_an_approval_is_no_message() -> None:
    refused = (TextPart("[not run: the person refused it]"), TextPart("Use make check.", source="typed"))
    messages = [
        Message("user", "Run the tests.", source="typed"),
        Message("assistant", "", (ToolCall("c", "shell", "{}"),)),
        Message("tool", refused, tool_call_id="c"),
        Message("assistant", "I used make check."),
    ]
    history = History(Entry(seq, message) for seq, message in enumerate(messages, 1))
    assert said_in(messages[2]) is not None, "it is kept all the same"
    view = View((Summary("s", ((1, 4),), "Run the tests."),), 5)
    assert KeptFacts(history, view).by_kind()["words"] == (1, 1)
    assert history.turns == 1
