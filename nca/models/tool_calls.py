"""Assemble tool calls from the pieces of a stream, however the provider sends them.

Seen in practice: no index, one index for two calls, missing or empty ids, one id for two calls, ids of an earlier turn,
names repeated or missing, arguments as objects, as JSON in JSON, or null, and one call ten times.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

from nca.messages import ToolCall, clean_text
from nca.models.model import CallSoFar

_GOOD_ID = re.compile(r"[A-Za-z0-9_-]{1,40}")
"""Ids that every provider accepts."""
_SIGNED_ID = "__thought__"
"""litellm appends Gemini's signatures to ids, which makes them too long for other providers."""
_KEPT_KEYS = ("extra_content", "provider_specific_fields")
"""Keys of signatures that must be sent back with the calls: at Gemini's OpenAI-compatible endpoint, and from litellm.
Other keys are dropped: some servers refuse even their own."""
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]+")
_NAMELESS = "unknown_tool"
_DECODER = json.JSONDecoder()
_BEGIN_CHARS = 2_000
"""So much of a call that is still being written says what it is about."""
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_BLANKS = " \t\r\n"


@dataclass(slots=True)
class _Call:
    index: int | None
    id: str = ""
    name: str = ""
    pieces: list[str] = field(default_factory=list)
    extra: dict[str, Any] = field(default_factory=dict)
    begin: str = ""
    chars: int = 0
    lines: int = 0
    _escape: str = ""
    """The backslash at the end of the last piece, if it belongs to the next one."""

    def add(self, piece: str) -> CallSoFar:
        self.pieces.append(piece)
        self.chars += len(piece)
        self.begin += piece[: _BEGIN_CHARS - len(self.begin)]
        text = self._escape + piece
        self.lines += _ESCAPED.findall(text).count("n")
        self._escape = "\\" * ((len(text) - len(text.rstrip("\\"))) % 2)
        return CallSoFar(self.name, piece, self.begin, self.chars, self.lines)

    @property
    def arguments(self) -> str:
        return "".join(self.pieces)

    @property
    def is_whole(self) -> bool:
        return isinstance(_parse(self.arguments), dict)


class ToolCallAssembler:
    """Takes pieces in order of arrival; `calls` returns the complete calls."""

    def __init__(self) -> None:
        self._calls: list[_Call] = []

    def add(self, pieces: object) -> list[CallSoFar]:
        """Add a delta's `tool_calls`: a list of pieces, or one; anything else is ignored. The calls that have grown."""
        grown: list[CallSoFar] = []
        for piece in pieces if isinstance(pieces, list | tuple) else [pieces]:
            if not isinstance(piece, dict):
                continue
            function = piece.get("function")
            values = function if isinstance(function, dict) else piece
            index = piece.get("index")
            arguments = _arguments_text(values.get("arguments"))
            call = self._call(
                index if isinstance(index, int) and not isinstance(index, bool) else None,
                text_in(piece.get("id")),
                text_in(values.get("name")),
                arguments,
            )
            call.extra |= _kept(piece)
            if isinstance(function, dict) and (inside := _kept(function)):
                call.extra["function"] = {**call.extra.get("function", {}), **inside}
            grown.append(call.add(arguments))
        return grown

    def calls(self, known_ids: Collection[str] = (), model: str = "") -> tuple[ToolCall, ...]:
        """The calls without exact repetitions; each has an id that is unique, also among `known_ids`.

        model: the model that made them, recorded if a call has keys that only this model may get back.
        """
        taken = set(known_ids)
        seen: set[tuple[str, str]] = set()
        finished: list[ToolCall] = []
        for call in self._calls:
            name = _clean_name(call.name)
            bare_id, extra = _without_signature(call.id, call.extra)
            for arguments in _split(call.arguments):
                if (not call.name and not call.arguments.strip()) or (name, _canonical(arguments)) in seen:
                    continue
                seen.add((name, _canonical(arguments)))
                call_id = bare_id if _GOOD_ID.fullmatch(bare_id) and bare_id not in taken else _new_id()
                taken.add(call_id)
                finished.append(ToolCall(call_id, name, clean_text(arguments), extra, model if extra else ""))
        return tuple(finished)

    def _call(self, index: int | None, call_id: str, name: str, arguments: str) -> _Call:
        call = self._belongs_to(index, call_id, name, arguments)
        if call is None:
            call = _Call(index=index)
            self._calls.append(call)
        call.id = call.id or call_id
        if name and name != call.name:
            call.name += name
        return call

    def _belongs_to(self, index: int | None, call_id: str, name: str, arguments: str) -> _Call | None:
        """The call that a piece continues; None if it begins a new one."""
        candidates = [call for call in self._calls if index is None or call.index in (index, None)]
        if not candidates:
            return None
        last = candidates[-1]
        if call_id and last.id:
            same = [call for call in candidates if call.id == call_id]
            if not same:
                return None
            last = same[-1]
        elif call_id and (last.name and name):
            return None
        begins = bool(name and last.name) and (not call_id or arguments.lstrip().startswith("{"))
        is_over = last.is_whole or (name != last.name and bool(last.pieces))
        return None if begins and is_over else last


