"""Which messages are reads of a file: from the arguments of tool calls, never from prose."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from posixpath import normpath
from typing import Any

import msgspec

from nca.context.admission import PAGE
from nca.messages import Entry, Message, ToolCall

CALLS_REMEMBERED = 4_096
"""The same calls are looked at by several stages of one compaction, and again by the next one."""
RESULTS_REMEMBERED = 64
"""Results that a stage compares earlier ones with: of each file the newest."""
_WANTED = ("pattern", "query", "regex")
"""Arguments with the subject of a search; the place of the search says less."""
NOT_RUN = "[not run:"
"""The beginning of the result of a call that a person, a rule or a mode refused, or that had to wait."""
_UNKNOWN = "outcome unknown]"
CUT_OFF, CUT_OFF_BY_USER = f"[interrupted: {_UNKNOWN}", f"[interrupted by the user: {_UNKNOWN}"
"""A line in the result of a call that did not come to its end: its process died, or the person stopped it."""
_NOTE_LINES = 4
"""The last lines of a result, in which a tool may say how the call ended."""
PATH_KEYS = (
    *("path", "file_path", "filepath", "filePath", "file", "filename", "file_name", "target_file", "absolute_path"),
    *("notebook_path", "relative_path"),
)
_READS = re.compile(r"(?i)(^|[_\-.])(read|view|open|cat|show)|^read|readfile|openfile|viewfile")
_WRITES = re.compile(r"(?i)write|edit|create|replace|patch|insert|append|delete|remove|rename|move|save")
_ONLY_READS = re.compile(
    r"(?i)^(?!.*(?:[_\-.]and[_\-.]|(?-i:[a-z]And[A-Z])))"
    r"(?:(?:.*[_\-.])?(?:read|view|cat|open|list|ls|search|grep|glob|find|fetch|recall|get|look|lookup|show|think|query"
    r"|todo|job|calculate)(?:[_\-.]|$)|(?:read|view|list|search|grep|glob|find|fetch|get|think|ls))"
)
"""Names of tools that change nothing: a tool of another program is known by its name alone. A name that joins two
actions, such as `search_and_replace`, does not tell."""
_RUNS = ("command", "cmd", "script", "code")
_CUT = re.compile(r"(?m)^\[(?:Output|File) truncated from |\A\[[^\n]* is longer than shown")
_FAILURE = re.compile(r"(?i)\A\W*(?:error|exception|failed|cannot|could not|enoent|eacces|no such file)\b")
MOST_FAILURE_LINES = 12
"""A longer result that begins so is a file that speaks of errors."""
_WRITING_COMMANDS = ("create", "str_replace", "insert", "undo_edit", "write")


@dataclass(frozen=True, slots=True)
class FileUse:
    """One call on one file. `seq` is the result's message for a read, the call's for a write.

    `first_line` … `last_line` (None: to the end) are the requested lines, or those that the result says it shows.
    """

    seq: int
    path: str
    is_write: bool
    first_line: int = 1
    last_line: int | None = None
    is_partial: bool = False
    """The result was cut at an unknown place: it shows no more than the same question asked before."""

    def covers(self, other: FileUse) -> bool:
        """Whether this read shows at least the other one's lines."""
        if self.is_partial:
            return (self.first_line, self.last_line) == (other.first_line, other.last_line)
        if self.first_line > other.first_line:
            return False
        return self.last_line is None or (other.last_line is not None and self.last_line >= other.last_line)


def arguments_of(call: ToolCall) -> dict[str, Any]:
    """The call's arguments, not to be changed; empty if they are not a JSON object."""
    return _decoded(call.arguments)


