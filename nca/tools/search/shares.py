"""Share out the room of a search: where more lines match than are shown, each file shows some of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache

from nca.tools.files.workspace import Workspace, shown
from nca.tools.search.worker import SearchRequest

_NAMED = 5


def share_out(files: Sequence[str], most: int) -> tuple[list[int], dict[str, int]]:
    """Which matches to show, by their places, and how many of each file are not shown.

    files  the file of each match
    most   how many may be shown: evenly many of each file, the first ones; with more files than that, one of some
    """
    counts, room = Counter(files), dict[str, int]()
    left = most
    for later, (file, count) in zip(range(len(counts), 0, -1), reversed(counts.most_common()), strict=True):
        room[file] = min(count, left // later)
        left -= room[file]
    hidden = {file: count - room[file] for file, count in counts.items() if count > room[file]}
    chosen: list[int] = []
    for place, file in enumerate(files):
        if room[file]:
            room[file] -= 1
            chosen.append(place)
    return chosen, hidden


def left_out_of(workspace: Workspace, request: SearchRequest) -> Callable[[str], bool]:
    """Whether a rule about reading leaves a file out, by its path from the root.

    The file that the search itself names is not left out: the call was decided by its path.
    """

    @cache
    def is_left_out(name: str) -> bool:
        return name != request.start and workspace.reading.is_hidden(workspace.root / name)

    return is_left_out


def hidden_note(hidden: Mapping[str, int], *, is_all: bool) -> str:
    """A line that says what is not shown. is_all: there are no more than these."""
    named = sorted(hidden.items(), key=lambda one: -one[1])[:_NAMED]
    files = ", ".join(f"{shown(file)} {count:,}" for file, count in named)
    if others := len(hidden) - len(named):
        files += f" and {others:,} other file{'s' if others > 1 else ''}"
    total = sum(hidden.values())
    some = f"{'' if is_all else 'at least '}{total:,} more match{'es' if total > 1 else ''}"
    return f"[{some} not shown: {files}; search one file, or raise max_results]"
