"""Exact replacement in a text, and where the closest lines are when the text is not there."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from nca.tools.files.text_file import TextFile
from nca.tools.tool import ToolError

_NAMED_PLACES = 5
_COMPARED_LINES, _COMPARED_CHARS = 3_000, 200
"""Where no line is the same, that many are compared with the longest one that was asked for."""
_LIKENESS = 0.6
_SHOWN_CHARS = 80


def replaced(file: TextFile, old: str, new: str, name: str, *, everywhere: bool) -> tuple[str, list[int]]:
    """The text after the replacement, and the lines where it happened. Raises ToolError in one line."""
    if not old:
        raise ToolError("old_text is empty; give the text to replace, or use write_file for a whole file")
    text, found = file.text, old
    if old not in text and "\r\n" in text and "\r\n" not in old:
        found = old.replace("\n", "\r\n")
    if found not in text:
        raise ToolError(_near_miss(text, old, name))
    if "\r\n" in found or "\n" not in found:
        new = file.with_own_line_ends(new)
    if found == new:
        raise ToolError("old_text and new_text are the same; nothing would change")
    places = _places(text, found)
    if len(places) > 1 and not everywhere:
        shown = ", ".join(map(str, places[:_NAMED_PLACES])) + (", …" if len(places) > _NAMED_PLACES else "")
        raise ToolError(
            f"old_text is there {len(places)} times in {name} (lines {shown});"
            " give more of the lines around it, or set replace_all"
        )
    return text.replace(found, new), places


def _places(text: str, found: str) -> list[int]:
    """The line of each occurrence, from 1."""
    places: list[int] = []
    at, line, seen = text.find(found), 1, 0
    while at >= 0:
        line += text.count("\n", seen, at)
        places.append(line)
        seen, at = at, text.find(found, at + len(found))
    return places


def _near_miss(text: str, old: str, name: str) -> str:
    said = f"old_text is not in {name}"
    there = [line.strip() for line in text.split("\n")]
    wanted = [line.strip() for line in old.strip("\n").split("\n")]
    if not any(wanted):
        return f"{said}: it is only white space"
    first, same = _best_window(there, wanted)
    if same == len(wanted):
        return f"{said}: lines {first + 1}-{first + len(wanted)} differ from it only in indentation or white space"
    if same:
        other = next(at for at, line in enumerate(wanted) if there[first + at : first + at + 1] != [line])
        reads = text.split("\n")[first + other].strip("\r") if first + other < len(there) else "(the file's end)"
        return f"{said}; the closest is at line {first + 1}, where line {first + other + 1} reads: {_clip(reads)}"
    return f"{said}; {_similar(text, wanted)}; read it again"


def _best_window(there: Sequence[str], wanted: Sequence[str]) -> tuple[int, int]:
    """Where most of the wanted lines stand in their order, and how many; (0, 0) where none does."""
    counts: dict[int, int] = {}
    places: dict[str, list[int]] = {}
    for at, line in enumerate(there):
        if line:
            places.setdefault(line, []).append(at)
    blank = 0
    for offset, line in enumerate(wanted):
        blank += not line
        for at in places.get(line, [])[:1_000] if line else []:
            counts[at - offset] = counts.get(at - offset, 0) + 1
    counts = {first: count for first, count in counts.items() if first >= 0}
    if not counts:
        return 0, 0
    first = min(counts, key=lambda one: (-counts[one], one))
    return first, counts[first] + sum(
        not line and there[first + at : first + at + 1] == [""] for at, line in enumerate(wanted)
    )


def _similar(text: str, wanted: Sequence[str]) -> str:
    longest = max(wanted, key=len)[:_COMPARED_CHARS]
    lines = text.split("\n")[:_COMPARED_LINES]
    matcher = difflib.SequenceMatcher(b=longest, autojunk=False)
    best, place = _LIKENESS, -1
    for at, line in enumerate(lines):
        matcher.set_seq1(line.strip()[:_COMPARED_CHARS])
        if matcher.real_quick_ratio() > best and matcher.quick_ratio() > best and (ratio := matcher.ratio()) > best:
            best, place = ratio, at
    if place < 0:
        return "no line is like it"
    return f"line {place + 1} is like it: {_clip(lines[place])}"


def _clip(line: str) -> str:
    line = line.strip()
    return line if len(line) <= _SHOWN_CHARS else line[: _SHOWN_CHARS - 1] + "…"
