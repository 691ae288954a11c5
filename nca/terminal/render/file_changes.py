"""Changes of files on the screen: unified diffs in colour, and what a rewind does in words."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING

from rich.console import Console, ConsoleOptions, RenderableType
from rich.text import Text

from nca.humanize import counted, some_of, written_out
from nca.terminal.render.layout import hung
from nca.terminal.render.sanitize import one_line

if TYPE_CHECKING:
    from nca.agent.rewinding import Point
    from nca.file_history.changes import FileChange
    from nca.file_history.history import RewindOutcome
    from nca.file_history.plan import PlannedChange, RewindPlan

LONGEST_LINE_CHARS = 1_000
_STYLES = {"+": "added", "-": "removed", "@": "accent"}
_TAB, _ENDS = "⇥", {" ": "␠", "\r": "␍"}
_END = re.compile(r"(?m)[ \r]$")
_MARK_CELLS = 3
"""The indent of a diff, and its first column."""
CONTINUED = "↪ "
"""Before a further row of the same line."""
_EMPTY_CONTEXT = "\n "
"""The end of a diff that ends in unchanged empty lines."""
_END_OF_DIFF_LINE = re.compile(r"(?m)(?<=.)[ \r]$")


@dataclass(frozen=True, slots=True)
class DiffLine:
    """A line that wraps below its own beginning, after the mark, if it is wider than its window."""

    text: Text

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        for number, row in enumerate(hung(self.text, console, options.max_width, before=_MARK_CELLS)):
            # A further row that began with blanks would look like a line of the file.
            further = Text(CONTINUED, style=self.text.style).append_text(row[len(CONTINUED) :])
            yield further if number else row


def diff_lines(diff: str, most: int, more: str = "not shown") -> list[DiffLine | Text]:
    """The first `most` lines, indented and cut, and a line about the rest; `more` says why it is not shown."""
    lines = diff_rows(diff)
    return [*map(_cut, coloured(lines[:most])), *left_out(len(lines) - most, more)]


def diff_rows(diff: str) -> list[str]:
    """The lines of a diff below its path, with only the parts of the two titles that the path lacks."""
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


_NAMED, _TOLD = 5, 12
_EXCERPT_CHARS = 60


def summary(done: RewindPlan | RewindOutcome, *, names: bool = False, reasons: bool = False, left: str = "left") -> str:
    """`3 restored, 1 deleted, 2 left`; "" without files.

    names    the names of restored and deleted files
    reasons  why the others stay as they are, where no lines (`left_lines`) say it
    left     what becomes of those that the person may choose about
    """
    parts = [
        (done.restored, "restored"),
        (done.deleted, "deleted"),
        (done.left, left),
        (done.blocked, "left"),
        (done.not_stored, "not stored"),
    ]
    named = (done.restored, done.deleted) if names else ()
    said = [(files, f"{len(files):,} {word}") for files, word in parts if files]
    why = _reasons if reasons else lambda files: ""
    return ", ".join(f"{what} ({paths(files)})" if files in named else what + why(files) for files, what in said)


def left_lines(done: RewindPlan | RewindOutcome) -> Iterator[str]:
    """The files that stay as they are, each with the reason."""
    for one in (*done.left, *done.blocked, *done.not_stored):
        yield f"{path(one)} stays as it is: {one_line(one.reason)}."


def open_lines(plan: RewindPlan) -> Iterator[str]:
    """Before it happens: the same, but those that the person may choose about do not stay as they are yet."""
    yield from (f"{path(one)}: {one_line(one.reason)}." for one in plan.left)
    yield from left_lines(dataclasses.replace(plan, left=()))


def going_lines(plan: RewindPlan) -> Iterator[str]:
    """Before it happens: the files that change, by name, in the words in which `summary` counts them afterwards."""
    for word, files in (("Will restore", plan.restored), ("Will delete", plan.deleted)):
        known, unknown = [one for one in files if not one.is_unnamed], [one for one in files if one.is_unnamed]
        if known:
            yield f"{word} {paths(known, _TOLD)}."
        if unknown:
            yield f"{word} files that no command mentions, perhaps your own: {paths(unknown, _TOLD)}."


def unset_lines(done: RewindOutcome) -> Iterator[str]:
    """The files and folders that had bits which nca does not set, by these bits."""
    for bits in dict.fromkeys(one.reason for one in done.unset):
        files = [one for one in done.unset if one.reason == bits]
        yield f"Restored without {bits}, which nca never sets: {paths(files)}."


def diffs(changes: Sequence[FileChange], most: int, more: str) -> tuple[list[RenderableType], bool]:
    """The diffs of files in about `most` lines, each below its path, and whether these are all.

    more  says where the rest is
    """
    lines: list[RenderableType] = []
    for place, one in enumerate(changes):
        if len(lines) >= most:
            left = counted(len(changes) - place, "more file")
            return [*lines, Text(f"  … and {left} {more}", style="notice")], False
        diff = one.diff()
        if diff.startswith("--- "):
            lines.append(Text(f"{path(one)}  +{one.added:,} −{one.removed:,}", style="accent"))
            lines += diff_lines(diff, most, more)
        else:
            lines.append(Text(one_line(diff), style="accent"))
    return lines, len(lines) <= most


def changed_line(change: FileChange) -> str:
    """How many lines of a file changed; of one without lines what did: its mode, its target, its bytes."""
    is_of_lines = change.added or change.removed or change.diff().count("\n")
    return f"+{change.added:,} −{change.removed:,}  {path(change)}" if is_of_lines else one_line(change.diff())


def totals(changes: Iterable[FileChange]) -> str:
    """`2 files +31 −4`; "" without changes."""
    changes = list(changes)
    added, removed = sum(one.added for one in changes), sum(one.removed for one in changes)
    return f"{counted(len(changes), 'file')} +{added:,} −{removed:,}" if changes else ""


def path(one: FileChange) -> str:
    return one_line(one.path.encode("utf-8", "surrogateescape").decode("utf-8", "replace"))


def paths(files: Sequence[PlannedChange], most: int = _NAMED) -> str:
    """The first of them by name."""
    return some_of([path(one) for one in files], most)


def excerpt(point: Point) -> str:
    """The beginning of a message, in quotes."""
    text = one_line(point.text, _EXCERPT_CHARS)
    return f"“{text}”" if text else "a message without text"


def _reasons(files: Sequence[PlannedChange]) -> str:
    reasons = dict.fromkeys(one_line(one.reason) for one in files if one.reason)
    return f" ({'; '.join(reasons)})" if reasons else ""
