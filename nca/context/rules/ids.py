"""Ids of tool calls must be unique in a request and have a form that every provider accepts."""

from __future__ import annotations

import re
from hashlib import blake2b

import msgspec

from nca.messages import Message

_SAFE = re.compile(r"[A-Za-z0-9_-]{1,40}")
_MISTRAL = re.compile(r"[A-Za-z0-9]{9}")


def with_unique_ids(messages: list[Message], *, exactly_nine: bool = False) -> list[Message]:
    """Ids that occur twice or have another form are renamed. Every call must stand directly before its results.

    exactly_nine  Mistral's form
    """
    shape, length = (_MISTRAL, 9) if exactly_nine else (_SAFE, 24)
    ids = [call.id for message in messages for call in message.tool_calls]
    if len(set(ids)) == len(ids) and all(map(shape.fullmatch, ids)):
        return messages
    used: set[str] = set()
    repaired: list[Message] = []
    waiting: list[tuple[str, str]] = []
    for message in messages:
        if message.tool_calls:
            renamed = [(call.id, _renamed(call.id, used, shape, length)) for call in message.tool_calls]
            waiting = list(renamed)
            calls = tuple(
                msgspec.structs.replace(call, id=new)
                for call, (_, new) in zip(message.tool_calls, renamed, strict=True)
            )
            repaired.append(msgspec.structs.replace(message, tool_calls=calls))
        elif message.role == "tool":
            match = next((pair for pair in waiting if pair[0] == message.tool_call_id), None)
            if match is None:
                repaired.append(message)
                continue
            waiting.remove(match)
            repaired.append(msgspec.structs.replace(message, tool_call_id=match[1]))
        else:
            repaired.append(message)
    return repaired


def _renamed(old: str, used: set[str], shape: re.Pattern[str], length: int) -> str:
    """The same id where it fits and is free; else one derived from it: the same log gives the same bytes."""
    new, again = old, 0
    while not shape.fullmatch(new) or new in used:
        new = blake2b(f"{old}/{again}".encode("utf-8", "replace"), digest_size=16).hexdigest()[:length]
        again += 1
    used.add(new)
    return new