def text_in(value: object) -> str:
    return value if isinstance(value, str) else ""


def _arguments_text(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _clean_name(name: str) -> str:
    bare = name.strip().removeprefix("functions.")
    return _NOT_IN_NAMES.sub("_", bare)[:64] or _NAMELESS


def _kept(piece: dict[str, Any]) -> dict[str, Any]:
    """The keys to send back with the call; {} if they are not valid JSON."""
    found = {key: piece[key] for key in _KEPT_KEYS if piece.get(key)}
    try:
        plain: dict[str, Any] = json.loads(clean_text(json.dumps(found, ensure_ascii=False)))
    except (TypeError, ValueError, RecursionError):
        return {}
    return plain


def _without_signature(call_id: str, extra: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The id without the signature, and the signature under litellm's second key for it."""
    bare, mark, signature = call_id.partition(_SIGNED_ID)
    if not mark or not signature or "provider_specific_fields" in extra:
        return bare, extra
    return bare, {**extra, "provider_specific_fields": {"thought_signature": clean_text(signature)}}


def _new_id() -> str:
    return f"call_{uuid.uuid4().hex[:24]}"


def _parse(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _split(arguments: str) -> Iterable[str]:
    """The JSON texts of the arguments: usually one, more if the provider merged calls.

    Empty text and null become an empty object, JSON in JSON is unpacked, and invalid JSON stays as it is.
    """
    text = arguments.strip()
    if text in ("", "null", '""'):
        return ["{}"]
    value = _parse(text)
    if isinstance(value, str) and isinstance(_parse(value), dict):
        return [value.strip()]
    if value is not None:
        return [text]
    objects: list[str] = []
    position = 0
    while position < len(text):
        try:
            value, end = _DECODER.raw_decode(text, position)
        except (ValueError, RecursionError):
            return [text]
        if not isinstance(value, dict):
            return [text]
        objects.append(text[position:end])
        position = end + len(text[end:]) - len(text[end:].lstrip())
    return objects


def whole_arguments(begin: str) -> dict[str, Any]:
    """The arguments that are complete in the beginning of a call's arguments."""
    found: dict[str, Any] = {}
    position = begin.find("{") + 1
    try:
        while position:
            name, end = _DECODER.raw_decode(begin, _over_blanks(begin, position))
            value, end = _DECODER.raw_decode(begin, _over_blanks(begin, _over_blanks(begin, end) + 1))
            position = _over_blanks(begin, end) + 1
            if begin[position - 1 : position] not in (",", "}"):
                break
            found[str(name)] = value
    except (ValueError, RecursionError):
        pass
    return found


def _over_blanks(text: str, position: int) -> int:
    return position + len(text[position:]) - len(text[position:].lstrip(_BLANKS))


def _canonical(arguments: str) -> str:
    value = _parse(arguments)
    return arguments if value is None else json.dumps(value, sort_keys=True)
