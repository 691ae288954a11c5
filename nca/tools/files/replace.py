"""Replace exact text in a file. If only white space at line ends differs, that is forgiven if one place matches.

If the text is not found, report the closest lines.
"""

from __future__ import annotations

import difflib
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from nca.tools.files.blocks import indent_of
from nca.tools.files.text_file import TextFile
from nca.tools.tool import ToolError

_NAMED_PLACES = 5
_COMPARED_LINES, _COMPARED_CHARS = 3_000, 199
"""Bounds for the search of a similar line. From 200 characters on, difflib ignores characters that are frequent."""
_COMPARED_PLACES = 1_000
_SHOWN_CHARS = 80
_EXCERPT_LINES, _EXCERPT_CHARS = 8, 200
_BLANKS = " \t\r"
_UNDECODED = re.compile("[\udc80-\udcff]")
_AGAIN = "read it again"
_IN_UTF_8 = (
    "the file is not UTF-8, and no old_text matches what is shown as \ufffd:"
    " replace text beside it, which leaves these bytes as they are, or convert the file with a command such as iconv"
)


@dataclass(frozen=True, slots=True)
class Replaced:
    """The text after a replacement.

    lines        the line number of each place, from 1
    is_forgiven  old_text and the file differ in white space at line ends
    moved        says which line is indented otherwise than the text that was replaced, as where a method leaves its
                 class; "" if none is
    around       that line, with those around it
    """

    text: str
    lines: Sequence[int]
    is_forgiven: bool = False
    moved: str = ""
    around: str = ""

    def where(self) -> str:
        place = f"line {self.lines[0]}" if len(self.lines) == 1 else f"{len(self.lines)} places"
        return place + (", matched but for white space at line ends" if self.is_forgiven else "")


def replaced(file: TextFile, old: str, new: str, name: str, *, everywhere: bool) -> Replaced:
    """Raises ToolError if the text is not there, or in several places unless `everywhere`."""
    if not old:
        raise ToolError("old_text is empty; give the text to replace, or use write_file for a whole file")
    text, found = file.text, old
    if old not in text and "\r\n" in text and "\r\n" not in old:
        found = old.replace("\n", "\r\n")
    if found not in text:
        return _forgiving(file, old, new, name)
    new = _with_line_ends(file, found, new)
    if found == new:
        raise ToolError("old_text and new_text are the same")
    lines = _lines_of(text, found)
    if len(lines) > 1 and not everywhere:
        raise ToolError(
            f"old_text occurs {len(lines)} times in {name} (lines {_listed(lines)});"
            " give more of the lines around it, or set replace_all"
        )
    start = text.index(found)
    return _replaced(text.replace(found, new), file, (start, start + len(found)), new, lines)


def _with_line_ends(file: TextFile, found: str, new: str) -> str:
    return file.with_own_line_ends(new) if "\r\n" in found or "\n" not in found else new


def _lines_of(text: str, found: str) -> list[int]:
    """The line number of each occurrence, from 1."""
    inside = found.count("\n")
    ends = accumulate(piece.count("\n") + inside for piece in text.split(found)[:-1])
    return [line - inside + 1 for line in ends]


def _listed(lines: Sequence[int]) -> str:
    return ", ".join(map(str, lines[:_NAMED_PLACES])) + (", …" if len(lines) > _NAMED_PLACES else "")


def _forgiving(file: TextFile, old: str, new: str, name: str) -> Replaced:
    """The replacement in the only place that differs in white space at line ends."""
    text = file.text
    spans = _bare_spans(text, old)
    if not spans:
        raise _near_miss(text, old, name)
    lines = [text.count("\n", 0, start) + 1 for start, _ in spans[: _NAMED_PLACES + 1]]
    if len(spans) > 1:
        raise ToolError(
            f"old_text is not in {name}; but for white space at line ends it is there {len(spans)} times"
            f" (lines {_listed(lines)}); give more of the lines around it"
        )
    [(start, end)] = spans
    new = _with_line_ends(file, text[start:end], new.replace("\r\n", "\n"))
    if text[start:end] == new:
        raise ToolError(f"line {lines[0]} of {name} already reads so")
    done = _replaced(text[:start] + new + text[end:], file, (start, end), new, lines)
    return replace(done, is_forgiven=True)


