"""Tokens of messages: everything that is sent is counted in o200k; base64 and reasoning are not."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nca.context import tokens
from nca.context.tokens import (
    CONVERSATION_TOKENS,
    MESSAGE_TOKENS,
    attachment_tokens,
    call_tokens,
    content_tokens,
    entry_tokens,
    log_tokens,
    message_tokens,
)
from nca.messages import AttachmentPart, Entry, MediaPart, Message, TextPart, ToolCall
from nca.vocabulary import count
from nca.wire import content_to_wire
from tests.context.logs import logs
from tests.context.samples import some

WORDS = "The quick brown fox jumps over the lazy dog. "


def test_what_frames_a_message_and_a_request_is_as_openai_says() -> None:
    """Their cookbook: three tokens a message and one for its role; three begin the answer."""
    assert (MESSAGE_TOKENS, CONVERSATION_TOKENS) == (4, 3)


@pytest.mark.parametrize("role", ["user", "assistant", "tool", "system"])
def test_a_text_counts_the_same_whoever_says_it(role: str) -> None:
    message = msgspec.convert({"role": role, "content": WORDS, "tool_call_id": "a"}, Message)
    assert message_tokens(message) == MESSAGE_TOKENS + count(WORDS)


@pytest.mark.parametrize("text", ["def f(x):\n    return x\n" * 9, "deadbeef" * 40, "日本語" * 10, "🦀🦀", "жизнь", ""])
def test_every_text_counts_what_the_vocabulary_says(text: str) -> None:
    assert content_tokens(text) == count(text) == content_tokens((TextPart(text),))


def test_a_call_counts_its_name_and_its_arguments() -> None:
    call = ToolCall("a", "shell", '{"command":"make test"}')
    assert call_tokens(call) == MESSAGE_TOKENS + count("shell") + count('{"command":"make test"}')
    assert message_tokens(Message("assistant", None, (call, call))) == MESSAGE_TOKENS + 2 * call_tokens(call)
    assert message_tokens(Message("assistant")) == MESSAGE_TOKENS


@pytest.mark.parametrize("kind", ["image", "document", "audio"])
def test_media_count_what_they_show_and_their_base64_is_no_text(kind: str) -> None:
    payload = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "/" * 1_000_000}}
    part = MediaPart(msgspec.convert(kind, type=str), payload)
    assert 0 < content_tokens((part,)) < 100_000 < count("A1b" * 333_333)


def test_attachments_are_told_apart() -> None:
    message = Message("user", (TextPart("look"), AttachmentPart("a.txt", WORDS * 8, 350)))
    assert attachment_tokens(message) == count(WORDS * 8)


_texts = st.lists(st.sampled_from([*"ab \n<>/Ж日", "word ", "</pasted>"]), max_size=20).map("".join)
_parts = st.one_of(
    st.builds(TextPart, _texts, source=st.sampled_from(["", "typed", "pasted", "piped", "nca"])),
    st.builds(AttachmentPart, st.sampled_from(["a.py", "src/лог 1.txt"]), _texts, st.integers(0, 99)),
)


@given(st.lists(_parts, min_size=1, max_size=4).map(tuple))
def test_what_is_sent_is_what_is_counted(content: tuple[TextPart | AttachmentPart, ...]) -> None:
    sent = content_to_wire(content)
    texts = [sent] if isinstance(sent, str) else [part["text"] for part in sent]
    assert content_tokens(content) == sum(map(count, texts))


def test_reasoning_is_not_sent_so_not_counted() -> None:
    thought = Message("assistant", "hi", reasoning=WORDS * 90)
    assert message_tokens(thought) == message_tokens(Message("assistant", "hi"))


def test_signed_thoughts_go_back_so_they_are_counted() -> None:
    thought = {"type": "thinking", "thinking": WORDS * 90, "signature": "c2ln" * 500}
    hidden = {"type": "redacted_thinking", "data": "x" * 1_000}
    odd: list[Any] = [7, {"type": "thinking", "thinking": 3}]
    said = Message("assistant", "hi", (ToolCall("a", "ls", "{}"),))
    sent = msgspec.structs.replace(said, extra={"thinking_blocks": [thought, hidden, *odd]})
    assert message_tokens(sent) - message_tokens(said) == count(WORDS * 90) + 200


def test_far_behind_a_sample_of_a_long_text_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "NEAR_TOKENS", 2_000)
    texts = [WORDS * 200, "yes", "def f(x):\n    return x + 1\n" * 300, "ab12" * 900, WORDS * 150, "so", WORDS * 40]
    entries = [Entry(seq, Message("user", text)) for seq, text in enumerate(texts, 1)]
    found, exact = log_tokens(entries), [entry_tokens(entry) for entry in entries]
    assert found[5:] == exact[5:], "what is near is counted whole"
    assert found[1] == exact[1], "and so is what is short"
    assert found != exact
    assert found == pytest.approx(exact, rel=0.1)
    stored = [Entry(entry.seq, entry.message, tokens=7) for entry in entries]
    assert log_tokens(stored) == [7] * len(texts)


@some
@given(logs())
def test_what_was_counted_when_it_was_stored_is_not_counted_again(messages: list[Message]) -> None:
    for message in messages:
        assert entry_tokens(Entry(1, message)) == message_tokens(message)
        assert entry_tokens(Entry(1, message, tokens=7)) == 7
        assert Entry(1, message, tokens=7) == Entry(1, message)
