"""What the agent's next messages need of the past: names that came up before, and results that are fetched again."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from benchmarks.peers.side import calls_of
from benchmarks.stated import SPEAKERS, shown, text_of

Row = dict[str, Any]
HORIZON, STEP, FEWEST = 40, 60, 20
"""Messages that come next, between two places, and that must be left at the last one."""
NEXT_CALLS = 20
"""Of these it is counted which fetch again what the log held."""
CONTENTS = frozenset(
    {"content", "old_str", "new_str", "oldText", "newText", "old_string", "new_string", "patch", "input", "text"}
)
"""Arguments that are a file's text: what stands there is written, not looked for."""
SHORTEST, LONGEST, FEWEST_DIGITS = 5, 120, 3
LINES_READABLE, LINES_HELD = 0.5, 0.9
"""A result of which fewer lines can be read is lacking; one of which so many were in one result before is no news."""
PATHS = ("path", "file_path", "filename", "file")
"""The argument that says which file a call reads."""
PLACES = ("calls", "prose")
_WORD = re.compile(r"[^\W\d][\w$-]*(?:[./:@#-]+[\w$-]+)*/?")
_SHAPE = re.compile(r"[/_.\d]|[a-z][A-Z]")
_NUMBER = re.compile(r"(?<![\w.,:/#@-])\d[\d.,:]*\d(?!\w)")


@dataclass(slots=True)
class Needed:
    """What the agent's next messages name, by place and by who said it first; and the results that it fetches again."""

    names: dict[tuple[str, str], set[str]] = field(default_factory=lambda: defaultdict(set))
    fetched: list[Fetched] = field(default_factory=list)


class Fetched(NamedTuple):
    """A result that was fetched again, and its names that the agent uses in the messages behind it."""

    result: str
    used: set[str]


class Called(NamedTuple):
    """A call: all that it asks, its tool and file ("": it names none), what came, and the place of the result."""

    asked: str
    file: str
    result: str
    at: int


def cuts(rows: Sequence[Row]) -> Iterator[int]:
    """The places at which a session is compacted: never between a call and its result."""
    at = STEP
    while at + FEWEST <= len(rows):
        while at < len(rows) and rows[at]["role"] == "tool":
            at += 1
        yield at
        at += STEP


def needs(past: Sequence[Row], coming: Sequence[Row], rest: Sequence[Row]) -> Needed:
    """What the messages to come need of the past, and has not been shown again before they need it."""
    first = _first_said(past)
    found = Needed()
    seen: set[str] = set()
    for row in coming:
        if row["role"] == "assistant":
            given = " ".join(_arguments(row))
            in_calls = {name for name in names(given) if name in first} - seen
            in_prose = {name for name in names(_prose(row)) if name in first} - seen - in_calls
            for place, wanted in zip(PLACES, (in_calls, in_prose), strict=True):
                for name in wanted:
                    if not any(name in others for others in found.names.values()):
                        found.names[place, first[name]].add(name)
        seen |= names(text_of(row))
    found.fetched = list(_fetched_again(past, rest))
    return found


def names(text: str) -> set[str]:
    """Names with a mark that plain words have not, and numbers of three digits and more."""
    words = (word.strip("./:@#-") for word in _WORD.findall(text))
    marked = {word for word in words if SHORTEST <= len(word) <= LONGEST and _SHAPE.search(word)}
    numbers = {one for one in _NUMBER.findall(text) if sum(map(str.isdigit, one)) >= FEWEST_DIGITS}
    return marked | numbers


def _first_said(past: Sequence[Row]) -> dict[str, str]:
    """Each name with who said it first; what the system prompt says is always there."""
    found: dict[str, str] = {}
    for row in past:
        for name in names(text_of(row)) if row["role"] in SPEAKERS else ():
            found.setdefault(name, SPEAKERS[row["role"]])
    return found


def _prose(row: Row) -> str:
    return text_of({"content": row.get("content")})


def _arguments(row: Row) -> Iterator[str]:
    for call in calls_of(row):
        for key, value in _given(call["function"]).items():
            if key not in CONTENTS:
                yield value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _given(function: Row) -> Row:
    try:
        given = json.loads(function["arguments"] or "{}")
    except ValueError:
        given = {"": function["arguments"]}
    return given if isinstance(given, dict) else {}


def _fetched_again(past: Sequence[Row], rest: Sequence[Row]) -> Iterator[Fetched]:
    """The results of the next calls that the log held: of the same call, or lines that the same file had there."""
    before: dict[str, str] = {}
    files: dict[str, list[set[str]]] = defaultdict(list)
    for call in _called(past):
        before[call.asked] = call.result
        if call.file:
            files[call.file].append(set(_lines(call.result)))
    for place, call in enumerate(_called(rest)):
        if place >= NEXT_CALLS:
            return
        lines = _lines(call.result)
        is_held = any(sum(line in held for line in lines) >= LINES_HELD * len(lines) for held in files[call.file])
        if lines and (before.get(call.asked) == call.result or is_held):
            behind = [row for row in rest[call.at + 1 : call.at + 1 + HORIZON] if row["role"] == "assistant"]
            yield Fetched(call.result, names(call.result) & names(shown(behind)))


def _called(rows: Sequence[Row]) -> Iterator[Called]:
    """The calls that have a result, in their order."""
    asked: dict[str, Row] = {}
    for at, row in enumerate(rows):
        asked |= {call["id"]: call["function"] for call in calls_of(row)}
        if row["role"] == "tool" and (function := asked.get(row.get("tool_call_id", ""))):
            name, given = function["name"], _given(function)
            path = next((f"{name} {given[key]}" for key in PATHS if given.get(key)), "")
            yield Called(f"{name} {function['arguments']}", path, _prose(row), at)


def _lines(result: str) -> list[str]:
    return [line.strip() for line in result.splitlines() if line.strip()]


def is_readable(result: str, text: str) -> bool:
    lines = _lines(result)
    return sum(line in text for line in lines) >= LINES_READABLE * len(lines)
