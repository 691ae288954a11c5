"""Images in tool results are sent in a message of their own: few providers accept them inside a result."""

from __future__ import annotations

import msgspec

from nca.messages import MediaPart, Message, Part, TextPart

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
