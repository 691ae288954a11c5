"""A session as Markdown: readable, in order, and no text changes what follows it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nca.messages import Entry, Message, user_message
from nca.sessions.transfer import new_copy
from nca.transcripts.export_formats import to_markdown
from nca.transcripts.html_page import html_escaped, to_html
from nca.words import words
from tests.terminal.payloads import PAYLOADS, forbidden
from tests.transcripts.samples import full

CONTROLS = {chr(code) for code in (*range(9), 11, 12, *range(14, 32), *range(127, 160), 0x202E)}


def of(*texts: str, role: str = "assistant") -> str:
    entries = [Entry(seq, Message(role, text)) for seq, text in enumerate(texts, 1)]  # type: ignore[arg-type]
    return to_markdown(new_copy(entries, directory="/"))


def test_all_of_it_is_there_in_order() -> None:
    text = to_markdown(full("words"))
    places = [text.index(f"\n## {seq} · ") for seq in range(1, 10)]
    assert places == sorted(places)
    for piece in (
        "# words\n",
        "## 1 · user (the model sees summary s1 instead)",
        "## 3 · tool (words, error, the model sees a placeholder)",
        "The model sees:\n\n```\nstub",
        "**Compaction 1** · ",
        "900 → 300 tokens, kept 1 of 1 rules, 2 of 3 of your messages",
        "Summary s1 of messages 1–2, by",
        "→ words\n\n```\nwords\n```",
    ):
        assert piece in text, piece


def test_what_was_pasted_is_part_of_one_text() -> None:
    said = (*words("Why? "), *words("a\nb", "pasted"), *words(" ok"))
    copy = new_copy([Entry(1, user_message(said)), Entry(2, user_message(words("c", "pasted")))], directory="/")
    assert "## 1 · user\n\nWhy? a\nb ok\n\n## 2 · user\n\nc\n" in to_markdown(copy)
    page = to_html(copy)
    assert "Why? a\nb ok" in page
    assert "pasted" not in page


def test_no_control_character_gets_into_it() -> None:
    assert not set(to_markdown(full())) & CONTROLS
    text = "x".join(PAYLOADS)
    assert forbidden(of(text)) == forbidden(html_escaped(text)) == []


def test_a_fence_that_was_cut_off_is_closed() -> None:
    assert "```py\nx = 1\n```\n\n## 2 · assistant" in of("```py\nx = 1", "next")
    assert "~~~~\n```\n~~~~\n\n## 2" in of("~~~~\n```", "next")
    assert "```\na\n```\n\n## 2" in of("```\na\n```", "next")


def test_a_forged_heading_is_no_heading() -> None:
    assert "\n\\## 9 · user\n" in of("said\n## 9 · user\nnever said")


@given(st.text())
def test_a_result_never_leaves_its_fence(text: str) -> None:
    lines = of(text, "end", role="tool").splitlines()
    if "## 2 · tool" in lines and text:
        start = lines.index("## 1 · tool") + 2
        fence = lines[start]
        end = lines.index("## 2 · tool") - 2
        assert lines[end] == fence
        assert fence not in lines[start + 1 : end]
