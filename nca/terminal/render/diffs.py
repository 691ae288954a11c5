"""Unified diffs in colour: removed lines red, added lines green, changes within a line bold."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

from rich.console import Console, ConsoleOptions
from rich.text import Text

from nca.terminal.render.humanize import counted
from nca.terminal.render.word_wrap import hung
from nca.visible import written_out

LONGEST_LINE_CHARS = 1_000
_STYLES = {"+": "added", "-": "removed", "@": "accent"}
_TAB, _ENDS = "⇥", {" ": "␠", "\r": "␍"}
_END = re.compile(r"(?m)[ \r]$")
_MARK_CELLS = 3
"""The indent of a diff, and its first column."""
_EMPTY_CONTEXT = "\n "
"""What a diff ends with where it ends in empty lines that stay as they are."""
_END_OF_DIFF_LINE = re.compile(r"(?m)(?<=.)[ \r]$")


@dataclass(frozen=True, slots=True)
class DiffLine:
    """A line that goes on below its own beginning, behind the mark, where it is wider than its window."""

    text: Text

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        yield from hung(self.text, console, options.max_width, before=_MARK_CELLS)


def diff_lines(diff: str, most: int, more: str = "not shown") -> list[DiffLine | Text]:
    """The first `most` lines, indented and cut, and a line about the rest; `more` says why it is not shown."""
    lines = diff_rows(diff)
    return [*map(_cut, coloured(lines[:most])), *left_out(len(lines) - most, more)]


def diff_rows(diff: str) -> list[str]:
    """The lines of a diff below a path that is on the screen already: of the two titles, what the path does not say."""
    lines = marked(diff, is_diff=True).rstrip(_EMPTY_CONTEXT).split("\n")
    if not (lines[0].startswith("--- ") and lines[1:2] and lines[1].startswith("+++ ")):
        return lines
    titles = {"--- /dev/null": "new file", "+++ /dev/null": "deleted"}
    return [*(titles[line] for line in lines[:2] if line in titles), *lines[2:]]


def left_out(count: int, more: str = "not shown") -> list[Text]:
    """The line that says how many lines are not shown; none if all are."""
    return [Text(f"  … and {counted(count, 'more line')} {more}", style="notice")] if count > 0 else []


def marked(text: str, *, is_diff: bool = False) -> str:
    """Lines with marks for what looks like something else: tabs, a carriage return or a blank at the end of a line.

    Texts that differ stay different: what looks like a mark is written out. Text from nca's own tools is so already.
    """
    shown = written_out(text, kept="\n\t\r")
    for mark in (_TAB, *_ENDS.values()):
        shown = shown.replace(mark, f"⟨U+{ord(mark):04X}⟩")
    shown = re.sub(r"\r(?!\n|\Z)", "⟨U+000D⟩", shown.replace("\t", f"{_TAB}   "))
    # The first column of a diff is not the file's.
    return (_END_OF_DIFF_LINE if is_diff else _END).sub(lambda found: _ENDS[found[0]], shown)


def end_marked(row: str) -> str:
    """A row with a mark for a blank at its end, which could be nothing."""
    return f"{row[:-1]}{_ENDS[' ']}" if row.endswith(" ") else row


def coloured(lines: Sequence[str]) -> Iterator[Text]:
    """The lines in colour. Removed lines that are followed by as many added ones are compared with them."""
    start = 0
    while start < len(lines):
        gone = _run(lines, start, "-")
        come = _run(lines, start + gone, "+")
        if gone and gone == come:
            pairs = [_compared(lines[at], lines[at + gone]) for at in range(start, start + gone)]
            yield from (old for old, _ in pairs)
            yield from (new for _, new in pairs)
        else:
            come = come or (0 if gone else 1)
            yield from (Text(line, style=_STYLES.get(line[:1], "quiet")) for line in lines[start : start + gone + come])
        start += gone + come


def _run(lines: Sequence[str], start: int, mark: str) -> int:
    end = start
    while end < len(lines) and lines[end].startswith(mark):
        end += 1
    return end - start


def _cut(line: Text) -> DiffLine:
    if len(line) > LONGEST_LINE_CHARS:
        line = line[:LONGEST_LINE_CHARS].append(f"… ({len(line):,} characters)")
    line.pad_left(2)
    return DiffLine(line)


def _compared(old: str, new: str) -> tuple[Text, Text]:
    """Both lines; if they are similar, what differs between their common start and end is bold."""
    shown = Text(old, style="removed"), Text(new, style="added")
    before = _common(old[1:], new[1:]) + 1
    behind = min(_common(old[::-1], new[::-1]), min(len(old), len(new)) - before)
    if (before + behind - 1) * 3 < min(len(old), len(new)) or max(len(old), len(new)) > LONGEST_LINE_CHARS:
        return shown
    for text, line in zip(shown, (old, new), strict=True):
        text.stylize("bold", before, len(line) - behind)
    return shown


def _common(one: str, other: str) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
