"""What Anthropic's Messages API refuses of a body (reliability 3.6, A1–A15, as far as they concern the body)."""

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
    """One line for each thing that would be refused. `signed`: the signatures that were given for thoughts."""
    messages = [(message.get("role"), _listed(message.get("content"))) for message in body.get("messages") or ()]
    return [
        *_order(messages),
        *_tools(messages),
        *_texts(messages, body),
        *_thoughts(messages, signed),
        *_marks(messages, body),
        *_compaction(messages, body, betas),
    ]


def _order(messages: list[tuple[Any, list[Any]]]) -> Iterator[str]:
    if not messages:
        yield "A1: no message"
        return
    first_role, first = messages[0]
    if first_role != "user" and not (first and first[0].get("type") == "compaction"):
        yield "A1: the first message is not the user's"
    for index, (role, _) in enumerate(messages):
        if role not in ("user", "assistant"):
            yield f"A2: message {index} has the role {role}"
    for index, ((one, _), (two, _)) in enumerate(pairwise(messages)):
        if one == two:
            yield f"A2: messages {index} and {index + 1} have one role"
    if messages[-1][0] != "user":
        yield "A9: the last message is the assistant's"


def _tools(messages: list[tuple[Any, list[Any]]]) -> Iterator[str]:
    seen: set[str] = set()
    waiting: list[str] = []
    for index, (role, blocks) in enumerate(messages):
        results = [block["tool_use_id"] for block in blocks if block.get("type") == "tool_result"]
        if role == "user":
            if sorted(results) != sorted(waiting):
                yield f"A3–A5: message {index} answers {results}, asked were {waiting}"
            kinds = [block.get("type") for block in blocks]
            if "tool_result" in kinds[len(results) :]:
                yield f"A6: in message {index} a result stands behind other content"
            waiting = []
            continue
        calls = [block for block in blocks if block.get("type") == "tool_use"]
        waiting = [call["id"] for call in calls]
        for call in calls:
            if call["id"] in seen or not _ID.fullmatch(call["id"]):
                yield f"A7: the id {call['id']!r} of message {index}"
            if not isinstance(call.get("input"), dict):
                yield f"A11: the input of {call['id']} is no object"
            if not _NAME.fullmatch(call.get("name") or ""):
                yield f"the name {call.get('name')!r} of a call"
            seen.add(call["id"])
    if waiting:
        yield f"A3: {waiting} have no result"


def _texts(messages: list[tuple[Any, list[Any]]], body: dict[str, Any]) -> Iterator[str]:
    for index, (_, blocks) in enumerate(messages):
        if not blocks:
            yield f"A8: message {index} is empty"
        if any(block.get("type") == "text" and not block.get("text", "").strip() for block in blocks):
            yield f"A8: message {index} has an empty text"
    if not isinstance(body.get("max_tokens"), int) or body["max_tokens"] < 1:
        yield f"A12: max_tokens is {body.get('max_tokens')!r}"
    if len(json.dumps(body)) > MOST_BYTES:
        yield "A13: the body is too large"


def _thoughts(messages: list[tuple[Any, list[Any]]], signed: Collection[str]) -> Iterator[str]:
    for index, (_, blocks) in enumerate(messages):
        kinds = [block.get("type") for block in blocks if block.get("type") != "compaction"]
        thoughts = [block for block in blocks if block.get("type") == "thinking"]
        if any(kind == "thinking" for kind in kinds[len(thoughts) :]):
            yield f"A10: in message {index} a thought stands behind other content"
        for thought in thoughts:
            if thought.get("signature") not in signed:
                yield f"A10: the signature of a thought in message {index} is not valid"


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
        yield "a compaction without its beta header"
    for _, blocks in messages:
        for block in blocks:
            if block.get("type") == "compaction" and not str(block.get("content") or "").strip():
                yield "a block of compaction says nothing"


def _listed(content: Any) -> list[Any]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block for block in content or () if isinstance(block, dict)]
