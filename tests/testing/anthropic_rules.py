"""The rules of Anthropic's Messages API for the body of a request: https://docs.anthropic.com/en/api/messages."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from itertools import pairwise
from typing import Any

MOST_MARKS = 4
MOST_BYTES = 32_000_000
_ID = re.compile(r"[a-zA-Z0-9_-]+")
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_CANNOT_BEAR_A_MARK = frozenset({"thinking", "redacted_thinking"})


def body_problems(body: dict[str, Any], betas: str = "", *, signed: Collection[str] = ()) -> list[str]:
    """One line for each violation. `signed`: the signatures that the API has issued for thinking blocks."""
    messages = [(message.get("role"), _listed(message.get("content"))) for message in body.get("messages") or ()]
    return [
        *_order(messages),
        *_tools(messages),
        *_texts(messages, body),
        *_thoughts(messages, signed),
        *_thinking(messages, body),
        *_marks(messages, body),
        *_compaction(messages, body, betas),
    ]


def _order(messages: list[tuple[Any, list[Any]]]) -> Iterator[str]:
    if not messages:
        yield "there is no message"
        return
    first_role, first = messages[0]
    if first_role != "user" and not (first and first[0].get("type") == "compaction"):
        yield "the first message is not the user's"
    for index, (role, _) in enumerate(messages):
        if role not in ("user", "assistant"):
            yield f"message {index} has the role {role}"
    for index, ((one, _), (two, _)) in enumerate(pairwise(messages)):
        if one == two:
            yield f"messages {index} and {index + 1} have the same role"
    if messages[-1][0] != "user":
        yield "the last message is the assistant's"


def _tools(messages: list[tuple[Any, list[Any]]]) -> Iterator[str]:
    seen: set[str] = set()
    waiting: list[str] = []
    for index, (role, blocks) in enumerate(messages):
        results = [block["tool_use_id"] for block in blocks if block.get("type") == "tool_result"]
        if role == "user":
            if sorted(results) != sorted(waiting):
                yield f"message {index} has results for {results}, but the calls are {waiting}"
            kinds = [block.get("type") for block in blocks]
            if "tool_result" in kinds[len(results) :]:
                yield f"message {index} has a tool result after other content"
            waiting = []
            continue
        calls = [block for block in blocks if block.get("type") == "tool_use"]
        waiting = [call["id"] for call in calls]
        for call in calls:
            if call["id"] in seen or not _ID.fullmatch(call["id"]):
                yield f"message {index} has a repeated or invalid call id {call['id']!r}"
            if not isinstance(call.get("input"), dict):
                yield f"the input of {call['id']} is not an object"
            if not _NAME.fullmatch(call.get("name") or ""):
                yield f"the tool name {call.get('name')!r} is invalid"
            seen.add(call["id"])
    if waiting:
        yield f"the calls {waiting} have no result"


def _texts(messages: list[tuple[Any, list[Any]]], body: dict[str, Any]) -> Iterator[str]:
    for index, (_, blocks) in enumerate(messages):
        if not blocks:
            yield f"message {index} is empty"
        if any(block.get("type") == "text" and not block.get("text", "").strip() for block in blocks):
            yield f"message {index} has an empty text block"
    if not isinstance(body.get("max_tokens"), int) or body["max_tokens"] < 1:
        yield f"max_tokens is {body.get('max_tokens')!r}"
    if len(json.dumps(body)) > MOST_BYTES:
        yield "the body is too large"


def _thoughts(messages: list[tuple[Any, list[Any]]], signed: Collection[str]) -> Iterator[str]:
    for index, (_, blocks) in enumerate(messages):
        kinds = [block.get("type") for block in blocks if block.get("type") != "compaction"]
        thoughts = [block for block in blocks if block.get("type") == "thinking"]
        if any(kind == "thinking" for kind in kinds[len(thoughts) :]):
            yield f"message {index} has a thinking block after other content"
        for thought in thoughts:
            if thought.get("signature") not in signed:
                yield f"a thinking block of message {index} has an invalid signature"


def _thinking(messages: list[tuple[Any, list[Any]]], body: dict[str, Any]) -> Iterator[str]:
    """Of a request that asks for thinking: https://docs.anthropic.com/en/docs/build-with-claude/extended-thinking."""
    thinking = body.get("thinking") or {}
    if thinking.get("type") not in ("enabled", "adaptive"):
        return
    if body.get("temperature") not in (None, 1, 1.0):
        yield f"temperature is {body['temperature']}; with thinking only 1 is valid"
    if thinking.get("budget_tokens", 0) >= body.get("max_tokens", 0):
        yield "max_tokens is not above thinking.budget_tokens"
    final: list[Any] = next((blocks for role, blocks in reversed(messages) if role == "assistant"), [])
    is_in_turn = bool(messages) and any(block.get("type") == "tool_result" for block in messages[-1][1])
    if is_in_turn and final and final[0].get("type") not in _CANNOT_BEAR_A_MARK:
        yield f"expected thinking, found {final[0].get('type')}: a final assistant message must start with thinking"


def _marks(messages: list[tuple[Any, list[Any]]], body: dict[str, Any]) -> Iterator[str]:
    blocks = [block for _, found in messages for block in found]
    marked = [
        block for block in (*body.get("tools", ()), *_listed(body.get("system")), *blocks) if "cache_control" in block
    ]
    if len(marked) > MOST_MARKS:
        yield f"{len(marked)} cache marks; at most {MOST_MARKS}"
    for block in marked:
        if block.get("type") in _CANNOT_BEAR_A_MARK or (block.get("type") == "text" and not block["text"].strip()):
            yield f"a cache mark on {block.get('type')} that cannot bear one"


def _compaction(messages: list[tuple[Any, list[Any]]], body: dict[str, Any], betas: str) -> Iterator[str]:
    has_block = any(block.get("type") == "compaction" for _, blocks in messages for block in blocks)
    if (has_block or body.get("context_management")) and "compact-2026-01-12" not in betas:
        yield "a compaction block needs the beta header"
    for _, blocks in messages:
        for block in blocks:
            if block.get("type") == "compaction" and not str(block.get("content") or "").strip():
                yield "a compaction block is empty"


def _listed(content: Any) -> list[Any]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block for block in content or () if isinstance(block, dict)]
