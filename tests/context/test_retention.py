"""How much of everything that was ever stated can be read now."""

from __future__ import annotations

from nca.context.record.ledger import extract
from nca.context.retention import KeptFacts, kept_in_words
from nca.context.view import Marker, Summary, View
from nca.messages import Entry
from tests.context.logs import history_of
from tests.context.samples import assistant, compacted, step, talk, user

WORK = [
    user("Never touch i18n.py."),
    user("Fix the parser."),
    *step("a", "done", "write_file", path="src/a.py", content="x"),
    assistant("Done."),
    user("And now the lexer."),
    assistant("Done too."),
    user("Good, show me."),
]


def test_what_is_in_view_is_kept_and_what_no_view_says_is_not() -> None:
    history = history_of(WORK)
    assert KeptFacts(history, View(), View()).by_kind() == {"rules": (1, 1), "words": (3, 3), "state": (1, 1)}
    gone = View((Marker("m", ((1, 4),), "[src/a.py was here]"),), 5)
    assert KeptFacts(history, View(), gone).by_kind() == {"rules": (0, 1), "words": (2, 3), "state": (1, 1)}


def test_it_counts_all_that_was_ever_stated_and_not_only_what_went_last() -> None:
    history = history_of(WORK)
    ledger = extract(history.entries[:4])
    before = View((Summary("s", ((1, 4),), "A record that says nothing.", ledger=ledger),), 5)
    assert KeptFacts(history, before, before).count() == (2, 5)


def test_what_a_summary_without_a_ledger_stands_for_is_counted_too() -> None:
    history = history_of(WORK)
    before = View((Summary("s", ((1, 4),), "A package's own summary."),), 5)
    assert KeptFacts(history, before, before).count() == (2, 5)


def test_a_turn_that_is_cut_is_not_kept() -> None:
    long = "Please " + "look at the parser and tell me what it does, " * 20
    history = history_of([user(long), assistant("Done."), user("Now.")])
    text = f"- (1) {long[:100]} [… recall expand=1 …]"
    cut = View((Summary("s", ((1, 2),), text, ledger=extract(history.entries[:2])),), 3)
    assert KeptFacts(history, View(), cut).by_kind()["words"] == (1, 2)


def test_what_is_said_later_is_no_part_of_the_count() -> None:
    history = history_of([*WORK, *talk(8, 60), user("And now?")])
    counted = compacted(history, 900)
    assert counted.facts is not None
    assert (counted.kept_facts, counted.total_facts) == counted.facts.count()
    gone = View((Marker("m", ((1, history.head - 1),), "[out]"),), history.head)
    late = KeptFacts(history, View(), gone)
    history.append(Entry(history.head + 1, user("Never touch i18n.py.")))
    assert late.by_kind()["rules"] == (0, 1)


def test_a_person_reads_what_was_counted() -> None:
    counted = KeptFacts(history_of(WORK), View(), View((Marker("m", ((1, 4),), "[src/a.py was here]"),), 5)).by_kind()
    assert kept_in_words(counted) == "0 of 1 rules, 2 of 3 of your messages, 1 of 1 changed files and open errors"
    assert kept_in_words({}, 41, 44) == "41 of 44 facts"
