"""Anthropic's blocks, as several agents store them, read into messages. Unlike `nca.shapes`, this refuses nothing.

A block that is not known, or not as it should be, becomes text that says what it holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

import msgspec

from nca.context.request import SIGNED_THOUGHTS
from nca.messages import MediaPart, Message, Part, TextPart, ToolCall, clean_text
from nca.shapes.shaped import as_chat_message
from nca.transcripts.formats.building import as_json, attached, has_content, tool_call, tool_result
from nca.transcripts.formats.row import Row, row_of, rows_of, text_of
from nca.words import Source

_THOUGHTS = ("thinking", "redacted_thinking")


def blocks_of(content: Any) -> list[Row]:
    """The blocks of a content, which may be a text."""
    if isinstance(content, str):
        return [Row(type="text", text=content)] if content else []
    if isinstance(content, dict):
        return [Row(content)]
    return rows_of(content)


def user_message(parts: Iterable[Part], *, source: Source | Literal[""] = "") -> Message:
    return as_chat_message(Message("user", tuple(parts), source=source))


def user_messages(
    blocks: Iterable[Row], names: Mapping[str, str], said: Callable[[list[Part]], Message] = user_message
) -> list[Message]:
    """The messages of a user's row: each result is one, and so is what is said before, between and behind them.

    names  the tools by the ids of their calls
    said   makes the message of parts that are no result
    """
    found: list[Message] = []
    parts: list[Part] = []
    for block in blocks:
        answered = block.text("tool_use_id")
        if block.get("type") != "tool_result" or not answered:
            parts.append(part_of(block))
            continue
        if parts:
            found.append(said(parts))
            parts = []
        given, is_error = block.get("content"), bool(block.get("is_error"))
        content = text_of(given) if isinstance(given, str) else tuple(map(part_of, blocks_of(given)))
        shown = content if has_content(content) else ""
        found.append(as_chat_message(tool_result(answered, names.get(answered), shown, is_error=is_error)))
    if parts:
        found.append(said(parts))
    return found


def answer_message(blocks: Iterable[Row], model: str) -> Message:
    """An answer: its text, calls, and thoughts with their signatures."""
    parts: list[Part] = []
    calls: list[ToolCall] = []
    thoughts: list[Row] = []
    for block in blocks:
        kind = block.get("type")
        if kind == "tool_use" and (call := tool_call(block.get("id"), block.get("name"), block.get("input"))):
            calls.append(call)
        elif kind in _THOUGHTS:
            thoughts.append(block)
        else:
            parts.append(part_of(block))
    if not thoughts:
        return as_chat_message(Message("assistant", tuple(parts) or None, tuple(calls)))
    reasoning = "\n\n".join(text for thought in thoughts if (text := thought.text("thinking")))
    if not parts and not calls:
        # It was stopped while it thought: nothing was said, and nothing of it is sent again.
        return Message("assistant", reasoning=clean_text(reasoning))
    signed = [dict(thought) for thought in thoughts if thought.get("signature") or thought.get("data")]
    message = as_chat_message(Message("assistant", tuple(parts) or None, tuple(calls)))
    extra = {SIGNED_THOUGHTS: signed} if signed else {}
    return msgspec.structs.replace(
        message, reasoning="" if signed else reasoning, extra=extra, made_by=clean_text(model) if extra else ""
    )


def part_of(block: Row) -> Part:
    kind, text = block.get("type"), block.get("text")
    if kind in ("text", "input_text", "output_text", None) and isinstance(text, str):
        return TextPart(clean_text(text))
    source = row_of(block.get("source"))
    data, address = source.get("data"), source.get("url")
    if kind == "image" and (
        (isinstance(data, str) and isinstance(source.get("media_type"), str)) or isinstance(address, str)
    ):
        return MediaPart("image", {"type": "image", "source": block["source"]})
    if kind == "document" and isinstance(data, str):
        if source.get("type") == "text":
            return TextPart(clean_text(data))
        if source.get("type") == "base64":
            return MediaPart("document", {**block})
    return attached(text_of(kind) or "block", as_json(block))
