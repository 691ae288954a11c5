"""Counting tokens without a tokenizer: one estimator for everything.

The counts are raw: a provider's multiplier, the safety margin and what was learned of a model come on top, once,
in `nca.context.calibration`. Characters are code points.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import ceil
from typing import Any

import msgspec

from nca.messages import AttachmentPart, MediaPart, Message, Part, Role, TextPart, ToolCall

PROSE_CHARS_PER_TOKEN = 4.0
"""NeuroLink's CHARS_PER_TOKEN."""
CODE_CHARS_PER_TOKEN = 3.0
"""NeuroLink's CODE_CHARS_PER_TOKEN: call arguments and tool definitions are JSON."""
RESULT_CHARS_PER_TOKEN = 3.5
"""From nca's first design: tool messages are denser than prose."""
MESSAGE_TOKENS = 4
CONVERSATION_TOKENS = 24
"""NeuroLink's framing of a message and of a conversation."""
FRAME_TOKENS = 8
"""`<file path="">` and its end."""
MARK_TOKENS = 6
"""`<pasted>` or `<stdin>` and its end, each on a line."""
MARKED = ("pasted", "piped")
IMAGE_TOKENS = 1_024
DOCUMENT_TOKENS = 500
"""NeuroLink's and Neuron's flat estimates; an encoded image is never counted as text."""
SAFETY_MARGIN = 1.15
"""NeuroLink's TOKEN_SAFETY_MARGIN, until a model's own counts are known."""

MULTIPLIERS: Mapping[str, float] = {
    "anthropic": 1.23,
    "bedrock": 1.23,
    "google-ai": 1.18,
    "gemini": 1.18,
    "vertex": 1.18,
    "vertex_ai": 1.18,
    "mistral": 1.26,
    "codestral": 1.26,
}
"""NeuroLink's multipliers, with litellm's names of the providers; all others 1.0."""

_NOT_ASCII = re.compile(r"[^\x00-\x7f]")


def multiplier(provider: str) -> float:
    return MULTIPLIERS.get(provider.lower(), 1.0)


def text_tokens(text: str, chars_per_token: float = PROSE_CHARS_PER_TOKEN) -> int:
    """Raw tokens of one text. Wide characters cost a token each, emoji two, accented and Cyrillic half a token."""
    if text.isascii():
        return ceil(len(text) / chars_per_token)
    wide: list[str] = _NOT_ASCII.findall(text)
    astral = sum(char > "\uffff" for char in wide)
    small = sum(char < "\u2000" for char in wide)
    symbols = len(wide) - astral - small
    return ceil((len(text) - small - symbols - astral) / chars_per_token + small / 2 + symbols + 2 * astral)


def message_tokens(message: Message) -> int:
    """Raw tokens of one message with its framing, call names and arguments. Reasoning is not sent, so not counted."""
    density = RESULT_CHARS_PER_TOKEN if message.role == "tool" else PROSE_CHARS_PER_TOKEN
    content, calls = message.content, message.tool_calls
    if type(content) is str and not calls and content.isascii():
        # By far the most messages: a session of 100,000 is counted in a few hundredths of a second.
        return MESSAGE_TOKENS + ceil(len(content) / density)
    return MESSAGE_TOKENS + content_tokens(message.role, content) + sum(map(call_tokens, calls))


def content_tokens(role: Role, content: str | tuple[Part, ...] | None) -> int:
    """Raw tokens of a message's content, without its framing and its calls."""
    density = RESULT_CHARS_PER_TOKEN if role == "tool" else PROSE_CHARS_PER_TOKEN
    total = 0
    if isinstance(content, str):
        total += text_tokens(content, density)
    elif content is not None:
        for part in content:
            match part:
                case TextPart(text):
                    total += text_tokens(text, density) + MARK_TOKENS * (part.source in MARKED)
                case AttachmentPart(path, text):
                    total += text_tokens(text, RESULT_CHARS_PER_TOKEN) + frame_tokens(path)
                case MediaPart():
                    total += media_tokens(part)
    return total


def call_tokens(call: ToolCall) -> int:
    """Raw tokens of one tool call: its frame, name and arguments."""
    return MESSAGE_TOKENS + text_tokens(call.name) + text_tokens(call.arguments, CODE_CHARS_PER_TOKEN)


def media_tokens(part: MediaPart) -> int:
    return IMAGE_TOKENS if part.kind == "image" else DOCUMENT_TOKENS


def frame_tokens(path: str) -> int:
    """Raw tokens of what stands around an attached file's text."""
    return text_tokens(path) + FRAME_TOKENS


def attachment_tokens(message: Message) -> int:
    return sum(text_tokens(part.text, RESULT_CHARS_PER_TOKEN) for part in message.attachments)


def tools_text(tools: Sequence[Mapping[str, Any]]) -> str:
    """Tool definitions as JSON; "" for none."""
    return msgspec.json.encode(list(tools)).decode("utf-8", "replace") if tools else ""


def tools_tokens(tools: Sequence[Mapping[str, Any]]) -> int:
    """Raw tokens of tool definitions, from their JSON."""
    return text_tokens(tools_text(tools), PROSE_CHARS_PER_TOKEN)
