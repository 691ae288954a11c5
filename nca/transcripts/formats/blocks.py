"""Anthropic's blocks, as several agents store them, read into messages. Unlike `nca.shapes`, this refuses nothing.

A block that is not known, or not as it should be, becomes text that says what it holds.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Literal

import msgspec

from nca.context.request import SIGNED_THOUGHTS
from nca.context.rules.messages import NO_OUTPUT
from nca.messages import AttachmentPart, MediaPart, Message, Part, TextPart, ToolCall, clean_text
from nca.shapes.shaped import as_chat_message
from nca.transcripts.formats.building import objects_of, text_of
from nca.words import Source

THOUGHTS = ("thinking", "redacted_thinking")


def json_of(value: Any) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except UnicodeEncodeError:
        return json.dumps(value)


def arguments_of(value: Any) -> str:
    """A call's arguments as JSON text. A text that is no JSON is kept as it is: nca repairs what it sends."""
    if isinstance(value, str):
        return clean_text(value) or "{}"
    return json_of({} if value is None else value)


def blocks_of(content: Any) -> list[dict[str, Any]]:
    """The blocks of a content, which may be a text."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    if isinstance(content, dict):
        return [content]
    return objects_of(content)


def user_messages(blocks: Iterable[Mapping[str, Any]], names: Mapping[str, str]) -> list[Message]:
    """The messages of a user's row: each result is one, and so is what is said before, between and behind them.

    names  the tools by the ids of their calls
    """
    found: list[Message] = []
    parts: list[Part] = []
    for block in blocks:
        if block.get("type") != "tool_result" or not isinstance(block.get("tool_use_id"), str):
            parts.append(part_of(block))
            continue
        if parts:
            found.append(user_message(parts))
            parts = []
        answered = clean_text(block["tool_use_id"])
        found.append(
            tool_message(block.get("content"), answered, names.get(answered, ""), is_error=bool(block.get("is_error")))
        )
    if parts:
        found.append(user_message(parts))
    return found


def user_message(parts: Iterable[Part], *, source: Source | Literal[""] = "") -> Message:
    return as_chat_message(Message("user", tuple(parts), source=source))


def tool_message(content: Any, answered: str, name: str, *, is_error: bool = False) -> Message:
    if isinstance(content, str) and content.strip():
        return Message("tool", clean_text(content), tool_call_id=answered, name=name, is_error=is_error)
    parts = [part_of(block) for block in blocks_of(content)]
    is_empty = not any(not isinstance(part, TextPart) or part.text.strip() for part in parts)
    shown = NO_OUTPUT if is_empty else tuple(parts)
    return as_chat_message(Message("tool", shown, tool_call_id=answered, name=name, is_error=is_error))


def answer_message(blocks: Iterable[Mapping[str, Any]], model: str) -> Message:
    """An answer: its text, calls, and thoughts with their signatures."""
    parts: list[Part] = []
    calls: list[ToolCall] = []
    thoughts: list[dict[str, Any]] = []
    for block in blocks:
        kind, name = block.get("type"), block.get("name")
        if kind == "tool_use" and isinstance(block.get("id"), str) and block["id"] and isinstance(name, str) and name:
            calls.append(ToolCall(clean_text(block["id"]), clean_text(name), arguments_of(block.get("input"))))
        elif kind in THOUGHTS:
            thoughts.append(dict(block))
        else:
            parts.append(part_of(block))
    if not thoughts:
        return as_chat_message(Message("assistant", tuple(parts) or None, tuple(calls)))
    reasoning = "\n\n".join(text for thought in thoughts if (text := text_of(thought.get("thinking"))))
    if not parts and not calls:
        # It was stopped while it thought: nothing was said, and nothing of it is sent again.
        return Message("assistant", reasoning=clean_text(reasoning))
    signed = [thought for thought in thoughts if thought.get("signature") or thought.get("data")]
    message = as_chat_message(Message("assistant", tuple(parts) or None, tuple(calls)))
    extra = {SIGNED_THOUGHTS: signed} if signed else {}
    return msgspec.structs.replace(
        message, reasoning="" if signed else reasoning, extra=extra, made_by=clean_text(model) if extra else ""
    )


def part_of(block: Mapping[str, Any]) -> Part:
    kind, text = block.get("type"), block.get("text")
    if kind in ("text", "input_text", "output_text", None) and isinstance(text, str):
        return TextPart(clean_text(text))
    if kind == "image" and isinstance(source := block.get("source"), dict) and _is_picture(source):
        return MediaPart("image", {"type": "image", "source": source})
    if kind == "document" and isinstance(source := block.get("source"), dict):
        if source.get("type") == "text" and isinstance(source.get("data"), str):
            return TextPart(clean_text(source["data"]))
        if source.get("type") == "base64" and isinstance(source.get("data"), str):
            return MediaPart("document", {**block})
    name = clean_text(kind) if isinstance(kind, str) and kind else "block"
    shown = json_of(block)
    return AttachmentPart(name, shown, len(shown.encode()))


def _is_picture(source: Mapping[str, Any]) -> bool:
    held, address = source.get("data"), source.get("url")
    return (isinstance(held, str) and isinstance(source.get("media_type"), str)) or isinstance(address, str)
