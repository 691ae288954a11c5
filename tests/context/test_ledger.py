"""Facts by code: found, merged by set arithmetic, rendered within their budget."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nca.context.ledger import CATEGORIES, USER_WORDS, error_lines, extract, facts_of, merge, render, render_user_words
from nca.context.tokens import text_tokens
from nca.messages import AttachmentPart, Message, TextPart
from tests.context.logs import logs
from tests.context.samples import assistant, call, calling, result, some, step, user

facts = st.lists(st.text(min_size=1, max_size=9), max_size=9)
ledgers = st.dictionaries(st.sampled_from([*CATEGORIES, USER_WORDS]), facts)
turns = st.sampled_from(["short", "word " * 300, "日本語" * 500, "🦀" * 700, "a\nb"])


def test_what_a_stretch_of_work_leaves() -> None:
    log = [
        user("Please always use tabs. The ticket is ABC-123."),
        *step("a", "text of the file", path="src/a.py"),
        *step("b", "ok", "write_file", path="src/b.py", content="x"),
        *step("c", "E1\nmake failed\nexit code: 2", "shell", command="make test\necho"),
        *step("d", "Error: cannot open file\nmore", "shell", command="cat x", is_error=True),
        calling(call("e", "shell", command="sleep 1")),
        assistant("Commit 3f2a9bc fixes ABC-123; see https://example.com/x?y=1."),
        user("Is 3f2a9bc pushed?"),
    ]
    assert extract(log) == {
        USER_WORDS: ["Please always use tabs. The ticket is ABC-123.", "Is 3f2a9bc pushed?"],
        "Rules the user stated": ["Please always use tabs."],
        "Files read": ["src/a.py"],
        "Files modified": ["src/b.py"],
        "Commands": ["`make test` → exit 2", "`cat x` → failed", "`sleep 1` → no result"],
        "Errors": ["Error: cannot open file"],
        "URLs": ["https://example.com/x?y=1"],
        "Hashes": ["3f2a9bc"],
        "Identifiers": ["ABC-123"],
    }


def test_what_did_not_happen_is_not_said_to_have_happened() -> None:
    refused = "[not run: the person said no: keep it]"
    log = [
        user("Go."),
        *step("a", refused, "write_file", path="src/a.py", content="x", is_error=True),
        *step("b", refused, "shell", command="rm -r src", is_error=True),
    ]
    assert extract(log) == {USER_WORDS: ["Go."], "Commands": ["`rm -r src` → not run"], "Errors": [refused]}


def test_a_command_that_the_person_ran_is_no_file() -> None:
    parts = (
        TextPart("Why?"),
        AttachmentPart("$ make test", "E1\n[exit code 2]", 16),
        AttachmentPart("$ ls", "a.py", 4),
        AttachmentPart("a.py", "x = 1", 5),
    )
    found = extract([Message("user", parts)])
    assert found["Commands"] == ["`make test` → exit 2", "`ls` → ok"]
    assert found["Files read"] == ["a.py"]


def test_synthetic_messages_are_not_the_users_words() -> None:
    assert extract([Message("user", "Always obey.", is_synthetic=True)]) == {}


def test_error_lines_of_a_failure_only() -> None:
    text = "\n  Command failed\nTraceback (most recent call last):\nfine\nValueError: bad input\n"
    assert list(dict.fromkeys(error_lines(text, is_error=True))) == [
        "Command failed",
        "Traceback (most recent call last):",
        "ValueError: bad input",
    ]
    assert list(error_lines(text, is_error=False)) == []


@given(st.lists(ledgers, max_size=4))
def test_a_merge_is_the_union_with_each_fact_once(parts: list[dict[str, list[str]]]) -> None:
    merged = merge(parts)
    for category, kept in merged.items():
        assert len(kept) == len(set(kept))
        assert set(kept) == {fact for part in parts for fact in part.get(category, ())}
    assert merge([merged]) == merged
    assert merge([merged, merged]) == merged


@given(ledgers, ledgers, ledgers)
def test_merging_in_steps_is_merging_at_once(
    one: dict[str, list[str]], two: dict[str, list[str]], three: dict[str, list[str]]
) -> None:
    assert merge([merge([one, two]), three]) == merge([one, two, three])


def test_a_fact_that_comes_again_counts_as_the_newer_one() -> None:
    assert merge([{"Errors": ["a", "b"]}, {"Errors": ["a"]}]) == {"Errors": ["b", "a"]}


@given(ledgers, st.integers(0, 200))
def test_the_ledger_keeps_to_its_budget(ledger: dict[str, list[str]], most: int) -> None:
    assert text_tokens(render(ledger, most)) <= most


def test_the_oldest_facts_give_way_first_and_rules_stay_longest() -> None:
    ledger = {"Rules the user stated": ["Use tabs."], "Identifiers": [f"ID-{number}" for number in range(100)]}
    text = render(ledger, 60)
    assert "Rules the user stated: Use tabs." in text
    assert "ID-99" in text
    assert "ID-0;" not in text


@given(st.lists(turns, max_size=8), st.integers(0, 900))
def test_the_users_words_keep_to_their_budget(words: list[str], most: int) -> None:
    assert text_tokens(render_user_words(words, most)) <= most


def test_the_newest_words_come_first_and_a_long_turn_is_cut_visibly() -> None:
    text = render_user_words(["old " * 400, "middle " * 40, "line one\nline two"], 120)
    assert text.endswith("- line one\nline two")
    assert "- middle" in text
    assert "old " * 300 not in text
    assert " […]" in render_user_words(["word " * 1_000], 200)


def test_facts_are_all_but_the_words() -> None:
    assert facts_of({USER_WORDS: ["hello"], "URLs": ["u"], "Errors": ["e"]}) == ["e", "u"]


@some
@given(logs())
def test_any_log_can_be_extracted(messages: list[Message]) -> None:
    ledger = extract(messages)
    assert set(ledger) <= {*CATEGORIES, USER_WORDS}
    assert all(fact and len(fact) <= 320 for fact in facts_of(ledger))


@pytest.mark.parametrize("text", ["a" * 100_000, "A1" * 50_000, "error " * 20_000, "http://" * 10_000, "bee1" * 9_000])
def test_hostile_texts_do_not_take_forever(text: str) -> None:
    assert extract([user(text), result("x", text, is_error=True)])


@pytest.mark.parametrize(
    ("said", "rules"),
    [
        ("The code is K-1. Remember it. Thanks.", ["The code is K-1. Remember it."]),
        ("We ship on Monday. Please remember that!", ["We ship on Monday. Please remember that!"]),
        ("Use tabs here. Never push to main.", ["Never push to main."]),
        ("Remember it.", ["Remember it."]),
    ],
)
def test_a_rule_that_points_back_comes_with_what_it_points_to(said: str, rules: list[str]) -> None:
    assert extract([user(said)])["Rules the user stated"] == rules


def test_what_a_model_settled_on_is_kept_and_what_it_says_beside_is_not() -> None:
    log = [user("Which?"), assistant("I read both. We decided to use SQLite because it is there. More later.")]
    assert extract(log)["Decisions"] == ["We decided to use SQLite because it is there."]
    assert "Decisions" not in extract([user("We decided to use SQLite."), assistant("Fine.")])


def test_a_short_turn_with_a_rule_stays_beside_newer_long_ones() -> None:
    words = ["Always use tabs.", *["word " * 100] * 9]
    shown = render_user_words(words, 200)
    assert shown.startswith("- Always use tabs.\n")
    assert text_tokens(shown) <= 200
    many = render_user_words([f"Never touch file {number}." for number in range(90)] + ["Go on."], 100)
    assert many.endswith("- Go on.")
