"""List what a log holds of one kind, for recall: messages, answers, errors, files, one file's uses, one turn."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from posixpath import normpath

from nca.context.file_reads import file_use, main_argument
from nca.context.record.excerpt import excerpt
from nca.context.record.words import said_in
from nca.messages import Entry, ToolCall

SCOPES = ("session", "all", "messages", "answers", "errors", "files")
MAX_CALL_CHARS = 80
ERROR_TOKENS = 60
_TURN = re.compile(r"turn\s*#?(\d{1,9})")

Listed = tuple[int, str]
"""A message's number and what is listed of it."""


def listed(entries: Iterable[Entry], scope: str) -> list[Listed]:
    """What the log holds of this scope, oldest first. Raises ValueError for a scope that is none."""
    match scope:
        case "messages":
            said = ((entry.seq, said_in(entry.message)) for entry in entries)
            return [(seq, one.typed.strip()) for seq, one in said if one is not None and one.typed.strip()]
        case "answers":
            return [(entry.seq, text) for entry in entries if (text := _answer(entry))]
        case "errors":
            return _errors(entries)
        case "files":
            return _files(entries)
    if "/" in scope or "." in scope:
        return list(_uses_of(entries, scope))
    raise ValueError(f"no such scope: {scope[:60]!r}; the scopes are {', '.join(SCOPES)}, turn 12, or a file's path")


def turn_in(scope: str) -> int:
    """The message that a scope such as `turn 12` names, or 0."""
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


def _answer(entry: Entry) -> str:
    message = entry.message
    return message.text.strip() if message.role == "assistant" and not message.tool_calls else ""


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
        if message.is_error:
            failed[name] = (entry.seq, f"{name}: {excerpt(message.text.strip(), ERROR_TOKENS)}")
    return list(failed.values())


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
