"""A summary that comes back as a message is read as what it was."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import nca
from nca.context import ledger as facts
from nca.context.summary import HEADER
from nca.context.summary_format import laid_out, read_again

lines = st.text(st.characters(blacklist_categories=("C", "Z")), min_size=1, max_size=20)
ledgers = st.dictionaries(st.sampled_from(facts.CATEGORIES), st.lists(lines, min_size=1, max_size=4, unique=True))
turns = st.lists(st.lists(lines, min_size=1, max_size=3).map("\n".join), max_size=4)


@given(ledgers, turns, st.sampled_from(["", "What was done.", "### Goal\nA parser.\n\n### Next\nTests."]))
def test_what_was_laid_out_is_read_again(ledger: facts.Ledger, words: list[str], prose: str) -> None:
    rendered = facts.render(ledger, 100_000)
    text = laid_out(HEADER, prose, facts.render_user_words(words, 100_000), rendered)
    read, known = read_again(text)
    assert read == prose
    assert known.pop(facts.USER_WORDS, []) == words
    assert facts.render(known, 100_000) == rendered


@pytest.mark.parametrize(
    "text",
    [
        "[Summary of earlier conversation]\nThey talked.",
        f"{HEADER}\nThey talked.\n\n### Ledger\nThis is prose of another tool.",
        "# Context Checkpoint\nThey talked.\n\n### The user's own words\nIn prose.",
    ],
)
def test_what_another_tool_wrote_is_prose(text: str) -> None:
    prose, ledger = read_again(text)
    assert prose == text.partition("\n")[2]
    assert ledger == {}


def test_facts_outlive_compactions_of_a_programs_own_messages() -> None:
    rules = [f"Never rename table_{number}." for number in range(4)]
    messages = [{"role": "system", "content": "You help."}]
    messages += [{"role": "user", "content": rule} for rule in rules]
    for turn in range(40):
        messages += [
            {"role": "user", "content": f"Question {turn}? " + "words " * 150},
            {"role": "assistant", "content": f"Answer {turn}. " + "words " * 150},
        ]
        compacted = nca.compact(messages, context_window=6_000)
        messages = list(compacted.messages)
    text = str(messages)
    assert "Question 2?" not in text
    assert all(rule in text for rule in rules)
