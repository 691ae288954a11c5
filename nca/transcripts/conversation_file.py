"""Read a conversation from any file: nca's own JSON, a transcript in any shape, or another agent's session."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from nca.errors import InvalidMessages, UsageError
from nca.humanize import one_line
from nca.models.catalog import cost_of, describe
from nca.sessions.access import Origin, goes_on
from nca.sessions.foreign_rows import MAGIC, foreign_tables
from nca.sessions.session import SessionInfo
from nca.sessions.store import Store
from nca.sessions.transfer import SessionCopy
from nca.shapes.detect import read_shape
from nca.shapes.shaped import ShapedMessages
from nca.transcripts.formats.assemble import Assembled, assemble
from nca.transcripts.formats.records import About, Format, StoredSession, Unreadable
from nca.transcripts.formats.registry import format_named, formats, recognise, refuse_neighbour
from nca.transcripts.formats.source import Source
from nca.transcripts.session_file import FORMAT, Transcript, read_transcript, session_of
from nca.wire import message_to_dict

_LISTED = 3
"""Parts that could not be read, named one by one."""
_LISTED_SESSIONS = 20
_OF_A_MESSAGE = {"role", "type", "content"}
"""A row without any of these is not a message of any shape."""


class ConversationFile(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation that was read from a file.

    tools       tool definitions that came along
    request     the request object that held the messages; None for a list and for a stored session
    agent       the title of the agent that wrote it; "" for nca's own JSON and plain transcripts
    notes       lines for the person: what could not be read
    """

    copy: SessionCopy
    tools: list[Any] = []
    request: ShapedMessages | None = None
    agent: str = ""
    notes: tuple[str, ...] = ()


def read_conversation(source: Source, *, directory: str = "", name: str = "", key: str = "") -> ConversationFile:
    """The conversation in a file.

    directory  the session's directory if the file names none
    name       replaces the file's own name unless it is empty
    key        which of the file's sessions, if it holds several

    Raises InvalidMessages, which names the file, the place and what is valid; UsageError if the file holds several
    sessions and `key` names none of them.
    """
    found = recognise(source)
    if found is None:
        transcript = _plain_transcript(source)
        if key:
            raise UsageError(f"{source.place}: holds one conversation and no session {key!r}.")
        copy = session_of(transcript, source.place, directory=directory, name=name)
        is_request = transcript.whole and transcript.whole.get("format") != FORMAT
        request = read_shape(transcript.whole) if is_request else None
        return ConversationFile(copy=copy, tools=transcript.tools, request=request)
    return _read(found, source, chosen_session(found, source, key), directory=directory, name=name)


def _read(found: Format, source: Source, place: StoredSession, *, directory: str, name: str = "") -> ConversationFile:
    """A session of another agent. `place` was looked at before."""
    assembled = assemble(found.read(source, place.key), source.place, directory=directory, name=name)
    copy = _priced(assembled.copy)
    copy = with_origin(copy, place, assembled.about.session) if source.path else copy
    return ConversationFile(copy=copy, agent=found.title, notes=notes_of(assembled))


def _priced(copy: SessionCopy) -> SessionCopy:
    """The copy with the cost of each request, as nca's own has it: what the agent recorded, else by prices."""
    facts = {row.model: describe(row.model) for row in copy.usage if row.usage.cost is None}
    priced = (
        replace(row, usage=replace(row.usage, cost=cost_of(facts[row.model], row.usage)))
        if row.usage.cost is None
        else row
        for row in copy.usage
    )
    return replace(copy, usage=tuple(priced)) if facts else copy


def read_plain(source: Source, *, key: str = "") -> tuple[Transcript, tuple[str, ...]]:
    """The rows of a file as they are, or those of another agent's session as chat messages; and notes, as above.

    The rows of a session are its whole conversation, without what is aside, and not what its own compactions left.
    Raises as `read_conversation` does.
    """
    if recognise(source) is None and not key:
        transcript = _plain_transcript(source)
        if transcript.whole.get("format") != FORMAT:
            return transcript, ()
    found = read_conversation(source, key=key)
    return transcript_of(found.copy, found.tools), found.notes


def transcript_of(copy: SessionCopy, tools: Sequence[Any] = ()) -> Transcript:
    """The whole conversation as chat messages, without what is aside."""
    rows = [message_to_dict(entry.message, annotate=True) for entry in copy.conversation]
    return Transcript(rows, list(tools), model=copy.info.model)


