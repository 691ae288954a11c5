"""Import a session from another agent's store: once, and again when it has grown."""

from __future__ import annotations

from pathlib import Path

import msgspec

from nca.errors import InvalidMessages
from nca.sessions.origin import goes_on
from nca.sessions.session import SessionInfo
from nca.sessions.store import Store
from nca.transcripts.conversation_file import notes_of, with_origin
from nca.transcripts.formats.assemble import assemble
from nca.transcripts.formats.records import StoredSession
from nca.transcripts.formats.registry import format_named
from nca.transcripts.formats.source import Source


class Imported(msgspec.Struct, frozen=True):
    """A session of another agent in nca's store, and lines for the person."""

    info: SessionInfo
    notes: tuple[str, ...] = ()


Place = tuple[str, str, int, float]
"""File, key, size and last use: what tells whether a session is known and has not changed."""


def unchanged(store: Store) -> dict[Place, SessionInfo]:
    """The sessions that were imported from other agents, by what they were imported from."""
    origins = ((info, info.origin) for info in reversed(store.imported()) if info.origin)
    return {(origin.path, origin.key, origin.size_bytes, origin.at): info for info, origin in origins}


def place_of(stored: StoredSession) -> Place:
    return str(stored.path.absolute()), stored.key, stored.size_bytes, stored.at


def import_stored(store: Store, stored: StoredSession) -> Imported:
    """The session in nca's store. It is read where it is new or has changed.

    If it has only grown, and nobody went on with it in nca, the new messages are appended; else it becomes one more
    session. Raises InvalidMessages, SessionLocked, StoreError.
    """
    place = place_of(stored)
    if (same := unchanged(store).get(place)) is not None:
        return Imported(same)
    found = format_named(stored.agent)
    if found is None:
        raise InvalidMessages(f"{stored.path}: is a session of {stored.agent}, which this nca cannot read.")
    source = Source.of_file(Path(stored.path))
    assembled = assemble(found.read(source, stored.key), source.place, directory=stored.directory)
    copy = with_origin(assembled.copy, stored, assembled.about.session)
    notes = notes_of(assembled)
    earlier = [one for one in store.imported() if one.origin and (one.origin.path, one.origin.key) == place[:2]]
    for one in earlier:
        if one.origin and not store.has_gone_on(one.id) and goes_on(store.copy_of(one.id).entries, copy.entries):
            grown = len(copy.entries) - one.messages
            said = f"{grown:,} messages were added since it was imported." if grown else ""
            return Imported(store.extend(one.id, copy), (*([said] if said else []), *notes))
    info = store.add(copy)
    if earlier:
        why = f"It has changed in {found.title} since it was imported as {earlier[0].id}, which has gone on by itself."
        notes = (f"{why} This is a new import.", *notes)
    return Imported(info, notes)
