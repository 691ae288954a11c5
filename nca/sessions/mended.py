"""Read the rest of a damaged message: the text around the damage, with a mark in its place.

A message is stored as compact JSON, in which every control character and every quote of a text is escaped. So a byte
that makes the JSON wrong can be found: it is replaced, and the text around it is read. Text that no field can hold is
added to the text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, cast, get_args

import msgspec

from nca.errors import StoreDamaged
from nca.messages import AttachmentPart, MediaPart, Message, Part, Role, TextPart, ToolCall
from nca.sessions.encoding import decode_message
from nca.words import Source

MARK = "\N{REPLACEMENT CHARACTER}"
"""In place of a wrong byte."""

_MOST_REPAIRS = 2_000
_RUN = re.compile(r"[\x00-\x1f\ufffd]{8,}")
_CONTROL = re.compile(r"[\x00-\x1f]")
_ESCAPE = re.compile(r'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})|\\')
_NAME = re.compile(r'[a-z_]+":')
_OPEN_NAME = re.compile(r"([a-z_]+)[^a-z_]?:")
_FIELD = re.compile(r'"[a-z_]+":')
_STRUCTURE = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)
_GONE = re.compile(rf"{MARK}\[[\d,]+ damaged bytes\]{MARK}")
_WORD = re.compile(r"\w{2}")
_CLOSERS = {"{": "}", "[": "]"}
ROLES = get_args(Role)
_SOURCES = ("", *get_args(Source))
_NAMES = frozenset(
    name
    for kind in (Message, ToolCall, TextPart, AttachmentPart, MediaPart)
    for name in (*kind.__struct_fields__, kind.__struct_config__.tag, "type", *ROLES, *_SOURCES)
)
"""The parts of a stored message beside its texts."""
_LONGEST_WORD = 200
_PIECE = re.compile(r'(?:[^"\\]|\\.)+')
"""The text between two quotes."""
_ROLE = re.compile(r'^\{"role":"[^" ]{0,12}("|$)')
"""How each message begins. Its row says the role too."""
_VALUE = re.compile(r"[\[\]{},:]*(?:true|false|null|[\d.]+)?[\[\]{},:]*")
_FLAGS, _TEXTS = (
    ("is_error", "asks_to_read", "is_interrupted"),
    ("tool_call_id", "name", "reasoning", "source", "made_by"),
)


_Fields = msgspec.defstruct(
    "_Fields", [(name, msgspec.Raw, msgspec.Raw()) for name in Message.__struct_fields__], forbid_unknown_fields=True
)
_fields_decoder = msgspec.json.Decoder(_Fields)
"""Only looks at the names of the fields: of one with a damaged name nothing is decoded."""


def stored_message(body: str, role: str, seq: int, size_bytes: int) -> Message:
    """A stored message, mended if it is damaged. If nothing can be read, a text in its place says so.

    role        from the message's row: it is stored beside the body, so damage rarely reaches both
    size_bytes  of the body, as it is stored
    """
    try:
        message = decode_message(body, f"message {seq}")
    except StoreDamaged:
        return mended(body, role) or unreadable(role, f"[message {seq} is damaged; {size_bytes:,} bytes]")
    return message if has_known_fields(body) else mended(body, role) or message


def is_sound(body: str) -> bool:
    """Whether nothing of a stored message is seen to be damaged."""
    try:
        decode_message(body, "a message")
    except StoreDamaged:
        return False
    return has_known_fields(body)


def has_known_fields(body: str) -> bool:
    """Whether a message that can be decoded has no other fields than a message has."""
    try:
        _fields_decoder.decode(body)
    except msgspec.DecodeError:
        return False
    return True


def unreadable(role: str, text: str) -> Message:
    """In place of a message. It is not a tool's result: it would be one of no call."""
    return Message(cast(Role, role) if role in ROLES and role != "tool" else "user", text, source="nca")


def mended(body: object, role: str) -> Message | None:
    """The readable pieces of a message; None if there are none."""
    if not isinstance(body, str):  # damage made it no text
        return None
    counted = _RUN.sub(lambda run: f"{MARK}[{len(run[0]):,} damaged bytes]{MARK}", body)
    text = _ESCAPE.sub(lambda escape: escape[0] if len(escape[0]) > 1 else MARK, _CONTROL.sub(MARK, counted))
    found = _parsed(text) or {}
    content, calls = _content(found.get("content")), tuple(_calls(found.get("tool_calls")))
    kept = {name: found[name] for name in _TEXTS if isinstance(found.get(name), str)}
    flags = {name: found[name] for name in _FLAGS if isinstance(found.get(name), bool)}
    called = (word for call in calls for word in (call.id, call.name, call.arguments))
    placed = "\n".join([*_texts(content), *called, *kept.values()])
    if rest := " ".join(_pieces(text, placed)):
        content = (*content, TextPart(rest)) if isinstance(content, tuple) else f"{content}\n{rest}".lstrip("\n")
    if not content and not calls:
        return None
    source = kept.pop("source", "")
    role = found["role"] if found.get("role") in ROLES else role
    if role not in ROLES or (role == "tool" and not kept.get("tool_call_id")):
        role = "user"
    return Message(
        cast(Role, role), content or None, calls, source=source if source in _SOURCES else "", **kept, **flags
    )


