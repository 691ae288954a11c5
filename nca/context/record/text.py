"""A record as text, and the text as a record again.

A program that holds its own messages gets a record as a message and hands it in again the next time. What code kept in
it is read back by its headings, so that a second compaction of the same conversation finds what the first one found.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import Literal

from nca.context.record.allocation import Piece, allocate
from nca.context.record.ledger import FAILING, FILES, FIXED, NAMES, OUTCOMES, Ledger, texts
from nca.context.record.outcomes import kind_of_command
from nca.context.record.pieces import BETWEEN, CATEGORIES, FAILS, HEADINGS, LISTS, MENDED, Section, pieces_of
from nca.context.record.prose import UNKNOWN
from nca.context.summary import clean_prose
from nca.context.view import Summary
from nca.messages import Message

WHAT_HOLDS = "A record of the earlier part of this conversation: what the user said holds; the newest wins."
ANSWERED = " All that they asked for up to ({}) has been answered, unless they put it off."
HOW_TO_READ = " (N) is a message's number: recall expand=N shows it."
UNKNOWN_NOTE = f"{UNKNOWN} marks a name that nothing in it says."
_PREFACE = re.compile(rf"{re.escape(WHAT_HOLDS)}[^\n]*?{re.escape(HOW_TO_READ)}")
_NUMBERED = re.compile(r"\((\d+)\) ")
_FILE = re.compile(r"(?P<path>.+?): (?P<verb>[a-z]+|.+)(?: (?P<count>\d+)×)?(?:, last: (?P<hint>.*))?")


def laid_out(header: str, prose: str, lines: Iterable[tuple[Piece, str]], answered: int = 0) -> str:
    """Header and preface, what a model wrote, and the chosen lines under their headings.

    answered  the number of the last answer before the person's newest message; 0 where there is none
    """
    beginning = f"{header}\n{preface(answered)}{UNKNOWN_NOTE if UNKNOWN in prose else ''}"
    return "\n\n".join(block for block in (beginning, prose, sections_text(lines)) if block)


def preface(answered: int) -> str:
    """How to read a record. A task that stands in it, word for word, must not look open."""
    return WHAT_HOLDS + (ANSWERED.format(answered) if answered else "") + HOW_TO_READ


def sections_text(lines: Iterable[tuple[Piece, str]]) -> str:
    """The lines under their headings."""
    sections: dict[Section, list[str]] = {}
    for piece, text in lines:
        sections.setdefault(piece.section, []).append(text)
    return "\n\n".join(f"{HEADINGS[section]}\n" + "\n".join(rows) for section, rows in sorted(sections.items()))


def plain_record(ledger: Ledger, room: int) -> str:
    """What holds, in at most `room` raw tokens, for a reader who has not this log: no line names its message."""
    unnumbered = {category: [f"0\t{text}" for _, text in texts(ledger, category)] for category in ledger}
    return sections_text(allocate(pieces_of(unnumbered), room, room).lines)


def read_again(text: str) -> tuple[str, Ledger]:
    """The prose and the ledger of a summary, nca's or another program's; what is not laid out so is prose."""
    rest = _PREFACE.sub("", clean_prose(text)).removeprefix(UNKNOWN_NOTE).strip()
    prose: list[str] = []
    ledger = Ledger()
    for block in re.split(r"\n\n(?=### )", rest):
        heading, _, body = block.partition("\n")
        section = next((one for one, title in HEADINGS.items() if title == heading), None)
        if section is None:
            prose.append(block)
            continue
        for line in _lines(body) if section is not Section.LEFT_OUT else ():
            category, value = _read_line(section, line)
            ledger.setdefault(category, []).append(value)
    for category in LISTS.values():
        if category in ledger:
            ledger[category] = [f"0\t{one}" for line in ledger[category] for one in line.split(BETWEEN)]
    return "\n\n".join(prose).strip(), ledger


def record_of(seq: int, message: Message) -> Summary:
    """A message that is a summary, nca's or another program's, as an item of a view."""
    prose, ledger = read_again(message.text)
    role: Literal["user", "system"] = "system" if message.role == "system" else "user"
    digest = blake2b(message.text.encode("utf-8", "replace"), digest_size=4).hexdigest()
    return Summary(digest, ((seq, seq),), message.text, prose, ledger, made_by=message.made_by, role=role)


def _lines(body: str) -> Iterator[str]:
    """The list items of a section; lines that are indented belong to the item before them."""
    item: list[str] = []
    for line in body.splitlines():
        if line.startswith("- "):
            if item:
                yield "\n".join(item)
            item = [line[2:]]
        elif item:
            item.append(line.removeprefix("  "))
    if item:
        yield "\n".join(item)


def _read_line(section: Section, line: str) -> tuple[str, str]:
    """The category of a line, and the line as the ledger keeps it."""
    seq, line = "0", line.removeprefix(MENDED)
    if numbered := _NUMBERED.match(line):
        seq, line = numbered[1], line[numbered.end() :]
    if section in CATEGORIES:
        return CATEGORIES[section], f"{seq}\t{line}"
    if section is Section.PLACES:
        label, _, values = line.partition(": ")
        if label in LISTS:
            values = values.replace(" (", "\t").replace(")", "") if LISTS[label] == NAMES else values
            return LISTS[label], values
        return FIXED, f"{seq}\t{line}"
    if line.startswith(FAILS):
        first, _, more = line.removeprefix(FAILS).partition("\n")
        what, _, error = first.removeprefix("`").partition("`")
        errors = "\n".join(one for one in (error.removeprefix(": "), more) if one)
        return FAILING, f"{seq}\t{kind_of_command(what)}\t{what}\t{errors}"
    if line.startswith("`"):
        command, _, outcome = line[1:].partition("` → ")
        return OUTCOMES, f"{seq}\t{kind_of_command(command)}\t{command} → {outcome}\tok"
    if match := _FILE.fullmatch(line):
        return FILES, "\t".join((seq, match["path"], match["count"] or "1", match["verb"], match["hint"] or ""))
    return FIXED, f"{seq}\t{line}"
