"""Tool calls on the screen: what runs now, as one line; and what a call that needs approval would do.

The approval shows a call whole, a part at a time, and such that it cannot be mistaken: calls that would do different
things never look the same. A call's content is indented by two columns; the rest of a line that is folded begins with
a mark in the first column; nca's own words begin there too.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Iterator
from itertools import accumulate, islice
from pathlib import Path

from rich.cells import cell_len, chop_cells
from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.text import Text

from nca.context import todo
from nca.events import ApprovalAsked, ToolFinished, ToolOutput, ToolProgress, ToolStarted
from nca.humanize import counted
from nca.terminal.render.event_lines import TOOL_CHARS, reasoning_line, tool_started_line
from nca.terminal.render.file_changes import CONTINUED, coloured, diff_rows, end_marked, marked
from nca.terminal.render.layout import BehindMark
from nca.terminal.render.sanitize import LineSanitizer, one_line, to_terminal
from nca.tools.mcp.tool import rule_in_words

OUTPUT_LINES = 5
"""The last lines of a command's output, which say how it went; /show has more."""

_NESTED = re.compile(r"task-[0-9a-f]+/")
"""The prefix that nca.agent.subtask gives to the calls of a task."""


def is_nested(call_id: str) -> bool:
    """Whether a task made the call."""
    return _NESTED.match(call_id) is not None


def status_row(status: str, seconds: float, key: str, width: int) -> Text:
    """What goes on, in one row; after two seconds with the time, and the key that stops it."""
    waited = f" {seconds:.0f} s · {key} stops" if seconds >= 2 else ""
    row = Text(status, style="quiet", no_wrap=True, overflow="ellipsis")
    row.truncate(max(2, width - cell_len(waited)), overflow="ellipsis")
    return row.append(waited)


class RunningCalls:
    """The running calls, oldest first. For a task: the number of its calls so far, and the latest."""

    def __init__(self) -> None:
        self._lines: dict[str, str] = {}
        self._progress: dict[str, str] = {}
        self._printed: dict[str, str] = {}
        """The output of the calls so far; the call that printed last is at the end."""
        self._nested: dict[str, str] = {}
        self._nested_count = 0
        self._last = ""

    def begin(self, event: ToolStarted) -> None:
        line = tool_started_line(event)
        if is_nested(event.call_id):
            self._nested[event.call_id] = line
            self._nested_count += 1
            self._last = line.removeprefix("task: ")
        else:
            self._lines[event.call_id] = line

    def progress(self, event: ToolProgress) -> None:
        self._progress[event.call_id] = one_line(event.text, TOOL_CHARS)

    def print(self, event: ToolOutput) -> None:
        self._printed.pop(event.call_id, None)
        self._printed[event.call_id] = event.text

    def printed(self, most_lines: int) -> Iterator[Text]:
        """The end of the output of the call that printed last."""
        printed = next(reversed(self._printed.values()), "")
        lines = to_terminal(printed).split("\n") if printed else []
        return _indented(lines[max(0, len(lines) - max(0, min(most_lines, OUTPUT_LINES))) :])

    def end(self, call_id: str) -> str:
        """The line of the call that finished; "" if its start was not seen."""
        self._progress.pop(call_id, None)
        self._printed.pop(call_id, None)
        line = self._nested.pop(call_id, "") or self._lines.pop(call_id, "")
        if not self._lines:
            self._nested_count, self._last = 0, ""
        return line

    def line(self) -> str:
        """ "" if nothing is running."""
        lines = [" · ".join(filter(None, (line, self._progress.get(key)))) for key, line in self._lines.items()]
        if not lines:
            return self._last
        shown = lines[0] if len(lines) == 1 else f"{len(lines)} calls: {', '.join(lines)}"
        if not self._nested_count:
            return shown
        return f"{counted(self._nested_count, 'call')}, now {self._last} · {shown}"


def printed_lines(event: ToolFinished) -> Iterator[RenderableType]:
    """What a finished call shows below its line: the end of a command's output, or the whole of a list of steps."""
    if event.name != todo.NAME:
        yield from last_lines(event.printed, event.printed_lines)
        return
    for line in to_terminal(event.printed).split("\n"):
        yield BehindMark(Text(f"{INDENT}{line}", style="quiet"), before=2 * len(INDENT))


def last_lines(printed: str, all_lines: int = 0) -> Iterator[Text]:
    """The end of a command's output, indented; a line wider than the window is cut.

    all_lines  of the output, if `printed` lacks some and ends with a note about it; else 0
    """
    if all_lines:
        printed = printed.rstrip("\n").rpartition("\n")[0]
    lines = to_terminal(printed).strip("\n").split("\n")
    kept = lines[1 - OUTPUT_LINES :]
    if all_lines:
        lines = [f"… {len(kept)} of {counted(all_lines, 'line')} (/show has more)", *kept]
    elif len(lines) > OUTPUT_LINES:
        lines = [f"… {len(lines) - len(kept):,} lines above (/show has more)", *kept]
    return _indented(lines)


def _indented(lines: Iterable[str]) -> Iterator[Text]:
    for line in lines:
        yield Text(f"  {line}", style="quiet", no_wrap=True, overflow="ellipsis")


TAIL_CHARS = 2_000


