"""Read a conversation from any file: nca's own JSON, a transcript in any shape, or another agent's session."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from nca.errors import UsageError
from nca.sessions.transfer import SessionCopy
from nca.transcripts.formats.assemble import Assembled, assemble
from nca.transcripts.formats.records import Format, StoredSession, Unreadable
from nca.transcripts.formats.registry import recognise
from nca.transcripts.formats.source import Source
from nca.transcripts.reading import read_transcript
from nca.transcripts.session_file import read_session

_LISTED = 3
"""Parts that could not be read, named one by one."""
_LISTED_SESSIONS = 20


class ConversationFile(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation that was read from a file.

    tools       tool definitions that came along
    agent       the title of the agent that wrote it; "" for nca's own JSON and plain transcripts
    session_id  the agent's id of the session
    notes       lines for the person: what could not be read
    """

    copy: SessionCopy
    tools: list[Any] = []
    agent: str = ""
    session_id: str = ""
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
        if key:
            raise UsageError(f"{source.place}: holds one conversation and no session {key!r}.")
        raw = source.read()
        copy = read_session(raw, source.place, directory=directory, name=name)
        return ConversationFile(copy=copy, tools=read_transcript(raw, source.place).tools)
    chosen = chosen_key(found, source, key)
    return of_agent(found, assemble(found.read(source, chosen), source.place, directory=directory, name=name))


def of_agent(found: Format, assembled: Assembled) -> ConversationFile:
    return ConversationFile(
        copy=assembled.copy, agent=found.title, session_id=assembled.about.session, notes=notes_of(assembled)
    )


def chosen_key(found: Format, source: Source, key: str) -> str:
    """The key of the session to read. Raises UsageError, which lists the sessions, if several could be meant."""
    sessions = tuple(found.sessions(source))
    keys = [one.key for one in sessions]
    if key in keys:
        return key
    close = [one for one in keys if key and one.startswith(key)]
    if len(close) == 1:
        return close[0]
    if not key and len(keys) == 1:
        return keys[0]
    if not any(keys):
        raise UsageError(f"{source.place}: holds one session and no {key!r}." if keys else _empty(found, source))
    wrong = f"no session {key!r}" if key and not close else f"{len(close or keys)} sessions"
    raise UsageError(
        f"{source.place}: holds {wrong}; valid: {_listed(sessions, close)}.",
        advice=f"Name one: {source.place}#KEY.",
    )


def _empty(found: Format, source: Source) -> str:
    return f"{source.place}: holds no session of {found.title}."


def _listed(sessions: Sequence[StoredSession], close: Sequence[str]) -> str:
    shown = [one for one in sessions if one.key in close] or list(sessions)
    names = [f"{one.key} ({one.title[:60]})" if one.title else one.key for one in shown[:_LISTED_SESSIONS]]
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
