"""Export a session to JSON and import it again: log, views, summaries, compactions, usage, pins, names.

Transcripts of other programs are parsed here: a JSON array, JSON lines, or an object with `messages` (or `input`).

`messages` is an OpenAI-shaped transcript, which other programs can read too (`nca compact` does). Each message has its
`_seq` and `_at`. If the OpenAI shape cannot hold all of a message (an attached file, a reminder), `_message` holds it
as the store does. Views refer to summaries by their position, from 1.
"""

from __future__ import annotations

import json
import os
import re
import time
from dataclasses import dataclass, field
from typing import Any

import msgspec

from nca.errors import InvalidMessages, StoreError
from nca.messages import Entry, Message, collector_paused, with_tool_names
from nca.models.providers import known_secrets
from nca.redact import Redactor
from nca.sessions.encoding import upgraded
from nca.sessions.transfer import SessionCopy, check, new_copy
from nca.shapes.detect import read_shape, shape_of
from nca.shapes.shaped import as_chat_message
from nca.transcripts.formats.row import decode
from nca.wire import is_note, message_from_dict, message_to_dict

VALID = "valid: a JSON array of messages, JSON lines, or an object with messages"


@dataclass(frozen=True, slots=True)
class Transcript:
    """The parsed rows. The messages themselves are not validated yet."""

    messages: list[Any]
    tools: list[Any] = field(default_factory=list)
    lines: list[int] = field(default_factory=list, compare=False)
    """The line number of each row in a file of JSON lines; empty for a single JSON value."""
    whole: dict[str, Any] = field(default_factory=dict, compare=False)
    """The object that rows the messages; empty if there was none."""
    model: str = field(default="", compare=False)
    """The model that a session names."""


@collector_paused()
def read_transcript(raw: bytes, place: str, *, valid: str = VALID) -> Transcript:
    """Raises InvalidMessages, which names the place and the line; `valid` ends it if JSON holds no messages."""
    text = raw.removeprefix(b"\xef\xbb\xbf").strip()
    if not text:
        raise InvalidMessages(f"{place}: is empty; {VALID}.")
    try:
        whole = decode(text)
    except RecursionError as error:
        raise InvalidMessages(f"{place}: is nested too deeply; {VALID}.") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        above = raw[: raw.index(text[:1])].count(b"\n")
        rows, numbers = _lines(text, place, error, above + 1)
        return Transcript(rows, lines=numbers)
    if isinstance(whole, list):
        return Transcript(whole)
    if isinstance(whole, dict):
        given = whole.get("messages", whole.get("input"))
        tools = whole.get("tools")
        if isinstance(given, str) and "messages" not in whole:
            given = [{"role": "user", "content": given}]
        if isinstance(given, list):
            return Transcript(given, tools if isinstance(tools, list) else [], whole=whole)
    if isinstance(whole, dict) and ("role" in whole or "type" in whole):
        return Transcript([whole])
    raise InvalidMessages(f"{place}: holds no messages; {valid}.")


def _lines(text: bytes, place: str, first_error: Exception, first_line: int) -> tuple[list[Any], list[int]]:
    """The rows of JSON lines, and the line number of each."""
    lines = text.splitlines()
    if len(lines) < 2:
        raise InvalidMessages(f"{place}: is not JSON ({first_error}); {VALID}.") from first_error
    rows: list[Any] = []
    numbers: list[int] = []
    for number, line in enumerate(lines, first_line):
        if not line.strip():
            continue
        try:
            row = decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise InvalidMessages(f"{place}, line {number}: is not JSON ({error}); {VALID}.") from error
        if isinstance(row, dict) and isinstance(row.get("messages"), list):
            raise InvalidMessages(f"{place}, line {number}: is a whole conversation; valid: one conversation per file.")
        rows.append(row)
        numbers.append(number)
    return rows, numbers


FORMAT = "nca-session"
VERSION = 1
_NOT_ASCII = re.compile("[^ -~\n]+")

_encoder = msgspec.json.Encoder()


def to_json(copy: SessionCopy, *, is_ascii: bool = False) -> bytes:
    """The file's bytes. `is_ascii` is for a terminal: it keeps stored text from becoming control characters."""
    parts = dict(zip(copy.__struct_encode_fields__, msgspec.structs.astuple(copy), strict=True))
    whole = {"format": FORMAT, "version": VERSION, **parts, "messages": [_row(entry) for entry in copy.entries]}
    return _ended(msgspec.json.format(_encoder.encode(whole), indent=1), is_ascii=is_ascii)


