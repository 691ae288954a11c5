"""Rewinds in words: what one would do to the files, and what it has done."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.text import Text

from nca.terminal.render.diffs import diff_lines
from nca.terminal.render.humanize import counted
from nca.terminal.render.sanitize import one_line

if TYPE_CHECKING:
    from nca.agent.rewinding import Point
    from nca.file_history.changes import FileChange
    from nca.file_history.history import RewindOutcome
    from nca.file_history.plan import PlannedChange, RewindPlan

_NAMED, _TOLD = 5, 12
_EXCERPT_CHARS = 60


def summary(done: RewindPlan | RewindOutcome) -> str:
    """`3 restored, 1 deleted, 2 left (changed since, and not by this session)`; "" where no file is concerned."""
    parts = [
        (done.restored, "restored"),
        (done.deleted, "deleted"),
        (done.left, "left"),
        (done.blocked, "left"),
        (done.not_stored, "not stored"),
    ]
    return ", ".join(f"{len(files):,} {word}{_reasons(files)}" for files, word in parts if files)


def left_lines(done: RewindPlan | RewindOutcome) -> Iterator[str]:
    """The files that stay as they are, each with the reason."""
    for one in (*done.left, *done.blocked, *done.not_stored):
        yield f"{path(one)} stays as it is: {one_line(one.reason)}."


def going_lines(plan: RewindPlan) -> Iterator[str]:
    """Before it happens: the files that go back, by name."""
    for word, files in (("Reverts", plan.restored), ("Deletes", plan.deleted)):
        known, unknown = [one for one in files if not one.is_unnamed], [one for one in files if one.is_unnamed]
        if known:
            yield f"{word} {paths(known, _TOLD)}."
        if unknown:
            yield f"{word} what no command mentions, so that it may be your own: {paths(unknown, _TOLD)}."


def unset_lines(done: RewindOutcome) -> Iterator[str]:
    """The files and folders that had bits which nca does not set, by these bits."""
    for bits in dict.fromkeys(one.reason for one in done.unset):
        files = [one for one in done.unset if one.reason == bits]
        yield f"Without {bits}, which nca never sets: {paths(files)}."


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


def totals(changes: Iterable[FileChange]) -> str:
    """`2 files +31 −4`; "" without changes."""
    changes = list(changes)
    added, removed = sum(one.added for one in changes), sum(one.removed for one in changes)
    return f"{counted(len(changes), 'file')} +{added:,} −{removed:,}" if changes else ""


def path(one: FileChange) -> str:
    return one_line(one.path.encode("utf-8", "surrogateescape").decode("utf-8", "replace"))


def paths(files: Sequence[PlannedChange], most: int = _NAMED) -> str:
    """The first of them by name."""
    names = ", ".join(path(one) for one in files[:most])
    return names + (f" and {len(files) - most:,} more" if len(files) > most else "")


def excerpt(point: Point) -> str:
    """The beginning of a message, in quotes."""
    text = one_line(point.text, _EXCERPT_CHARS)
    return f"“{text}”" if text else "a message without text"


def _reasons(files: Sequence[PlannedChange]) -> str:
    reasons = dict.fromkeys(one_line(one.reason) for one in files if one.reason)
    return f" ({'; '.join(reasons)})" if reasons else ""
