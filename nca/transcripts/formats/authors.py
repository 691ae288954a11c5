"""Who said what in a message that another agent stored as the user's.

Results and what a program adds stand in the user's role too. A reader gives each part of such a message its source;
where a format does not tell, a part has none. A message without a word of the person is the program's: no turn begins
with it.
"""

from __future__ import annotations

from typing import TypeGuard

import msgspec

from nca.messages import AttachmentPart, Message, Part, Source, TextPart

_OF_A_PROGRAM = ("nca", "tool")
_GAP = "\n\n"
"""Between blocks of text. Parts with sources of their own follow each other without a space."""


def text_by(source: Source, text: str) -> TextPart:
    return TextPart(text, source=source)


def attached(name: str, text: str) -> AttachmentPart:
    """The content of a file, a page or a folder that the person mentioned."""
    return AttachmentPart(name, text, len(text.encode("utf-8", "replace")))


def with_authors(message: Message) -> Message:
    """The message as nca stores it: one source for all of it where there is one, else a source for each part.

    A source of the message itself stands for the parts that have none.
    """
    content = message.content
    if message.role != "user" or not isinstance(content, tuple) or not _sources(content):
        return message
    content = tuple(_with_own(part, message.source or "foreign") for part in content)
    found = _sources(content)
    if len(found) == 1 and all(isinstance(part, TextPart) for part in content):
        (only,) = found
        if only != "tool":
            return msgspec.structs.replace(message, content=_GAP.join(_texts(content)), source=only)
    is_of_program = found <= {*_OF_A_PROGRAM} and not any(isinstance(part, AttachmentPart) for part in content)
    return msgspec.structs.replace(message, content=_spaced(content), source="nca" if is_of_program else "")


def typed_after(lead: str, typed: str, rest: str = "") -> tuple[Part, ...]:
    """The content of a result with what the person typed about the call between what the program wrote."""
    parts = (TextPart(lead.strip()), TextPart(typed.strip(), source="typed"), TextPart(rest.strip()))
    return tuple(part for part in parts if part.text)


def _with_own(part: Part, source: Source) -> Part:
    return text_by(source, part.text) if isinstance(part, TextPart) and not part.source else part


def _sources(content: tuple[Part, ...]) -> set[str]:
    return {part.source for part in content if isinstance(part, TextPart) and part.source}


def _texts(content: tuple[Part, ...]) -> list[str]:
    return [part.text for part in content if isinstance(part, TextPart)]


def _spaced(content: tuple[Part, ...]) -> tuple[Part, ...]:
    """The parts with a gap between two texts that nca would put together without one."""
    found: list[Part] = []
    for part in content:
        before = found[-1] if found else None
        if _has_source(part) and _has_source(before):
            found[-1] = msgspec.structs.replace(before, text=before.text + _GAP)
        found.append(part)
    return tuple(found)


def _has_source(part: Part | None) -> TypeGuard[TextPart]:
    return isinstance(part, TextPart) and part.source not in ("", "nca")