def _plain_transcript(source: Source) -> Transcript:
    """The rows of a file that no reader knows. Raises InvalidMessages if they are not messages."""
    titles = sorted((one.title for one in formats()), key=str.casefold)
    valid = f"valid: messages as JSON, or a session of {', '.join(titles[:-1])} or {titles[-1]}"
    if kind := _foreign_kind(source):
        raise InvalidMessages(f"{source.place}: {kind} a session of any program that nca reads; {valid}.")
    transcript = read_transcript(source.read(), source.place, valid=valid)
    rows = transcript.messages
    if rows and not any(isinstance(row, dict) and row.keys() & _OF_A_MESSAGE for row in rows):
        raise InvalidMessages(f"{source.place}: holds no messages; {valid}.")
    return transcript


def _foreign_kind(source: Source) -> str:
    """The kind of a file that cannot hold messages, for a refusal; "" if it may.

    Raises InvalidMessages if it is damaged, or if another file is meant.
    """
    if source.is_folder:
        return "is a folder, not"
    refuse_neighbour(source)
    if source.head.startswith(MAGIC):
        if source.path is None:
            raise InvalidMessages(f"{source.place}: is a SQLite database; valid: the path of its file.")
        foreign_tables(source.path)
        return "is a SQLite database, not"
    # An empty file has no first character; b"" is in any bytes.
    begin = source.head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
    return "" if begin in b"[{" else "is neither a JSON array or object nor"


def with_origin(copy: SessionCopy, place: StoredSession, session_id: str) -> SessionCopy:
    """The copy with where it comes from. `place` was looked at before the copy was read."""
    return copy.with_info(
        origin=Origin(
            agent=place.agent,
            session_id=session_id,
            path=str(place.path.absolute()),
            key=place.key,
            size_bytes=place.size_bytes,
            at=place.at,
            messages=len(copy.entries),
            views=len(copy.views),
            name=copy.info.name,
        )
    )


def chosen_session(found: Format, source: Source, key: str) -> StoredSession:
    """The session to read. Raises UsageError, which lists the sessions, if several could be meant."""
    sessions = tuple(found.sessions(source))
    if not sessions and not key:
        # Its list says nothing of it (a subagent's session, a damaged beginning); it may be read nevertheless.
        return found.stored(source, About())
    close = [one for one in sessions if one.key == key] or [one for one in sessions if key and one.key.startswith(key)]
    if len(close) == 1 or (not key and len(sessions) == 1):
        return (close or sessions)[0]
    if not any(one.key for one in sessions):
        raise UsageError(f"{source.place}: holds one session and no {key!r}.")
    wrong = f"no session {key!r}" if key and not close else f"{len(close or sessions)} sessions"
    raise UsageError(
        f"{source.place}: holds {wrong}; valid: {_listed(close or sessions)}.",
        advice=f"Name one: {source.place}#KEY.",
    )


def _listed(shown: Sequence[StoredSession]) -> str:
    names = [f"{one.key} ({one_line(one.title, 60)})" if one.title else one.key for one in shown[:_LISTED_SESSIONS]]
    more = [f"… {len(shown) - _LISTED_SESSIONS} more"] if len(shown) > _LISTED_SESSIONS else []
    return ", ".join([*names, *more])


def notes_of(assembled: Assembled) -> tuple[str, ...]:
    notes = [_unreadable_note(assembled.unreadable)] if assembled.unreadable else []
    if count := assembled.unreadable_summaries:
        summaries = "The summary of 1 compaction is" if count == 1 else f"The summaries of {count} compactions are"
        notes.append(f"{summaries} encrypted or missing. The messages that it replaced are all here.")
    return tuple(notes)


def _unreadable_note(parts: Sequence[Unreadable]) -> str:
    shown = "; ".join(f"{part.place} {part.reason}" for part in parts[:_LISTED])
    more = f"; and {len(parts) - _LISTED} more" if len(parts) > _LISTED else ""
    return f"{len(parts)} {'part' if len(parts) == 1 else 'parts'} could not be read: {shown}{more}."


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
    read = _read(found, Source.of_file(stored.path), stored, directory=stored.directory)
    copy, notes = read.copy, read.notes
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