def texts_in(value: object) -> Iterator[str]:
    """The single values in an argument, in order, however deep it is nested."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict | list):
            waiting += reversed(one.values() if isinstance(one, dict) else one)
        else:
            yield str(one)


@lru_cache(maxsize=CALLS_REMEMBERED)
def _decoded(text: str) -> dict[str, Any]:
    try:
        arguments = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return {}
    return arguments if isinstance(arguments, dict) else {}


def path_of(arguments: dict[str, Any]) -> str:
    """The file that the arguments name, normalised; empty if they name none."""
    for key in PATH_KEYS:
        value = arguments.get(key)
        if isinstance(value, str) and value.strip():
            return normpath(value.strip().replace("\\", "/"))
    return ""


def main_argument(call: ToolCall) -> str:
    """The subject of a call: its search text, else the file that its arguments name, else the first text in them."""
    arguments = arguments_of(call)
    texts = {key: value for key, value in arguments.items() if isinstance(value, str)}
    wanted = next((texts[key] for key in _WANTED if texts.get(key)), "")
    return wanted or path_of(arguments) or next(iter(texts.values()), "")


def only_reads(call: ToolCall) -> bool:
    """Whether a call is known to change nothing."""
    use = file_use(call)
    if use is not None:
        return not use.is_write
    return not runs_program(call) and bool(_ONLY_READS.search(call.name))


def runs_program(call: ToolCall) -> bool:
    """Whether a call runs a command or a script: only the record of files knows its changes."""
    arguments = arguments_of(call)
    return any(isinstance(arguments.get(key), str | list) for key in _RUNS) and not path_of(arguments)


def file_use(call: ToolCall) -> FileUse | None:
    """A call's use of a file, None if it uses none. The call's `seq` is not known here: 0."""
    return _use_of(call.name, call.arguments)


def changes_file(call: ToolCall) -> str:
    """The file that a call writes, by its arguments; "" for another call."""
    use = file_use(call)
    return use.path if use is not None and use.is_write else ""


@lru_cache(maxsize=CALLS_REMEMBERED)
def _use_of(name: str, text: str) -> FileUse | None:
    arguments = _decoded(text)
    path = path_of(arguments)
    if not path:
        return None
    command = arguments.get("command")
    if (_WRITES.search(name) and command != "view") or command in _WRITING_COMMANDS:
        return FileUse(0, path, is_write=True)
    if not _READS.search(name) and command != "view":
        return None
    first, last = _lines(arguments)
    return FileUse(0, path, is_write=False, first_line=first, last_line=last)


def file_uses(entries: Iterable[Entry]) -> Iterator[FileUse]:
    """Reads (successful ones, at their result) and writes (at their call) in the order of the log."""
    waiting: dict[str, FileUse] = {}
    for entry in entries:
        message = entry.message
        for call in message.tool_calls:
            use = file_use(call)
            if use is not None and use.is_write:
                yield FileUse(entry.seq, use.path, is_write=True)
            elif use is not None:
                waiting[call.id] = use
        if message.role == "tool" and message.tool_call_id in waiting:
            read = _as_shown(waiting.pop(message.tool_call_id), message, entry.seq)
            if read is not None:
                yield read


def read_of(call: ToolCall, result: Message, seq: int) -> FileUse | None:
    """The lines of a file that a call with this result, message `seq`, has shown; None if it is no read, or failed."""
    use = file_use(call)
    return _as_shown(use, result, seq) if use is not None and not use.is_write else None


def says_no_more(text: str, later: str) -> bool:
    """Whether a later result has every line of this one, except for the line that says which page of a file it is."""
    said = text.partition("\n")[2] if PAGE.match(text) else text
    return text == later or _lines_in(later).issuperset(said.splitlines())


@lru_cache(maxsize=RESULTS_REMEMBERED)
def _lines_in(text: str) -> frozenset[str]:
    return frozenset(text.splitlines())


def is_cut_off(text: str) -> bool:
    """Whether a result says that its call did not come to its end: nobody knows whether it failed."""
    return _UNKNOWN in text and not {CUT_OFF, CUT_OFF_BY_USER}.isdisjoint(text.splitlines()[-_NOTE_LINES:])


def says_failed(text: str) -> bool:
    """Whether a short result begins by saying that its call failed, if no mark does; a file may speak of errors."""
    return bool(_FAILURE.match(text)) and text.count("\n") <= MOST_FAILURE_LINES


def _as_shown(use: FileUse, result: Message, seq: int) -> FileUse | None:
    """None if it failed. A tool may show less than was asked for, and say so: a page in the first line, or a cut."""
    text = result.text
    if result.is_error or says_failed(text):
        return None
    first, last = use.first_line, use.last_line
    page = PAGE.match(text)
    if page:
        first, last = int(page[1]), int(page[2])
    may_be_cut = " truncated from " in text or text.startswith("[")
    return FileUse(seq, use.path, False, first, last, is_partial=may_be_cut and bool(_CUT.search(text)))


def _lines(arguments: dict[str, Any]) -> tuple[int, int | None]:
    view_range = arguments.get("view_range") or arguments.get("range")
    if isinstance(view_range, list) and len(view_range) == 2:
        first, last = _number(view_range[0]), _number(view_range[1])
        return first or 1, last if last and last > 0 else None
    first = next(
        (n for key in ("offset", "start_line", "start", "line_start") if (n := _number(arguments.get(key)))), 1
    )
    last = next((n for key in ("end_line", "end", "line_end") if (n := _number(arguments.get(key)))), None)
    limit = _number(arguments.get("limit"))
    return first, last or (first + limit - 1 if limit else None)


def _number(value: Any) -> int | None:
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
