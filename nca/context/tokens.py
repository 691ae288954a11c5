"""Tokens of messages and requests, counted in o200k.

Planner, meter, record, library and filter use this one unit. These counts are raw: `nca.context.calibration` turns them
into a model's tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nca.context.media import media_tokens
from nca.messages import SIGNED_THOUGHTS, AttachmentPart, Entry, MediaPart, Message, Part, TextPart, ToolCall
from nca.vocabulary import about, count
from nca.wire import content_text, is_one_text, part_text

MESSAGE_TOKENS = 4
"""The frame of a message: its start, its role and its end (OpenAI's cookbook, "How to count tokens with tiktoken")."""
CONVERSATION_TOKENS = 3
"""The beginning of the answer, from the same source."""
_HIDDEN_CHARS = 5
"""Characters of base64 for each token of an encrypted text: three quarters of them are bytes."""
NEAR_TOKENS = 2_000_000
"""Twice the largest window there is."""


def text_tokens(text: str) -> int:
    """Tokens of one text."""
    return count(text) if text else 0


def entry_tokens(entry: Entry) -> int:
    """Tokens of a message of the log, from the count stored with it, if any."""
    return message_tokens(entry.message) if entry.tokens is None else entry.tokens


def log_tokens(entries: Sequence[Entry]) -> list[int]:
    """Tokens of each of many messages of a log.

    If more follows than any window holds, a long text is estimated from a sample: it decides nothing but that
    the log is far too long.
    """
    found: list[int] = []
    behind = 0
    for entry in reversed(entries):
        content = entry.message.content
        if behind > NEAR_TOKENS and entry.tokens is None and isinstance(content, str) and not entry.message.tool_calls:
            found.append(MESSAGE_TOKENS + about(content))
        else:
            found.append(entry_tokens(entry))
        behind += found[-1]
    return found[::-1]


def message_tokens(message: Message) -> int:
    """Tokens of one message with its framing, call names, arguments, and the thoughts that go back to their maker.

    Other reasoning is not sent, so not counted.
    """
    content, calls = message.content, message.tool_calls
    size = MESSAGE_TOKENS + (text_tokens(content) if type(content) is str else content_tokens(content))
    if message.extra:
        size += sum(map(_thought_tokens, message.extra.get(SIGNED_THOUGHTS) or ()))
    return size + sum(map(call_tokens, calls)) if calls else size


def _thought_tokens(block: Any) -> int:
    """Tokens of a signed thought; an encrypted one is about as long as its text was."""
    if not isinstance(block, dict):
        return 0
    hidden = block.get("data")
    text = block.get("thinking")
    size = len(hidden) // _HIDDEN_CHARS if isinstance(hidden, str) else 0
    return size + (text_tokens(text) if isinstance(text, str) else 0)


def content_tokens(content: str | tuple[Part, ...] | None) -> int:
    """Tokens of a message's content as it is sent, without its framing and its calls."""
    if isinstance(content, tuple) and not is_one_text(content):
        return sum(map(part_tokens, content))
    return text_tokens(content_text(content))


def part_tokens(part: Part) -> int:
    """Tokens of a part of a message, with its frame."""
    match part:
        case MediaPart():
            return media_tokens(part)
        case TextPart(text, {"type": "audio"} as spoken):
            return max(text_tokens(text), media_tokens(MediaPart("audio", spoken)))
    return text_tokens(part_text(part))


def call_tokens(call: ToolCall) -> int:
    """Tokens of one tool call: its frame, name and arguments."""
    return MESSAGE_TOKENS + text_tokens(call.name) + text_tokens(call.arguments)


def frame_tokens(path: str) -> int:
    """Tokens of the frame of an attached file's text."""
    return part_tokens(AttachmentPart(path, "", 0))


def attachment_tokens(message: Message) -> int:
    return sum(text_tokens(part.text) for part in message.attachments)
