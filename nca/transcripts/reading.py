"""Parse transcripts: a JSON array, JSON lines, or an object with `messages` (or `input`) and optionally `tools`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec

from nca.collector import collector_paused
from nca.errors import InvalidMessages
from nca.transcripts.formats.source import decode

VALID = "valid: a JSON array of messages, JSON lines, or an object with messages"


@dataclass(frozen=True, slots=True)
class Transcript:
    """The parsed rows. The messages themselves are not validated yet."""

    messages: list[Any]
    tools: list[Any] = field(default_factory=list)
    lines: list[int] = field(default_factory=list, compare=False)
    """The line number of each row in a file of JSON lines; empty for a single JSON value."""
    whole: dict[str, Any] = field(default_factory=dict, compare=False)
    """The object that held the messages; empty if there was none."""


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
        held = whole.get("messages", whole.get("input"))
        tools = whole.get("tools")
        if isinstance(held, str) and "messages" not in whole:
            held = [{"role": "user", "content": held}]
        if isinstance(held, list):
            return Transcript(held, tools if isinstance(tools, list) else [], whole=whole)
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
