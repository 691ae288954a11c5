"""Sessions with the facts that must stay readable in them, marked by hand; nothing here comes from nca.

A session is NAME.jsonl with the facts in NAME.facts.json beside it (docs/playing.md). The marks of transcripts that are
not in the repository are in `marks/`: the file, the line of the conversation, its hash, and the facts.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

Row = dict[str, Any]
OWN = Path(__file__).parent.parent / "tests" / "data" / "sessions"
FIRST_CONTACT = OWN / "first_contact.json"
"""By release: the `sessions` that were played for it and counted before anything was changed for them, and what was
changed for them `since`, which is not in their figures."""
SPEAKERS = {"user": "person", "assistant": "model", "tool": "tool"}
MARKS = Path(__file__).parent / "marks"
RULE = "rule"


@dataclass(frozen=True, slots=True)
class Fact:
    """What must stay readable from message `from_message` (the first is 1) on: any word of each group in `all_of`.

    until_message   from this message on it no longer matters; 0: it matters to the end
    by              who said it: person, model or tool; "": not noted
    """

    name: str
    from_message: int
    kind: str
    all_of: Sequence[Sequence[str]]
    until_message: int = 0
    by: str = ""

    def is_in(self, text: str) -> bool:
        return all(any(word in text for word in group) for group in self.all_of)


@dataclass(frozen=True, slots=True)
class Recorded:
    """A session with its facts."""

    name: str
    rows: Sequence[Row]
    facts: Sequence[Fact]

    def speaker(self, fact: Fact) -> str:
        """Who said a fact: person, model or tool."""
        return fact.by or SPEAKERS[str(self.rows[fact.from_message - 1]["role"])]

    def due(self, number: int) -> list[Fact]:
        """What was said within the first `number` messages, and still matters."""
        return [one for one in self.facts if one.from_message <= number < (one.until_message or number + 1)]


def first_contact(release: str) -> Row:
    """The sessions that this release met for the first time, what was changed for them `since`, and what was changed
    for those that were played for it `before`."""
    found: dict[str, Row] = json.loads(FIRST_CONTACT.read_text(encoding="utf-8"))
    return found.get(release, {"sessions": [], "since": ""})


def sessions_in(folder: Path) -> list[Recorded]:
    """The sessions of this folder that have their facts beside them, by name."""
    found = []
    for place in sorted(folder.glob("*.facts.json")):
        name = place.name.removesuffix(".facts.json")
        lines = (folder / f"{name}.jsonl").read_text(encoding="utf-8").rstrip("\n").split("\n")
        found.append(Recorded(name, [json.loads(line) for line in lines], facts_in(place)))
    return found


def facts_in(place: Path) -> list[Fact]:
    return [Fact(**one) for one in json.loads(place.read_text(encoding="utf-8"))]


def marked_in(folder: Path, marks_folder: Path = MARKS) -> list[Recorded]:
    """The marked transcripts, as far as they are in this folder and unchanged."""
    found = []
    for place in sorted(marks_folder.glob("*.json")):
        marks = json.loads(place.read_text(encoding="utf-8"))
        path = folder / marks["file"]
        rows = _conversation(path, marks.get("line", 0)) if path.is_file() else []
        if digest(rows) == marks["sha256"]:
            name = place.stem.replace("-", " ")
            found.append(Recorded(name, rows, [Fact(**one) for one in marks["facts"]]))
    return found


def _conversation(path: Path, number: int) -> list[Row]:
    """The messages of a file that has one in each line, or a conversation in each: then that of line `number`."""
    lines = path.read_text(encoding="utf-8").splitlines()
    rows = json.loads(lines[number - 1])["messages"] if 0 < number <= len(lines) else map(json.loads, lines)
    return [row for row in rows if "role" in row and not row["role"].startswith("_")]


def digest(rows: Sequence[Row]) -> str:
    """What tells this text from any other."""
    return sha256(shown(rows).encode()).hexdigest()


def readable(facts: Sequence[Fact], request: Sequence[Row]) -> list[Fact]:
    """The facts that can be read in this request, whoever put them there."""
    text = shown(request)
    return [fact for fact in facts if fact.is_in(text)]


def shown(request: Sequence[Row]) -> str:
    """All that a model reads in these messages."""
    return "\n".join(map(text_of, request))


def text_of(row: Row) -> str:
    """What a model reads in an OpenAI-shaped message: its text, and the arguments of its calls, also unescaped."""
    content = row.get("content") or ""
    parts = [content] if isinstance(content, str) else [str(part.get("text", "")) for part in content]
    for call in row.get("tool_calls") or ():
        arguments = str(call["function"]["arguments"])
        try:
            read = json.loads(arguments)
        except ValueError:
            read = None
        parts += [arguments, *(str(value) for value in (read.values() if isinstance(read, dict) else ()))]
    return "\n".join(parts)