def to_json_lines(copy: SessionCopy, *, is_ascii: bool = False) -> bytes:
    """The conversation alone, one OpenAI-shaped object a line with its `_seq` and `_at`."""
    talk = copy.conversation
    rows = ({**message_to_dict(entry.message, annotate=True), "_seq": entry.seq, "_at": entry.at} for entry in talk)
    return b"".join(_ended(_encoder.encode(row), is_ascii=is_ascii) for row in rows)


def _ended(data: bytes, *, is_ascii: bool) -> bytes:
    """With a line end. In a string of JSON an escape stands for any character."""
    if is_ascii:
        data = _NOT_ASCII.sub(lambda found: json.dumps(found[0])[1:-1], data.decode()).encode()
    return data + b"\n"


def read_session(raw: bytes, place: str, *, directory: str, name: str = "") -> SessionCopy:
    """The session in a file's content; see `session_of`."""
    return session_of(read_transcript(raw, place), place, directory=directory, name=name)


@collector_paused()
def session_of(transcript: Transcript, place: str, *, directory: str, name: str = "") -> SessionCopy:
    """A session from nca's own JSON, or from a transcript in any shape of `nca.shapes`.

    place      names the file in errors
    directory  the session's directory if the file names none
    name       replaces the file's own name unless it is empty

    Raises InvalidMessages, which names the file, the line or message, and what is valid.
    """
    if transcript.whole.get("format") == FORMAT:
        copy = _read_own(transcript, place)
        return copy.with_info(name=name) if name else copy
    now = time.time()
    given = transcript.whole or transcript.messages
    if shape_of(given) == "openai":
        rows = enumerate(transcript.messages)
        messages = list(with_tool_names(_read_row(transcript, index, place) for index, row in rows if not is_note(row)))
    else:
        messages = _from_another_shape(given, place)
    if not messages:
        raise InvalidMessages(f"{place}: holds no messages; valid: at least one.")
    entries = [Entry(seq, message, now) for seq, message in enumerate(messages, 1)]
    return new_copy(entries, directory=directory, name=name)


def redacted(copy: SessionCopy, redactor: Redactor | None = None) -> SessionCopy:
    """The session with API keys redacted from every text. None: the keys of this environment count as well."""
    redactor = redactor or Redactor(known_secrets(os.environ))
    return msgspec.convert(redactor.value(msgspec.to_builtins(copy)), SessionCopy)


def _row(entry: Entry) -> dict[str, Any]:
    row = message_to_dict(entry.message, annotate=True)
    row.pop("_parts", None)  # an older nca knows no parts in a row, but `_message`
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
            f"{place}: was written by a newer nca (format version {version}; this nca reads up to {VERSION}).",
            advice="Upgrade nca.",
        )
    try:
        entries = tuple(_own_entry(transcript, index, place) for index in range(len(transcript.messages)))
        copy = msgspec.convert({**transcript.whole, "messages": entries}, SessionCopy).with_info(messages=len(entries))
        check(copy)
    except (msgspec.ValidationError, UnicodeEncodeError) as error:
        # A name of a field may hold half of a surrogate pair, which msgspec cannot look up.
        raise InvalidMessages(f"{place}: {error}.", advice="The file is damaged or was not exported by nca.") from error
    except StoreError as error:
        raise InvalidMessages(f"{place}: {error.message}.", advice="The file was changed after the export.") from error
    return copy


def _own_entry(transcript: Transcript, index: int, place: str) -> Entry:
    row = transcript.messages[index]
    # Without these two, nearly all rows are so usual that they are read fast.
    seq, at = (row.pop("_seq", index + 1), row.pop("_at", 0.0)) if isinstance(row, dict) else (index + 1, 0.0)
    if seq != index + 1 or not isinstance(at, int | float):
        raise InvalidMessages(f"{place}: message {index + 1}: _seq or _at is wrong; valid: its number, and seconds.")
    if isinstance(row, dict) and "_message" in row:
        try:
            stored = upgraded(msgspec.json.encode(row["_message"]).decode())
            return Entry(seq, msgspec.json.decode(stored, type=Message), float(at))
        except (msgspec.ValidationError, UnicodeEncodeError) as error:
            raise InvalidMessages(f"{place}: message {index + 1}: _message: {error}.") from error
    return Entry(seq, _read_row(transcript, index, place), float(at))


def _from_another_shape(given: Any, place: str) -> list[Message]:
    """The messages so that they can be sent to any provider."""
    try:
        return [as_chat_message(message) for message in read_shape(given).messages]
    except InvalidMessages as error:
        raise InvalidMessages(f"{place}: {error.message}", advice=error.advice) from error


def _read_row(transcript: Transcript, index: int, place: str) -> Message:
    try:
        return message_from_dict(transcript.messages[index], index)
    except InvalidMessages as error:
        line = f", line {transcript.lines[index]}" if transcript.lines else ""
        raise InvalidMessages(f"{place}{line}: {error.message}", advice=error.advice) from error
