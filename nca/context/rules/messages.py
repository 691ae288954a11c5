"""Messages: which comes first, none is empty, and images are in a message of their own.

Providers refuse an empty message or invent a text, and few accept an image inside a result.
"""

from __future__ import annotations

from itertools import pairwise

import msgspec

from nca.messages import MediaPart, Message, Part, TextPart, ToolCall
from nca.wire import CUSTOM, content_text, part_to_wire

OPENAI_PARTS = ("refusal", "audio")
"""What an answer of OpenAI's may have in place of a text."""
BEGINNING = "[The conversation begins here]"
INTERRUPTED = "[interrupted]"


def with_system_first(messages: list[Message]) -> list[Message]:
    """System messages move to the beginning."""
    system = [message for message in messages if message.role == "system"]
    if messages[: len(system)] == system:
        return messages
    return system + [message for message in messages if message.role != "system"]


def with_user_first(messages: list[Message]) -> list[Message]:
    """A conversation that begins otherwise gets a user message in front."""
    start = next((i for i, message in enumerate(messages) if message.role != "system"), len(messages))
    if start < len(messages) and messages[start].role == "user":
        return messages
    return [*messages[:start], Message("user", BEGINNING, source="nca"), *messages[start:]]


def with_one_assistant(messages: list[Message]) -> list[Message]:
    """Consecutive messages of the assistant become one."""
    if not any(_runs_on(one, two) for one, two in pairwise(messages)):
        return messages
    joined: list[Message] = []
    for message in messages:
        if joined and _runs_on(joined[-1], message):
            text = "\n\n".join(part for part in (joined[-1].text, message.text) if part)
            joined[-1] = msgspec.structs.replace(message, content=text or None)
        else:
            joined.append(message)
    return joined


def _runs_on(one: Message, two: Message) -> bool:
    return one.role == two.role == "assistant" and not one.tool_calls


def in_plain_words(messages: list[Message]) -> list[Message]:
    """What only OpenAI takes in an answer, as all take it: a refusal and what was spoken as words, a call of a custom
    tool as one of a function."""
    if not any(map(_only_openai_takes, messages)):
        return messages
    return [_in_plain_words(message) if _only_openai_takes(message) else message for message in messages]


def _in_plain_words(message: Message) -> Message:
    return msgspec.structs.replace(
        message,
        content=content_text(message.content) or None,
        tool_calls=tuple(map(_of_function, message.tool_calls)),
        extra={key: value for key, value in message.extra.items() if key not in OPENAI_PARTS},
    )


def _of_function(call: ToolCall) -> ToolCall:
    return msgspec.structs.replace(call, extra={}) if call.extra.get("type") == CUSTOM else call


def _only_openai_takes(message: Message) -> bool:
    if message.role != "assistant":
        return False
    content = message.content if isinstance(message.content, tuple) else ()
    has_parts = any(part_to_wire(part).get("type") in OPENAI_PARTS for part in content)
    return has_parts or any(call.extra.get("type") == CUSTOM for call in message.tool_calls)


def with_assistant_after_tool(messages: list[Message]) -> list[Message]:
    """For providers that refuse a user message directly after tool results (Mistral, code 3230)."""
    filled: list[Message] = []
    for message in messages:
        if message.role == "user" and filled and filled[-1].role == "tool":
            filled.append(Message("assistant", INTERRUPTED, source="nca"))
        filled.append(message)
    return filled


NO_OUTPUT = "(no output)"


def without_empty(messages: list[Message]) -> list[Message]:
    """Empty messages are left out; a result must stay, so it says that it is empty; empty text parts go."""
    if all(is_full(message) for message in messages):
        return messages
    kept = []
    for message in messages:
        if is_full(message):
            kept.append(message)
        elif message.role == "tool":
            kept.append(msgspec.structs.replace(message, content=NO_OUTPUT))
        elif message.tool_calls:
            kept.append(msgspec.structs.replace(message, content=_full_parts(message)))
        elif (parts := _full_parts(message)) is not None:
            kept.append(msgspec.structs.replace(message, content=parts))
    return kept


def is_full(message: Message) -> bool:
    """Whether a message says something, or calls a tool without a word."""
    content = message.content
    if isinstance(content, str):
        return bool(content.strip()) or (bool(message.tool_calls) and not content)
    if content is None:
        return bool(message.tool_calls)
    return bool(content) and all(not isinstance(part, TextPart) or part.text.strip() for part in content)


def without_nothing(messages: list[Message]) -> list[Message]:
    """Messages without any content are left out, and a result says that it is empty; an empty text is content."""
    if not any(message.content in ((), None) for message in messages):
        return messages
    kept = []
    for message in messages:
        if message.content not in ((), None):
            kept.append(message)
        elif message.role == "tool" or message.tool_calls:
            kept.append(msgspec.structs.replace(message, content=NO_OUTPUT if message.role == "tool" else None))
    return kept


def _full_parts(message: Message) -> object:
    if not isinstance(message.content, tuple):
        return None
    return tuple(p for p in message.content if not isinstance(p, TextPart) or p.text.strip()) or None


SHOWN_BY = "[shown by {tool}]"
NOT_SHOWN = "[an image, not shown: the model takes none]"


def with_media_beside_results(messages: list[Message]) -> list[Message]:
    """Behind the last result of a step comes a user message with the media of all its results."""
    if not any(_has_media(message) for message in messages):
        return messages
    repaired: list[Message] = []
    waiting: list[TextPart | MediaPart] = []
    for message in messages:
        if message.role != "tool" and waiting:
            repaired.append(Message("user", tuple(waiting), source="nca"))
            waiting = []
        if _has_media(message) and isinstance(message.content, tuple):
            media = [part for part in message.content if isinstance(part, MediaPart)]
            waiting += [TextPart(SHOWN_BY.format(tool=message.name or "a tool")), *media]
            repaired.append(msgspec.structs.replace(message, content=message.text))
        else:
            repaired.append(message)
    if waiting:
        repaired.append(Message("user", tuple(waiting), source="nca"))
    return repaired


def without_media(message: Message) -> Message:
    """A tool result or a person's message for a model that takes no images: it says that there was one."""
    if message.role == "user" and isinstance(message.content, tuple):
        parts = tuple(TextPart(NOT_SHOWN) if _is_image(part) else part for part in message.content)
        return message if parts == message.content else msgspec.structs.replace(message, content=parts)
    if not _has_media(message):
        return message
    return msgspec.structs.replace(message, content=f"{message.text}\n{NOT_SHOWN}")


def _is_image(part: Part) -> bool:
    return isinstance(part, MediaPart) and part.kind == "image"


def _has_media(message: Message) -> bool:
    return (
        message.role == "tool"
        and isinstance(message.content, tuple)
        and any(isinstance(part, MediaPart) for part in message.content)
    )
