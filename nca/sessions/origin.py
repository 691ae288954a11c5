"""Where an imported session comes from, so that it is imported once and again when it has grown."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from nca.errors import StoreDamaged
from nca.messages import AttachmentPart, Entry, Message, TextPart
from nca.sessions.encoding import decode
from nca.wire import content_text


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """A session of another agent, as far as it was imported.

    agent       the agent's name
    session_id  the agent's own id of the session
    path, key   the file, and which of its sessions
    size_bytes  the size of the file when it was read; `at`: when it was last used then, seconds since the epoch
    messages    how many messages of the log come from it: the first ones; `views`: how many views
    """

    agent: str
    path: str
    key: str = ""
    session_id: str = ""
    size_bytes: int = 0
    at: float = 0.0
    messages: int = 0
    views: int = 1


_decoder = msgspec.json.Decoder(Origin)


def goes_on(imported: Sequence[Entry], entries: Sequence[Entry]) -> bool:
    """Whether these messages begin with those that were imported.

    What they say counts, and not how this nca reads it: an older one knew less of who said a part.
    """
    pairs = zip(imported, entries, strict=False)
    return len(entries) >= len(imported) and all(_says_the_same(one.message, two.message) for one, two in pairs)


def _says_the_same(old: Message, new: Message) -> bool:
    if (old.role, old.tool_call_id, old.tool_calls) != (new.role, new.tool_call_id, new.tool_calls):
        return False
    text = _squeezed(content_text(old.content))
    if not new.attachments or old.attachments:
        return text == _squeezed(content_text(new.content))
    # What is attached now stood in the text, in other tags.
    place = 0
    for part in new.content or ():
        if isinstance(part, TextPart | AttachmentPart):
            said = _squeezed(part.text)
            place = text.find(said, place) + len(said)
            if place < len(said):
                return False
    return True


def _squeezed(text: str) -> str:
    return "".join(text.split())


def as_origin(body: str) -> Origin | None:
    """None for a session of nca's own, and where the row is damaged."""
    try:
        return decode(body, _decoder, "where a session comes from") if body else None
    except StoreDamaged:
        return None
