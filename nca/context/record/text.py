"""A record as text, and the text as a record again.

A program that keeps its own messages gets a record as one of them and hands it in again the next time. Its lines are
read back by their headings, and are pieces of their kinds again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from nca.context.record.piece import Piece, Section
from nca.context.summary import clean_prose

HEADINGS = {
    Section.WORDS: "### What the user said",
    Section.ANSWERS: "### What you answered",
    Section.TURN: "### What was done after the last answer",
    Section.EFFECTS: "### What was done and changed",
    Section.FAILED: "### Calls with errors, not made again",
    Section.CALLS: "### What was run and read",
    Section.NAMES: "### Names that came up",
}
PREFACE = "A record. What the user said holds; where lines of one section differ, the later one holds."
GAPS = (
    "A record. Some of what the user said is not in it, and may have changed what is; where lines of one section"
    " differ, the later one holds."
)
ANSWERED = " All up to ({}) has been answered."
WAITS = " ({}) is still open."
OLDER = " The summary is older than the lines below it: where they differ, they hold."
OF_UP_TO = " The summary speaks of what was said up to ({}): where the lines below it differ, they hold."
HOW_TO_READ = " (N) is the number of a message: recall expand=N shows it."
_PREFACE = re.compile(
    f"(?:{re.escape(PREFACE)}|{re.escape(GAPS)})"
    + "".join(
        f"(?:{re.escape(line).replace(re.escape('{}'), r'[0-9]+')})?"
        for line in (ANSWERED, WAITS, OLDER, OF_UP_TO, HOW_TO_READ)
    )
)
_HEADING = "\n### "


def preface(*, answered: int, numbered: bool, waits: int = 0, prose_until: int = 0, has_gaps: bool = False) -> str:
    """The note on how to read a record.

    answered     the number of the last answer before the person's newest message; 0: none, or nobody can look it up
    waits        the number of the newest message, if the record stands behind it and has what was done for it
    prose_until  the last message that a model's prose covers, if the record covers later ones as well
    has_gaps     some of the person's words have no room: what an older one says may have been taken back in these
    """
    start = GAPS if has_gaps else PREFACE
    if not numbered:
        return start + (OLDER if prose_until else "")
    until = OF_UP_TO.format(prose_until) if prose_until else ""
    done = "".join(line.format(seq) for line, seq in ((ANSWERED, answered), (WAITS, waits)) if seq)
    return start + done + until + HOW_TO_READ


def laid_out(header: str, start: str, prose: str, taken: Iterable[tuple[Section, Piece]], *, numbered: bool) -> str:
    """Header and preface, a model's text, and the lines under their headings, in the order of the log."""
    blocks = [f"{header}\n{start}" if start else header, prose, sections_text(taken, numbered=numbered)]
    return "\n\n".join(block for block in blocks if block)


def sections_text(taken: Iterable[tuple[Section, Piece]], *, numbered: bool) -> str:
    """The lines under their headings."""
    rows: dict[Section, list[Piece]] = {}
    for section, piece in taken:
        rows.setdefault(section, []).append(piece)
    found = []
    for section, pieces in sorted(rows.items()):
        if section is Section.NAMES:
            body = " · ".join(piece.text for piece in pieces)
        else:
            pieces.sort(key=lambda one: (one.subject.seq, one.subject.order))
            body = "\n".join(_line(piece, numbered) for piece in pieces)
        found.append(f"{HEADINGS[section]}\n{body}")
    return "\n\n".join(found)


def _line(piece: Piece, numbered: bool) -> str:
    number = f"({piece.subject.number}) " if numbered and piece.subject.number else ""
    return "- " + f"{number}{piece.text}".replace("\n", "\n  ")


def read_again(text: str) -> tuple[str, dict[Section, list[str]]]:
    """The prose of a record, nca's or another program's, and its lines by section.

    Without the messages' numbers, if its note speaks of them: else a number in brackets is what somebody said.
    """
    cleaned = clean_prose(text)
    note = _PREFACE.search(cleaned)
    numbered = note is not None and note[0].endswith(HOW_TO_READ)
    rest = _PREFACE.sub("", cleaned, count=1).strip()
    prose: list[str] = []
    found: dict[Section, list[str]] = {}
    first, *blocks = f"\n{rest}".split(_HEADING)
    for block in (first.strip("\n"), *(f"### {one}".strip("\n") for one in blocks)):
        heading, _, body = block.partition("\n")
        section = next((one for one, title in HEADINGS.items() if title == heading.strip()), None)
        if section is None:
            prose.append(block)
        elif section is Section.NAMES:
            found.setdefault(section, []).extend(body.split(" · "))
        else:
            found.setdefault(section, []).extend(_lines(body, numbered=numbered))
    return "\n\n".join(prose).strip(), found


def _lines(body: str, *, numbered: bool) -> list[str]:
    """The items of a section; lines that are indented belong to the item before them."""
    items: list[str] = []
    for row in body.split("\n"):
        if row.startswith("- "):
            number, _, text = row[2:].partition(") ")
            items.append(text if numbered and number[:1] == "(" and number[1:].isdecimal() else row[2:])
        elif items:
            items[-1] += "\n" + row.removeprefix("  ")
    return [item.rstrip() for item in items]
