"""The export formats: choose one by name or file extension, render a session in it (Markdown here), write the file."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from nca.context.view import Stub
from nca.errors import NcaError, UsageError, system_reason
from nca.messages import Entry
from nca.safe_files import write_atomically
from nca.sessions.transfer import SessionCopy
from nca.transcripts import descriptions as describe
from nca.transcripts.html_page import to_html, visible
from nca.transcripts.session_file import to_json, to_json_lines
from nca.wire import content_text

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})(.*)$")
_BACKTICKS = re.compile(r"`{3,}")
_FORGED_HEADING = re.compile(r"^( {0,3})(## )", re.MULTILINE)
"""A line in a message that looks like one of the export's own headings."""
_ADVICE = "Name another file, or use --force."


def to_markdown(copy: SessionCopy) -> str:
    """The whole log in order. Hidden messages say what the model sees instead."""
    replaced = describe.replacements(copy)
    compacted = list(enumerate(describe.compaction_positions(copy), 1))
    lines = [f"# {_line(describe.session_title(copy))}", ""]
    lines += [f"- {name}: {_line(value)}" for name, value in describe.session_facts(copy).items()]
    for entry in copy.entries:
        lines += _message(entry, describe.message_notes(entry, copy.pins, replaced))
        item = replaced.get(entry.seq)
        if isinstance(item, Stub):
            lines += ["", "The model sees:", "", _fenced(item.text)]
        for number, record in ((number, record) for number, (seq, record) in compacted if seq == entry.seq):
            lines += ["", "---", "", f"**Compaction {number}** · {_line(describe.compaction_line(record))}"]
            for summary in describe.new_summaries(copy, record):
                lines += ["", f"{_line(describe.summary_line(summary))}:", "", _fenced(summary.text)]
            lines += ["", "---"]
    return "\n".join(lines) + "\n"


def _message(entry: Entry, notes: list[str]) -> Iterator[str]:
    message = entry.message
    yield from ("", f"## {entry.seq} · {message.role}" + (f" ({_line(', '.join(notes))})" if notes else ""))
    if message.reasoning:
        yield from ("", "Reasoning:", "", _fenced(message.reasoning))
    if text := content_text(describe.shown_content(message)):
        is_data = message.role in ("tool", "system") or message.is_synthetic or message.attachments
        yield from ("", _fenced(text) if is_data else _with_closed_fence(text))
    for call in message.tool_calls:
        yield from ("", f"→ {_line(call.name)}", "", _fenced(call.arguments))


def _fenced(text: str) -> str:
    """The text in a fence longer than any inside it."""
    text = visible(text)
    ticks = "`" * max([3] + [len(found) + 1 for found in _BACKTICKS.findall(text)])
    return f"{ticks}\n{text}\n{ticks}"


def _with_closed_fence(text: str) -> str:
    """Markdown with its last fence closed, so that an answer that was cut off does not swallow what follows."""
    text = _FORGED_HEADING.sub(r"\1\\\2", visible(text))
    open_fence = ""
    for line in text.splitlines():
        found = _FENCE.match(line)
        if found is None:
            continue
        if not open_fence:
            open_fence = found[1]
        elif found[1].startswith(open_fence) and not found[2].strip():
            open_fence = ""
    return f"{text}\n{open_fence}" if open_fence else text


def _line(text: str) -> str:
    return " ".join(visible(text).split())


FORMATS = {
    "markdown": (".md", ".markdown"),
    "json": (".json",),
    "jsonl": (".jsonl",),
    "html": (".html", ".htm"),
}
_TEXT = (".txt", "")
"""Extensions that leave the format open: Markdown. Under any other name than these it would open nowhere."""


def format_of(asked: Sequence[str], file: str) -> str:
    """One of FORMATS: the one asked for, else by the file's extension, else Markdown. Raises UsageError.

    asked  names of formats, or their extensions: `md` is what people type for Markdown
    """
    by_extension = {known: name for name, extensions in FORMATS.items() for known in extensions}
    named = [by_extension.get(f".{name.lower().removeprefix('.')}", name.lower()) for name in asked]
    if len(set(named)) > 1:
        raise UsageError(f"--format: {' and '.join(asked)} exclude each other.")
    if named and named[0] not in FORMATS:
        raise UsageError(f"--format: {asked[0]!r} is not valid; valid: {', '.join(FORMATS)}.")
    if named:
        return named[0]
    extension = Path(file).suffix.lower()
    if extension not in (*by_extension, *_TEXT):
        valid = ", ".join((*by_extension, ".txt"))
        raise UsageError(f"{file}: nca does not write {extension} files; valid: {valid}, or any with a named format.")
    return by_extension.get(extension, "markdown")


def rendered(copy: SessionCopy, format_name: str, *, is_ascii: bool = False) -> bytes:
    """The export's bytes. `is_ascii` makes JSON safe for a terminal."""
    match format_name:
        case "json":
            return to_json(copy, is_ascii=is_ascii)
        case "jsonl":
            return to_json_lines(copy, is_ascii=is_ascii)
        case "html":
            return to_html(copy).encode()
        case _:
            return to_markdown(copy).encode()


def refuse_existing(path: Path, *, overwrites: bool = False, advice: str = _ADVICE) -> None:
    """Refuse a file that would be lost. A command that works for long, or asks a model, calls it before that.

    Raises UsageError, if the file exists and `overwrites` is False; nothing is lost in a pipe or a device.
    """
    if os.path.lexists(path) and (os.path.isdir(path) or not (overwrites or _is_stream(path))):
        raise UsageError(f"{path} already exists; nothing was written", advice="" if os.path.isdir(path) else advice)


def write_private(path: Path, data: bytes, *, overwrites: bool = False) -> None:
    """Write a file that the person named, in one step: an existing one stays intact until the new one is complete.

    A conversation may hold secrets even after redaction, so only its owner can read it.

    Raises UsageError as `refuse_existing` does, NcaError if it cannot be written.
    """
    refuse_existing(path, overwrites=overwrites)
    try:
        if _is_stream(path):
            path.write_bytes(data)
        else:
            write_atomically(path, data)
    except ValueError as error:
        raise UsageError(f"{str(path)!r} is not a valid file name.") from error
    except OSError as error:
        reason = "the disk is full" if error.errno in (errno.ENOSPC, errno.EDQUOT) else system_reason(error)
        raise NcaError(f"{path} cannot be written ({reason}).") from error


def _is_stream(path: Path) -> bool:
    return os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path))
