"""Images of tool results are sent after the results, in a separate message."""

from __future__ import annotations

from nca.context.history import History
from nca.context.request import request_messages
from nca.context.rules.media import NOT_SHOWN
from nca.context.validate import validate_request
from nca.context.view import Stub, Verbatim, View
from nca.messages import Entry, MediaPart, Message, TextPart, ToolCall

IMAGE = MediaPart("image", {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}})
LOG = (
    Message("user", "look"),
    Message("assistant", None, (ToolCall("a", "read_file", "{}"), ToolCall("b", "grep", "{}"))),
    Message("tool", (TextPart("[x.png]"), IMAGE), tool_call_id="a", name="read_file"),
    Message("tool", "found", tool_call_id="b", name="grep"),
    Message("assistant", "seen"),
)
ENTRIES = [Entry(seq, message) for seq, message in enumerate(LOG, 1)]


def test_images_come_behind_the_results_of_their_step() -> None:
    for provider in ("openai", "anthropic", "gemini", "mistral", ""):
        rows = request_messages(History(ENTRIES), provider=provider)
        roles = [row["role"] for row in rows]
        assert roles[:5] == [
            "user",
            "assistant",
            "tool",
            "tool",
            "assistant" if provider in ("mistral", "") else "user",
        ]
        assert rows[2]["content"] == "[x.png]"
        (shown,) = [row for row in rows if isinstance(row["content"], list)]
        assert shown["content"] == [{"type": "text", "text": "[shown by read_file]"}, IMAGE.payload]
        assert not validate_request(rows, provider or "openai")


def test_a_step_at_the_end_has_them_too() -> None:
    rows = request_messages(History(ENTRIES[:4]), provider="openai")
    assert [row["role"] for row in rows] == ["user", "assistant", "tool", "tool", "user"]


def test_a_model_that_takes_none_is_told() -> None:
    rows = request_messages(History(ENTRIES), provider="openai", can_see=False)
    assert rows[2]["content"] == f"[x.png]\n{NOT_SHOWN}"
    assert "base64" not in str(rows)


def test_a_cleared_result_has_no_image() -> None:
    view = View((Verbatim(1, 2), Stub(3, "[cleared]", "prune"), Verbatim(4, 5)), 6)
    rows = request_messages(History(ENTRIES, view), provider="openai")
    assert rows[2]["content"] == "[cleared]"
    assert "base64" not in str(rows)
