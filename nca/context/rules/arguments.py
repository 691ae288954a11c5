"""Arguments of past tool calls must be valid JSON objects: templates parse them, and a broken one fails."""

from __future__ import annotations

from functools import lru_cache

import msgspec

from nca.messages import Message, ToolCall

MAX_NAME_CHARS = 64


def with_valid_arguments(messages: list[Message]) -> list[Message]:
    """Arguments that are no JSON object become `{}`; a name that providers refuse becomes one that they accept."""
    if all(is_valid(call) for message in messages for call in message.tool_calls):
        return messages
    return [
        msgspec.structs.replace(message, tool_calls=tuple(_repaired(call) for call in message.tool_calls))
        if message.tool_calls
        else message
        for message in messages
    ]


def is_valid(call: ToolCall) -> bool:
    """Whether providers take the call's name and arguments."""
    return _is_name(call.name) and _is_object(call.arguments)


@lru_cache(maxsize=4_096)
def _is_object(arguments: str) -> bool:
    try:
        return isinstance(msgspec.json.decode(arguments), dict)
    except (msgspec.DecodeError, RecursionError):
        return False


@lru_cache(maxsize=1_024)
def _is_name(name: str) -> bool:
    return 0 < len(name) <= MAX_NAME_CHARS and name.isascii() and name.replace("_", "").replace("-", "").isalnum()


def _repaired(call: ToolCall) -> ToolCall:
    name = call.name
    if not _is_name(name):
        name = (
            "".join(c if c.isascii() and (c.isalnum() or c in "_-") else "_" for c in name)[:MAX_NAME_CHARS] or "tool"
        )
        name = name if _is_name(name) else "tool"
    return msgspec.structs.replace(call, name=name, arguments=call.arguments if _is_object(call.arguments) else "{}")
