"""What a message says and who said it, the message of a user's words, and sums of usage."""

from __future__ import annotations

import gc
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nca.messages import (
    AttachmentPart,
    Entry,
    MediaPart,
    Message,
    Part,
    Role,
    TextPart,
    Usage,
    collector_paused,
    user_message,
)
from nca.words import Source, Span, merged

IMPLIED: dict[Role, Source] = {"system": "nca", "user": "foreign", "assistant": "model", "tool": "tool"}
OWN: tuple[Source, ...] = ("typed", "pasted", "piped", "attached", "tool", "model", "foreign")
BESIDE: tuple[Part, ...] = (
    AttachmentPart("a.txt", "attached text", 13),
    MediaPart("image", {"type": "image_url"}),
    TextPart("a reminder", source="nca"),
)
PLAIN = st.builds(TextPart, st.text("ab\n", max_size=4))
SAID = st.builds(TextPart, st.text("ab\n", max_size=4), source=st.sampled_from(OWN))
PARTS = st.lists(PLAIN | SAID | st.sampled_from(BESIDE), max_size=6)


@given(st.sampled_from(list(IMPLIED)), PARTS)
def test_parts_stand_on_lines_of_their_own_but_where_both_have_a_source(role: Role, parts: list[Part]) -> None:
    texts = [part for part in parts if isinstance(part, TextPart) and part.source != "nca"]
    expected = ""
    for number, part in enumerate(texts):
        is_joined = number == 0 or (part.source and texts[number - 1].source)
        expected += ("" if is_joined else "\n") + part.text
    message = Message(role, tuple(parts))
    assert message.text == expected
    spans = [Span(part.text, part.source or IMPLIED[role]) for part in texts]
    assert [span for span in message.said if span.text != "\n"] == [span for span in spans if span.text != "\n"]
    assert {span.source for span in message.said} <= {IMPLIED[role], *(span.source for span in spans)}
    assert message.attachments == tuple(part for part in parts if isinstance(part, AttachmentPart))


@pytest.mark.parametrize("role", list(IMPLIED))
def test_a_text_is_of_the_source_that_is_named_or_else_of_its_role(role: Role) -> None:
    assert Message(role, "x").said == (Span("x", IMPLIED[role]),)
    assert Message(role, "x", source="piped").said == (Span("x", "piped"),)
    assert Message(role, (TextPart("x"),), source="piped").said == (Span("x", "piped"),)
    assert Message(role).said == Message(role, ()).said == ()
    assert (Message(role).text, Message(role, "x").attachments) == ("", ())
    assert [Message(role, "x", source=source).is_synthetic for source in ("nca", "typed")] == [True, False]


@given(
    st.lists(st.builds(Span, st.text("ab\n", max_size=3), st.sampled_from(OWN)), min_size=1, max_size=5),
    st.lists(st.sampled_from(BESIDE), max_size=2),
)
def test_the_message_of_words_says_them_with_their_sources(said: list[Span], beside: list[Part]) -> None:
    words = merged(tuple(said))
    message = user_message(tuple(said), beside)
    assert (message.role, message.text) == ("user", "".join(span.text for span in said))
    assert tuple(span for span in message.said if span.text) == words
    # The model sees where a pasted text ends, and what goes along stands in parts.
    is_parts = bool(beside) or len(words) > 1 or any(span.source == "pasted" for span in words)
    assert isinstance(message.content, tuple) == is_parts
    assert not is_parts or message.content == (*(TextPart(text, source=of) for text, of in words), *beside)


def test_the_message_of_no_words_is_empty() -> None:
    assert user_message(()) == Message("user", "")
    assert user_message((Span("", "typed"),)) == Message("user", "", source="typed")


NUMBERS = ("prompt_tokens", "completion_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens")
USAGE = st.builds(
    Usage, *[st.integers(0, 9_999) for _ in NUMBERS], cost=st.none() | st.integers(0, 64).map(lambda n: n / 8)
)


@given(USAGE, USAGE)
def test_usage_adds_up_field_by_field_and_an_unknown_cost_adds_nothing(one: Usage, other: Usage) -> None:
    both = one + other
    assert [getattr(both, name) for name in NUMBERS] == [getattr(one, name) + getattr(other, name) for name in NUMBERS]
    known = [cost for cost in (one.cost, other.cost) if cost is not None]
    assert both.cost == (sum(known) if known else None)


@pytest.mark.parametrize(
    ("change", "is_same"),
    [
        ({}, True),
        ({"tokens": 7}, True),
        ({"seq": 2}, False),
        ({"at": 5.0}, False),
        ({"message": Message("user")}, False),
    ],
)
def test_an_entry_is_the_same_however_it_was_counted(change: dict[str, Any], is_same: bool) -> None:
    entry = Entry(1, Message("user", "x"), 1.0)
    other = msgspec.structs.replace(entry, **change)
    assert (entry == other) == is_same
    assert (len({entry, other}) == 1) == is_same
    assert entry != "x"


@pytest.mark.parametrize("is_enabled", [True, False])
def test_the_collector_is_afterwards_as_it_was_before(is_enabled: bool) -> None:
    (gc.enable if is_enabled else gc.disable)()
    try:
        with collector_paused():
            assert not gc.isenabled()
        assert gc.isenabled() is is_enabled
        with pytest.raises(ValueError, match="no-number"), collector_paused():
            int("no-number")
        assert gc.isenabled() is is_enabled
    finally:
        gc.enable()
