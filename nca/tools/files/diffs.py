"""A change to a file as a unified diff, in time that grows with the file and not with its square."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

CONTEXT_LINES = 3
MAX_COMPARED_LINES = 4_000
"""Changed stretches longer than this are shown as taken out and put in; comparing them takes quadratic time."""
_NO_END = "\n\\ No newline at end of file"


def unified(before: str | None, after: str, name: str) -> str:
    """The diff from `before` (None: there was no file) to `after`; "" where they are the same."""
    if before == after:
        return ""
    old, new = _lines(before or ""), _lines(after)
    head = _common(old, new)
    tail = _common(old[head:][::-1], new[head:][::-1])
    middle = max(len(old), len(new)) - head - tail
    title = ["--- /dev/null" if before is None else f"--- a/{name}", f"+++ b/{name}"]
    if middle > MAX_COMPARED_LINES:
        return "\n".join([*title, *_whole(old, new, head, tail)])
    first, last = max(0, head - CONTEXT_LINES), max(0, tail - CONTEXT_LINES)
    compared = difflib.unified_diff(old[first : len(old) - last], new[first : len(new) - last], n=3, lineterm="")
    return "\n".join([*title, *_moved(list(compared)[2:], first)])


def counts(diff: str) -> str:
    """ "+3 −1": lines put in and taken out."""
    lines = diff.split("\n")[2:]
    return f"+{sum(line[:1] == '+' for line in lines)} −{sum(line[:1] == '-' for line in lines)}"


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    last = lines.pop()
    return [*lines, last + _NO_END] if last else lines


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    count = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        count += 1
    return count


def _whole(old: list[str], new: list[str], head: int, tail: int) -> list[str]:
    first = max(0, head - CONTEXT_LINES)
    gone, come = old[head : len(old) - tail], new[head : len(new) - tail]
    before, behind = old[first:head], old[len(old) - tail : len(old) - tail + CONTEXT_LINES] if tail else []
    around = len(before) + len(behind)
    return [
        f"@@ -{first + 1},{len(gone) + around} +{first + 1},{len(come) + around} @@",
        *(f" {line}" for line in before),
        *(f"-{line}" for line in gone),
        *(f"+{line}" for line in come),
        *(f" {line}" for line in behind),
    ]


def _moved(lines: list[str], by: int) -> list[str]:
    """Hunk headers count from the file's first line, not from that of the stretch that was compared."""
    return [_header(line, by) if line.startswith("@@ ") else line for line in lines]


def _header(line: str, by: int) -> str:
    _, old, new, _ = line.split(" ")
    return f"@@ {_shifted(old, by)} {_shifted(new, by)} @@"


def _shifted(span: str, by: int) -> str:
    first, comma, length = span[1:].partition(",")
    return f"{span[0]}{int(first) + by}{comma}{length}"