def _replaced(text: str, file: TextFile, span: tuple[int, int], new: str, lines: Sequence[int]) -> Replaced:
    """The result, with a word if the new text is not indented as the old text in this span of the file was."""
    start, end = span
    before = file.text
    first = before.rfind("\n", 0, start) + 1
    rest = "" if before[start:end].endswith("\n") else before[end:].partition("\n")[0]
    old_indent = _least_indent((before[first:end] + rest).split("\n"))
    new_lines = (before[first:start] + new + rest).split("\n")
    new_indent = _least_indent(new_lines)
    if old_indent is None or new_indent is None or old_indent == new_indent:
        return Replaced(text, lines)
    place = next(at for at, line in enumerate(new_lines) if line.strip() and indent_of(line) == new_indent)
    at = before.count("\n", 0, first) + place
    how = "less" if len(new_indent) < len(old_indent) else "more" if len(new_indent) > len(old_indent) else "otherwise"
    moved = f"line {at + 1} is now indented {how} than the text that it replaces"
    whole = text.split("\n")
    above = max(0, at - _EXCERPT_LINES // 2)
    return Replaced(text, lines, moved=moved, around=_excerpt(whole, above, at + _EXCERPT_LINES // 2))


def _least_indent(lines: Sequence[str]) -> str | None:
    return min((indent_of(line) for line in lines if line.strip()), key=len, default=None)


def _bare_spans(text: str, old: str) -> list[tuple[int, int]]:
    """Start and end of each place that is like `old` once white space at all line ends is gone."""
    lines, old_lines = text.split("\n"), old.split("\n")
    bare, wanted = ([line.rstrip(_BLANKS) for line in some] for some in (lines, old_lines))
    if not any(wanted):
        return []
    # If `old` ends with white space, it ends with the line, and the line's own white space goes as well.
    is_whole = wanted[-1] != old_lines[-1]
    there, sought = ("\n".join(some) + "\n" * is_whole for some in (bare, wanted))
    starts = list(accumulate((len(line) + 1 for line in lines), initial=0))
    bare_starts = list(accumulate((len(line) + 1 for line in bare), initial=0))

    def original(position: int) -> int:
        line = bisect_right(bare_starts, position) - 1
        return starts[line] + position - bare_starts[line]

    spans, at = [], there.find(sought)
    while at >= 0:
        end = at + len(sought)
        if is_whole:
            line = bisect_right(bare_starts, end - 1) - 1
            spans.append((original(at), starts[line] + len(lines[line].removesuffix("\r"))))
        else:
            spans.append((original(at), original(end)))
        at = there.find(sought, end)
    return spans


def _near_miss(text: str, old: str, name: str) -> ToolError:
    """An error that says where the closest lines are, and quotes them."""
    said, lines = f"old_text is not in {name}", text.split("\n")
    there = [line.strip() for line in lines]
    wanted = [line.strip() for line in old.strip("\n").split("\n")]
    if not any(wanted):
        return ToolError(f"{said}: it is only white space")
    first, same = _best_window(there, wanted)
    last = first + len(wanted)
    if same == len(wanted):
        differs = f"{said}: lines {first + 1}-{last} differ from it only in indentation or white space"
        return ToolError(differs, _excerpt(lines, first, last))
    if same:
        other = next(at for at, line in enumerate(wanted) if there[first + at : first + at + 1] != [line])
        reads = lines[first + other].strip("\r") if first + other < len(there) else "(the file's end)"
        closest = f"{said}; the closest is at line {first + 1}, where line {first + other + 1} reads: {_clip(reads)}"
        closest += f"; {_IN_UTF_8}" if _UNDECODED.search(reads) else ""
        return ToolError(closest, _excerpt(lines, max(first, first + other - _EXCERPT_LINES // 2), last))
    return _similar(said, lines, wanted)


def _excerpt(lines: Sequence[str], first: int, last: int) -> str:
    """The lines from index `first` to before `last`; not all of them if they are many or long."""
    shown = [line.removesuffix("\r") for line in lines[first : min(last, first + _EXCERPT_LINES)]]
    return "\n".join(line if len(line) <= _EXCERPT_CHARS else line[:_EXCERPT_CHARS] + "…" for line in shown)


def _best_window(there: Sequence[str], wanted: Sequence[str]) -> tuple[int, int]:
    """The index at which most of the wanted lines are found in order, and how many; (0, 0) if none is found."""
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


def _similar(said: str, lines: Sequence[str], wanted: Sequence[str]) -> ToolError:
    longest = max(wanted, key=len)
    compared = [line.strip()[:_COMPARED_CHARS] for line in lines[:_COMPARED_LINES]]
    best = difflib.get_close_matches(longest[:_COMPARED_CHARS], compared, n=1)
    if not best:
        return ToolError(f"{said}; no line is similar; {_what_helps(lines)}")
    at = compared.index(best[0])
    similar = f"{said}; line {at + 1} is similar: {_clip(best[0])}; {_what_helps([lines[at]])}"
    first = max(0, at - wanted.index(longest))
    return ToolError(similar, _excerpt(lines, max(first, at - _EXCERPT_LINES // 2), first + len(wanted)))


def _what_helps(lines: Sequence[str]) -> str:
    """What to do about these lines of the file, which are not as the text was said to be."""
    return _IN_UTF_8 if any(map(_UNDECODED.search, lines)) else _AGAIN


def _clip(line: str) -> str:
    line = line.strip()
    return line if len(line) <= _SHOWN_CHARS else line[: _SHOWN_CHARS - 1] + "…"