class ReasoningLines:
    """Shows the reasoning: complete lines are returned, the unfinished one is the tail."""

    def __init__(self) -> None:
        self._lines = LineSanitizer()

    def feed(self, chunk: str) -> list[RenderableType]:
        return [Text(line, style="quiet") for line in self._lines.feed(chunk)]

    def finish(self) -> list[RenderableType]:
        rest = self._lines.finish()
        return [Text(rest, style="quiet")] if rest.strip() else []

    @property
    def tail(self) -> RenderableType | None:
        partial = self._lines.partial
        return Text(partial[-TAIL_CHARS:], style="quiet") if partial.strip() else None


class ReasoningCounter:
    """Only counts the reasoning, and says in one line how much there was. `/show thoughts` shows the text."""

    tail: RenderableType | None = None

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._chars = 0

    def feed(self, chunk: str) -> list[RenderableType]:
        self._chars += len(chunk)
        return []

    def line(self) -> Text:
        line = reasoning_line(time.monotonic() - self._started, self._chars)
        return Text(f"• {line} · /show thoughts", style="quiet")


PART_LINES = 100
"""Lines that are shown at a time."""
PIECE_CHARS = 2_000
"""A longer line counts as several."""
INDENT = "  "
_NO_RULE = "Asked each time: a rule can cover plain commands only, and this line could do more."
"""A rule that names a command must mean what it says (nca.tools.shell.command_rules)."""


class ApprovalPanel:
    """A call that waits for approval. `lines_left` counts the lines that were not shown yet."""

    def __init__(self, asked: ApprovalAsked) -> None:
        self._asked = asked
        if asked.command or not asked.diff:
            text = asked.command or ("" if asked.path else asked.summary)
            lines = marked(text).split("\n") if text else []
            shown: Iterable[Text] = (Text(line, style="accent") for line in lines)
        else:
            lines = diff_rows(asked.diff)
            shown = coloured(lines)
        self._pieces = (piece for line in shown for piece in _pieces(line))
        self.lines_left = sum(max(1, -(-len(line) // PIECE_CHARS)) for line in lines)

    def first(self) -> RenderableType:
        """The call, and the first part of its command or diff."""
        asked = self._asked
        needs = "write" if asked.diff and not asked.command else asked.needs
        runs = "run this command" if asked.directory else "reach out"  # only a command of the shell has a directory
        verb = {"write": "change a file", "execute": runs, "read": "read"}[needs]
        who = f"{'task: ' if is_nested(asked.call_id) else ''}{one_line(asked.name)}"
        parts: list[RenderableType] = [Text(f"{who} wants to {verb}:", style="bold")]
        if asked.path:
            parts.append(_Folded([(Text(marked(_from_here(asked.path)), style="accent"), INDENT)]))
        parts.append(self.more())
        if asked.directory:
            parts.append(_Folded([(Text(f"in {marked(asked.directory)}", style="quiet"), "")]))
        if asked.warning:
            parts.append(Text(one_line(asked.warning, 600), style="failure"))
        if asked.directory and asked.allowed_by == "tool":
            parts.append(Text(_NO_RULE, style="quiet"))
        return Group(*parts)

    def more(self) -> RenderableType:
        """The next part, and how much is left."""
        part = list(islice(self._pieces, PART_LINES))
        self.lines_left -= len(part)
        left = f"… and {counted(self.lines_left, 'more line')} not shown" if self.lines_left else ""
        return Group(_Folded(part), *([Text(left, style="notice")] if left else []))


ALL_EDITS = "all edits from here on"


def rule_of(asked: ApprovalAsked) -> str:
    """The tool and subject of a rule that allows the call; a path in this directory is shown relative to it.

    For a list of commands: those of each rule.
    """
    if asked.subjects:
        return ", ".join(f"{one_line(asked.name)} {one_line(subject, 80)}" for subject in asked.subjects)
    return f"{one_line(asked.name)} {one_line(rule_in_words(asked.name, _from_here(asked.subject)), 80)}"


def _from_here(path: str) -> str:
    return path.removeprefix(f"{Path.cwd()}{os.sep}")


class _Folded:
    """Lines, and what each begins with, as rows of the terminal's width. No character is lost at a fold."""

    def __init__(self, lines: list[tuple[Text, str]]) -> None:
        self._lines = lines

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        for line, begin in self._lines:
            yield from folded(line, options.max_width, begin)


def folded(line: Text, columns: int, begin: str = INDENT) -> Iterator[Text]:
    """The line as rows of so many cells, the first of them after `begin`. No character is lost at a fold."""
    pieces = chop_cells(line.plain, max(columns - len(INDENT), 2))
    rows = line.divide(accumulate(map(len, pieces[:-1])))
    for number, row in enumerate(rows):
        if number < len(rows) - 1:
            # A blank before a fold would look like the rest of the row.
            row.plain = end_marked(row.plain)
        mark = CONTINUED if number else begin
        yield Text(mark, style=row.style, no_wrap=True, overflow="ignore").append_text(row)


def _pieces(line: Text) -> Iterator[tuple[Text, str]]:
    if len(line) <= PIECE_CHARS:
        yield line, INDENT
        return
    text, style = line.plain, line.style
    for start in range(0, len(text), PIECE_CHARS):
        piece = end_marked(text[start : start + PIECE_CHARS])
        yield Text(piece, style=style), CONTINUED if start else INDENT