def _parsed(text: str) -> dict[str, Any] | None:
    """The JSON object, repaired where it is wrong; None if it is none."""
    for _ in range(_MOST_REPAIRS):
        try:
            found = json.loads(text)
        except json.JSONDecodeError as error:
            repaired = _repaired(text, error)
            if repaired is None:
                return None
            text = repaired
        except RecursionError:
            return None
        else:
            return found if isinstance(found, dict) else None
    return None


def _repaired(text: str, error: json.JSONDecodeError) -> str | None:
    """The text with the place repaired at which reading failed; None if it cannot be repaired."""
    at = error.pos
    if error.msg.startswith("Unterminated string"):
        return _closed(text + '"')
    if at >= len(text) - 1 and not error.msg.startswith("Extra data"):
        return _closed(text[:at])
    match error.msg:
        case "Expecting ',' delimiter" if not _FIELD.match(text, at + 1):
            quote = text.rfind('"', 0, at)
            if text[quote - 1] == "," and _NAME.match(text, at):  # it begins the next field: the string has no end
                return f'{text[: quote - 1]}"{text[quote - 1 :]}'
            # The string did not end there.
            return text[:quote] + MARK + text[quote + 1 :] if quote > 0 else None
        case "Expecting ',' delimiter":
            return f"{text[:at]},{text[at + 1 :]}"
        case "Expecting ':' delimiter":
            begin = text.rfind('"', 0, text.rfind('"', 0, at)) + 1
            if name := _OPEN_NAME.match(text, begin, at):  # it has no end
                return f'{text[:begin]}{name[1]}":{text[name.end() :]}'
            return f"{text[:at]}:{text[at + 1 :]}"
        case "Expecting value" if at == 0:
            return "{" + text[1:] if text[0] != "{" else None
        case "Expecting property name enclosed in double quotes" if text[at - 1] == "{" and text[at + 1] in ",]}":
            return f"{text[:at]}}}{text[at + 1 :]}"
        case "Expecting value" if _FIELD.match(text, at + 1):
            return f"{text[:at]}{{{text[at + 1 :]}"
        case "Expecting value" | "Expecting property name enclosed in double quotes" if text[at] != '"':
            return f'{text[:at]}"{text[at + 1 :]}'
        case _ if error.msg.startswith("Extra data"):
            # The object did not end there.
            return f"{text[: at - 1]},{text[at:].lstrip(',')}" if text[at - 1] == "}" else None
        case _:
            return None


def _closed(text: str) -> str | None:
    """The text with the brackets closed that were left open; None if there are none."""
    opened: list[str] = []
    for found in _STRUCTURE.finditer(text):
        if found[0] in _CLOSERS:
            opened.append(found[0])
        elif found[0] in "]}" and opened:
            opened.pop()
    end = "".join(_CLOSERS[one] for one in reversed(opened))
    stripped = text.rstrip(",: ")
    return stripped + end if end else None


def _content(found: Any) -> str | tuple[Part, ...]:
    try:
        return msgspec.convert(tuple(found) if isinstance(found, list) else found, str | tuple[Part, ...])
    except msgspec.ValidationError:
        return ""


def _calls(found: Any) -> Iterator[ToolCall]:
    for call in found if isinstance(found, list) else ():
        with suppress(msgspec.ValidationError):
            yield msgspec.convert(call, ToolCall)


def _texts(content: str | tuple[Part, ...]) -> Iterator[str]:
    if isinstance(content, str):
        yield content
        return
    for part in content:
        match part:
            case TextPart():
                yield part.text
            case AttachmentPart():
                yield f"{part.path}\n{part.text}"
            case _:
                yield msgspec.json.encode(part.payload).decode()


def _pieces(text: str, placed: str) -> Iterator[str]:
    """The texts in a damaged message that have found no place; neither names of fields nor data without words."""
    for match in _PIECE.finditer(_ROLE.sub("", text)):
        piece = _ESCAPE.sub(_meant, match[0])
        if (
            piece.strip(MARK) in placed
            or piece in _NAMES
            or not _WORD.search(_GONE.sub("", piece))
            or _VALUE.fullmatch(piece)
        ):
            continue
        if " " in piece or len(piece) <= _LONGEST_WORD:
            yield piece


def _meant(escape: re.Match[str]) -> str:
    """The character of an escape. One half of a pair is none."""
    if len(escape[0]) == 1 or "\\ud" in escape[0].lower():
        return MARK
    meant: str = json.loads(f'"{escape[0]}"')
    return meant
