"""Replace exact text in a file. If the text is not found, report the closest lines."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate

from nca.tools.files.text_file import TextFile
from nca.tools.tool import ToolError

_NAMED_PLACES = 5
_COMPARED_LINES, _COMPARED_CHARS = 3_000, 199
"""Bounds for the search of a similar line. From 200 characters on, difflib ignores characters that are frequent."""
_COMPARED_PLACES = 1_000
_SHOWN_CHARS = 80


def replaced(file: TextFile, old: str, new: str, name: str, *, everywhere: bool) -> tuple[str, list[int]]:
    """The text after the replacement, and the line numbers of the places. Raises ToolError in one line."""
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
        raise ToolError("old_text and new_text are the same")
    places = _places(text, found)
    if len(places) > 1 and not everywhere:
        shown = ", ".join(map(str, places[:_NAMED_PLACES])) + (", …" if len(places) > _NAMED_PLACES else "")
        raise ToolError(
            f"old_text occurs {len(places)} times in {name} (lines {shown});"
            " give more of the lines around it, or set replace_all"
        )
    return text.replace(found, new), places


def _places(text: str, found: str) -> list[int]:
    """The line number of each occurrence, from 1."""
    inside = found.count("\n")
    ends = accumulate(piece.count("\n") + inside for piece in text.split(found)[:-1])
    return [line - inside + 1 for line in ends]


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
    """The index where most of the wanted lines are found in their order, and how many; (0, 0) if none is found."""
    places: dict[str, list[int]] = {}
    for at, line in enumerate(there):
        places.setdefault(line, []).append(at)
    counts: Counter[int] = Counter()
    for offset, line in enumerate(wanted):
        # Blank lines are everywhere, so they say nothing about the place.
        for at in places.get(line, [])[:_COMPARED_PLACES] if line else []:
            if at >= offset:
                counts[at - offset] += 1
    if not counts:
        return 0, 0
    first = min(counts, key=lambda one: (-counts[one], one))
    same = sum(line == other for line, other in zip(wanted, there[first:], strict=False))
    return first, same


def _similar(text: str, wanted: Sequence[str]) -> str:
    longest = max(wanted, key=len)[:_COMPARED_CHARS]
    lines = [line.strip()[:_COMPARED_CHARS] for line in text.split("\n")[:_COMPARED_LINES]]
    best = difflib.get_close_matches(longest, lines, n=1)
    return f"line {lines.index(best[0]) + 1} is similar: {_clip(best[0])}" if best else "no line is similar"


def _clip(line: str) -> str:
    line = line.strip()
    return line if len(line) <= _SHOWN_CHARS else line[: _SHOWN_CHARS - 1] + "…"
