"""Ids of tool calls must be unique in a request and have a form that every provider accepts."""

from __future__ import annotations

import re
from hashlib import blake2b

import msgspec

from nca.messages import Message

SAFE = re.compile(r"[A-Za-z0-9_-]+")
"""What every provider takes in ids and names of tools."""
LONGEST_ID, NEW_CHARS, MISTRAL_CHARS = 40, 24, 9


def with_unique_ids(messages: list[Message], *, exactly_nine: bool = False) -> list[Message]:
    """Ids that occur twice or have another form are renamed. Every call must stand directly before its results.

    exactly_nine  Mistral's form
    """
    ids = [call.id for message in messages for call in message.tool_calls]
    if len(set(ids)) == len(ids) and all(_is_taken(one, exactly_nine=exactly_nine) for one in ids):
        return messages
    used: set[str] = set()
    repaired: list[Message] = []
    waiting: list[tuple[str, str]] = []
    for message in messages:
        if message.tool_calls:
            renamed = [(call.id, _renamed(call.id, used, exactly_nine=exactly_nine)) for call in message.tool_calls]
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


def _is_taken(one: str, *, exactly_nine: bool) -> bool:
    """Whether a provider takes an id as it is."""
    if exactly_nine:
        return len(one) == MISTRAL_CHARS and one.isascii() and one.isalnum()
    return len(one) <= LONGEST_ID and SAFE.fullmatch(one) is not None


def _renamed(old: str, used: set[str], *, exactly_nine: bool) -> str:
    """The same id where it fits and is free; else one derived from it: the same log gives the same bytes."""
    new, again = old, 0
    chars = MISTRAL_CHARS if exactly_nine else NEW_CHARS
    while not _is_taken(new, exactly_nine=exactly_nine) or new in used:
        new = blake2b(f"{old}/{again}".encode("utf-8", "replace"), digest_size=16).hexdigest()[:chars]
        again += 1
    used.add(new)
    return new
