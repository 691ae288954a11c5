"""Replies of a summarizer: which can be used, and what is recognized as a summary."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nca.context.summary import (
    FOREIGN_HEADERS,
    HEADER,
    SummaryFailure,
    SummaryReply,
    SummaryRequest,
    accept,
    clean_prose,
    cut_text,
    is_summary,
    named_by,
    prompt,
    without_named,
)
from nca.context.tokens import text_tokens
from nca.messages import Message
from tests.context.samples import PROSE, talk

Answer = Callable[[SummaryRequest], SummaryReply | SummaryFailure]
TALK = talk(20)


def test_the_header_of_the_spec() -> None:
    assert HEADER == "## Conversation Summary (Earlier Context)"


def test_a_model_names_messages_by_numbers_that_there_can_be() -> None:
    assert named_by(f"Text.\nKeep: 3, 7 and\nKeep: 2, {'1' * 5_000}, 12, 99", 50) == {2, 12}


def test_a_remark_behind_the_numbers_is_none_of_them() -> None:
    """However many: to try each way to divide the digits would take longer than anybody waits."""
    line = f"- **Keep:** {', '.join(map(str, range(101, 131)))}"
    assert named_by(f"{line} (standing rules, 7)", 200) == set(range(101, 131))
    assert named_by(f"{line} and others", 200) == named_by(f"{line}x", 200) == frozenset()
    assert without_named(f"Goal: tabs.\n{line} (standing rules).") == "Goal: tabs."
    assert without_named("Keep 3 spaces of indentation.") == "Keep 3 spaces of indentation."


def test_a_summary_that_is_too_long_is_cut_at_its_length() -> None:
    prose, problem = accept(SummaryReply("A sentence of some words. " * 200), "", max_tokens=100, input_raw=9_000)
    assert problem == ""
    assert text_tokens(prose) <= 100
    assert prose.endswith(" […]")


@pytest.mark.parametrize(
    "text",
    [
        f"<think>hm\n</think>\n{PROSE}",
        f"<THINKING>hm</THINKING>{PROSE}",
        f"Let me think about it.\n</think>\n\n{PROSE}",
        f"{HEADER}\n{PROSE}",
        f"```markdown\n{PROSE}\n```",
        f"{PROSE}\n<think>And now",
        *(f"{header}\n\n{PROSE}" for header in FOREIGN_HEADERS),
    ],
)
def test_thinking_headers_and_fences_are_taken_off(text: str) -> None:
    assert clean_prose(text) == PROSE


def test_text_before_thinking_stays() -> None:
    assert clean_prose("One. <think>two</think> Three.") == "One.  Three."
    assert clean_prose("a\ud800b") == "a\ufffdb"


@given(st.text(max_size=2_000), st.integers(4, 400))
def test_a_cut_keeps_the_beginning_and_says_so(text: str, most: int) -> None:
    cut = cut_text(text, most)
    assert text_tokens(cut) <= most
    if cut != text:
        assert cut.endswith(" […]")
        assert text.startswith(cut.removesuffix(" […]"))


def test_a_cut_is_made_at_the_end_of_a_paragraph_where_one_is_near() -> None:
    text = "First paragraph of the text.\n\n" * 10
    assert cut_text(text, 40) == ("First paragraph of the text.\n\n" * 6).rstrip() + " […]"


@pytest.mark.parametrize("header", FOREIGN_HEADERS)
def test_summaries_of_other_tools_are_recognised(header: str) -> None:
    assert is_summary(Message("user", f"\n{header}\nText"))
    assert is_summary(Message("system", header))
    assert not is_summary(Message("assistant", header))
    assert not is_summary(Message("user", f"What does {header} mean?"))


def test_a_summary_inside_of_what_the_person_said_next_is_no_summary_alone() -> None:
    text = f"[System: Previous conversation summary — 7 turns were compacted]\n\n{PROSE}\n\n" + (
        "The recent conversation continues below.\n\n---\n\n"
    )
    assert is_summary(Message("user", text))
    assert clean_prose(text) == PROSE
    assert not is_summary(Message("user", f"{text}And now the lexer."))


def test_a_reply_that_says_its_instruction_again_is_no_summary() -> None:
    """A small model tells what it was asked to do instead of doing it."""
    said = prompt("detailed").splitlines()[0].split(". ")[1]
    problem = accept(SummaryReply(f"### 1. Goal and intent\n{said}."), "", max_tokens=500, input_raw=900)
    assert problem == ("", "the summarizer repeated its instruction")
