"""A session as one JSON file that nca can read again: log, views, summaries, compactions, usage, pins, names.

Its `messages` are an OpenAI-shaped transcript, so other programs read them too (`nca compact` does). Each has its
`_seq` and `_at`; where that shape cannot hold a message whole (an attached file, a reminder), `_message` has it as the
store does. Views name summaries by their place, from 1.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import msgspec

from nca.context.view import Summary
from nca.errors import InvalidMessages, StoreError
from nca.messages import Entry, Message
from nca.redact import Redactor
from nca.sessions import CompactionRecord, SessionInfo, UsageRow
from nca.sessions.transfer import SessionCopy, ViewCopy, check, new_copy
from nca.transcripts.reading import Transcript, read_transcript
from nca.wire import is_note, message_from_dict, message_to_dict

FORMAT = "nca-session"
VERSION = 1
_SHAPED = frozenset({"entries", "info"})

_encoder = msgspec.json.Encoder()


class _SessionFile(msgspec.Struct, kw_only=True):
    """What a file of this format has beside its messages; the names are those of `SessionCopy`."""

    session: SessionInfo
    head_view: int
    views: tuple[ViewCopy, ...]
    summaries: tuple[Summary, ...] = ()
    compactions: tuple[CompactionRecord, ...] = ()
    pins: tuple[int, ...] = ()
    usage: tuple[UsageRow, ...] = ()


def to_json(copy: SessionCopy, *, is_ascii: bool = False) -> bytes:
    """The file. `is_ascii`: for a terminal, where no stored text may become a control character."""
    parts = {name: getattr(copy, name) for name in copy.__struct_fields__ if name not in _SHAPED}
    whole = {
        "format": FORMAT,
        "version": VERSION,
        "session": copy.info,
        "messages": [_row(entry) for entry in copy.entries],
        **parts,
    }
    data = msgspec.json.format(_encoder.encode(whole), indent=1)
    if not is_ascii:
        return data + b"\n"
    escaped = "".join(char if " " <= char <= "~" or char == "\n" else _escape(char) for char in data.decode())
    return escaped.encode() + b"\n"


def read_session(raw: bytes, place: str, *, directory: str, name: str = "") -> SessionCopy:
    """A session from nca's own file or from any OpenAI-shaped transcript; `place` names the file in errors.

    `directory`: where a conversation that names none belongs. `name` goes before the file's own.
    Raises InvalidMessages, which names the file, the line or message, and what is valid.
    """
    transcript = read_transcript(raw, place)
    if transcript.whole.get("format") == FORMAT:
        copy = _read_own(transcript, place)
        info = msgspec.structs.replace(copy.info, name=name or copy.info.name)
        return msgspec.structs.replace(copy, info=info)
    now = time.time()
    messages = [
        _read_row(transcript, index, place) for index, row in enumerate(transcript.messages) if not is_note(row)
    ]
    if not messages:
        raise InvalidMessages(f"{place}: holds no messages; expected at least one.")
    entries = [Entry(seq, message, now) for seq, message in enumerate(messages, 1)]
    return new_copy(entries, directory=directory, name=name)


def redacted(copy: SessionCopy, redactor: Redactor) -> SessionCopy:
    """The session with the keys taken out of every text."""
    return msgspec.convert(redactor.value(msgspec.to_builtins(copy)), SessionCopy)


def _row(entry: Entry) -> dict[str, Any]:
    row = message_to_dict(entry.message, annotate=True)
    try:
        is_whole = _encoder.encode(message_from_dict(row)) == _encoder.encode(entry.message)
    except InvalidMessages:
        is_whole = False
    row |= {"_seq": entry.seq, "_at": entry.at}
    return row if is_whole else {**row, "_message": entry.message}


def _read_own(transcript: Transcript, place: str) -> SessionCopy:
    version = transcript.whole.get("version")
    if not isinstance(version, int) or version < 1:
        raise InvalidMessages(f"{place}: version is {version!r}; valid: {VERSION}.")
    if version > VERSION:
        raise InvalidMessages(
            f"{place}: was written by a newer nca (version {version} of the format; this one knows {VERSION}).",
            advice="Upgrade nca.",
        )
    try:
        parts = msgspec.convert(transcript.whole, _SessionFile)
        entries = tuple(_own_entry(transcript, index, place) for index in range(len(transcript.messages)))
        copy = SessionCopy(
            info=msgspec.structs.replace(parts.session, messages=len(entries)),
            entries=entries,
            **{name: getattr(parts, name) for name in SessionCopy.__struct_fields__ if name not in _SHAPED},
        )
        check(copy)
    except msgspec.ValidationError as error:
        raise InvalidMessages(f"{place}: {error}.", advice="Only what nca exported can be read back whole.") from error
    except StoreError as error:
        raise InvalidMessages(f"{place}: {error.message}.", advice="The file was changed after its export.") from error
    return copy


def _own_entry(transcript: Transcript, index: int, place: str) -> Entry:
    row = transcript.messages[index]
    seq, at = (row.get("_seq", index + 1), row.get("_at", 0.0)) if isinstance(row, Mapping) else (index + 1, 0.0)
    if seq != index + 1 or not isinstance(at, int | float):
        raise InvalidMessages(f"{place}: message {index + 1}: _seq or _at is wrong; valid: its number, and seconds.")
    if isinstance(row, Mapping) and "_message" in row:
        try:
            return Entry(seq, msgspec.convert(row["_message"], Message), float(at))
        except msgspec.ValidationError as error:
            raise InvalidMessages(f"{place}: message {index + 1}: _message: {error}.") from error
    return Entry(seq, _read_row(transcript, index, place), float(at))


def _read_row(transcript: Transcript, index: int, place: str) -> Message:
    try:
        return message_from_dict(transcript.messages[index], index)
    except InvalidMessages as error:
        line = f", line {transcript.lines[index]}" if transcript.lines else ""
        raise InvalidMessages(f"{place}{line}: {error.message}", advice=error.advice) from error


def _escape(char: str) -> str:
    code = ord(char)
    if code <= 0xFFFF:
        return f"\\u{code:04x}"
    return f"\\u{0xD800 + ((code - 0x10000) >> 10):04x}\\u{0xDC00 + ((code - 0x10000) & 0x3FF):04x}"
