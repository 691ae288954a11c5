"""Read the parts of Google's contents, which Gemini CLI and Qwen Code keep: text, thoughts, calls, responses, media."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from nca.messages import Message, Part, TextPart, ToolCall
from nca.transcripts.formats.building import attached, joined, media, person, shown, text_by, tool_call, tool_result
from nca.transcripts.formats.row import Row, list_of, row_of, rows_of

_FILES = "--- Content from referenced files ---"
_FILE = re.compile(r"\s*Content from @?(.+?):\s*")
_END = "--- End of content ---"
_ADDED = re.compile(
    r"<(hook_context|system_note|system-reminder|session_context)>(?:.*</\1>(?P<rest>.*)|.*)", re.DOTALL
)
"""What the program puts into a text: it is the program's as far as the last end of its tag."""


class Parts(msgspec.Struct):
    """What parts hold, in the order in which they stand."""

    content: list[Part] = []
    thoughts: list[str] = []
    calls: list[ToolCall] = []
    results: list[Message] = []


def read_parts(given: Any, place: str) -> Parts:
    """Read a text, a part or a list of them. A call without an id gets one of the place and its number."""
    found = Parts()
    for number, part in enumerate(given if isinstance(given, list) else [given], 1):
        row = Row({"text": part} if isinstance(part, str) else row_of(part))
        if called := row.row("functionCall"):
            call_id = called.text("id") or f"{place}, call {number}"
            if call := tool_call(call_id, called.get("name"), called.get("args")):
                found.calls.append(call)
        elif response := row.row("functionResponse"):
            found.results.append(read_response(response, list_of(response.get("parts"))))
        elif row.get("thought") is True or isinstance(row.get("thought"), str):
            found.thoughts.append(row.first("text", "thought"))
        elif shown_part := _shown(row):
            found.content.append(shown_part)
    return found


def sent(content: Sequence[Part], typed: str = "") -> Message | None:
    """What a person sent; None if there is nothing.

    The files that they mentioned follow their text in parts of their own, between two lines that say so.

    typed  their text, where the format has it beside what was sent
    """
    found: list[Part] = []
    name, is_file = "", False
    for place, part in enumerate(content):
        text = part.text.strip() if isinstance(part, TextPart) else ""
        if place and text in (_FILES, _END):
            is_file, name = text == _FILES, ""
            found.append(text_by("nca", text))
        elif is_file and text and (titled := _FILE.fullmatch(text)):
            name = titled[1]
        elif is_file and text:
            found.append(attached(name or "file", text))
        elif added := _ADDED.match(text):
            rest = (added["rest"] or "").strip()
            found.append(text_by("nca", text.removesuffix(rest).strip()))
            if rest:
                found.append(text_by("typed", rest) if rest == typed.strip() else TextPart(rest))
        else:
            found.append(text_by("typed", text) if text and text == typed.strip() else part)
    return person(joined(found))


def said_by(speaker: str, parts: Parts, calls: Iterable[str] = ()) -> tuple[str, ...]:
    """What a message says, whatever its id, to find it again in a copy: who, its text, its calls, what it answers."""
    shown = "\n".join(part.text if isinstance(part, TextPart) else str(part)[:200] for part in parts.content)
    answered = (one.tool_call_id for one in parts.results)
    return (speaker, shown, *(tuple(calls) or (one.id for one in parts.calls)), *answered)


def read_response(response: Row, beside: list[Any], *, is_error: bool = False) -> Message:
    """A function's response as the result of its call; `beside` are parts with its pictures."""
    said = response.get("response")
    row = row_of(said)
    error = row.get("error")
    output = row.get("output", row.get("result", error if error else said))
    pictures = [_shown(part) for part in rows_of(beside)]
    return tool_result(
        response.get("id"),
        response.get("name"),
        joined([TextPart(shown(output)), *pictures]),
        is_error=is_error or (bool(error) and "output" not in row),
    )


def _shown(row: Row) -> Part | None:
    if said := row.text("text"):
        return TextPart(said)
    if inline := row.row("inlineData"):
        return media(inline.get("data"), inline.get("mimeType"), inline.get("displayName"))
    if file := row.row("fileData"):
        return TextPart(f"[file {file.text('fileUri')}]")
    return None
