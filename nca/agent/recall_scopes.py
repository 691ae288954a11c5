"""List what a log holds of one kind, for recall: rules, decisions, errors, files, one file's uses, one turn."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from posixpath import normpath

from nca.context.file_reads import file_use, main_argument
from nca.context.ledger import find
from nca.messages import Entry, Message, ToolCall

SCOPES = ("session", "all", "rules", "decisions", "errors", "files")
MAX_CALL_CHARS = 80
MAX_LINE_CHARS = 160
MOST_ERROR_LINES = 3
_TURN = re.compile(r"turn\s*#?(\d{1,9})")
_FAILURE = re.compile(
    r"(?m)^(?:Traceback \(most recent call last\)|(?:\S+: )?(?:fatal|error|ERROR|Error)(?:\[\w+\])?:"
    r"|(?:[A-Za-z_][\w.]*)?(?:Error|Exception)(?::|$)|FAILED\b|\[exit code [1-9]|(?:=+ )?\b[1-9]\d* failed\b)"
)
"""How programs report a failure, at the beginning of a line."""
_ERROR_LINE = re.compile(r"(?i)\b\w*(?:error|exception|fatal|panic)\b|\bFAILED\b|\b[1-9]\d* failed\b|^E  ")

Listed = tuple[int, str]
"""A message's number and what is listed of it."""


def listed(entries: Iterable[Entry], scope: str) -> list[Listed]:
    """What the log holds of this scope, oldest first. Raises ValueError for a scope that is none."""
    match scope:
        case "rules":
            return [(entry.seq, rule) for entry in entries for rule in find(entry.message).rules]
        case "decisions":
            return [(entry.seq, one) for entry in entries for one in find(entry.message).decisions]
        case "errors":
            return _errors(entries)
        case "files":
            return _files(entries)
    if "/" in scope or "." in scope:
        return list(_uses_of(entries, scope))
    raise ValueError(f"no such scope: {scope[:60]!r}; the scopes are {', '.join(SCOPES)}, turn 12, or a file's path")


def turn_in(scope: str) -> int:
    """The message that a scope such as `turn 12` names; 0 if it names none."""
    match = _TURN.fullmatch(scope)
    return int(match[1]) if match else 0


def lines_of_turn(entries: Iterable[Entry]) -> list[Listed]:
    """One line for each message: its text, then its calls."""
    found = []
    for entry in entries:
        calls = "; ".join(_call_line(call) for call in entry.message.tool_calls)
        text = " ".join(entry.message.text.split())
        if text or calls:
            found.append((entry.seq, " → ".join(part for part in (text, calls) if part)))
    return found


def _errors(entries: Iterable[Entry]) -> list[Listed]:
    """Failed calls that have not succeeded since, with the lines that say why."""
    open_calls: dict[str, ToolCall] = {}
    failed: dict[str, Listed] = {}
    for entry in entries:
        message = entry.message
        open_calls.update((call.id, call) for call in message.tool_calls)
        if message.role != "tool":
            continue
        call = open_calls.pop(message.tool_call_id, None)
        name = _call_line(call) if call else f"message {entry.seq}"
        failed.pop(name, None)
        if _is_failure(message, call):
            failed[name] = (entry.seq, f"{name}: " + " · ".join(_error_lines(message.text)))
    return list(failed.values())


def _is_failure(message: Message, call: ToolCall | None) -> bool:
    """Marked, or said by the text; a file that was read may speak of any error."""
    is_read = call is not None and file_use(call) is not None
    return message.is_error or bool(not is_read and _FAILURE.search(message.text[:50_000]))


def _error_lines(text: str) -> list[str]:
    lines = [line.strip()[:MAX_LINE_CHARS] for line in text[:50_000].splitlines() if line.strip()]
    found = list(dict.fromkeys(line for line in lines if _ERROR_LINE.search(line))) or lines[:1]
    return found[-MOST_ERROR_LINES:]


def _files(entries: Iterable[Entry]) -> list[Listed]:
    """One line for each file that a tool read or changed, at its last use; the file that was used last comes last."""
    uses: dict[str, tuple[int, int, int]] = {}
    for entry in entries:
        for call in entry.message.tool_calls:
            if use := file_use(call):
                reads, changes, _ = uses.pop(use.path, (0, 0, 0))
                uses[use.path] = (reads + (not use.is_write), changes + use.is_write, entry.seq)
    return [
        (seq, f"{path}: " + ", ".join(f"{what} {n}×" for what, n in (("changed", changes), ("read", reads)) if n))
        for path, (reads, changes, seq) in uses.items()
    ]


def _uses_of(entries: Iterable[Entry], path: str) -> Iterator[Listed]:
    """The calls that read or changed a file."""
    path = normpath(path)
    for entry in entries:
        for call in entry.message.tool_calls:
            use = file_use(call)
            if use and (use.path == path or use.path.endswith(f"/{path}") or path.endswith(f"/{use.path}")):
                lines = f" lines {use.first_line}-{use.last_line or ''}" if use.first_line > 1 or use.last_line else ""
                yield entry.seq, f"{call.name} {use.path}{lines}"


def _call_line(call: ToolCall) -> str:
    about = " ".join(main_argument(call).split())
    return f"{call.name} {about[:MAX_CALL_CHARS]}".strip()
