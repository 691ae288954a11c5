"""A session as Markdown: messages as written, tool results and summaries in fences, compactions where they happened."""

from __future__ import annotations

import re
from collections.abc import Iterator

from nca.context.view import Stub
from nca.messages import Entry
from nca.sessions.transfer import SessionCopy
from nca.transcripts.compactions import compaction_positions, new_summaries, replacements
from nca.transcripts.descriptions import (
    compaction_line,
    message_notes,
    session_facts,
    session_title,
    shown_content,
    summary_line,
)
from nca.transcripts.escaping import visible
from nca.wire import content_text

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})(.*)$")
_BACKTICKS = re.compile(r"`{3,}")
_FORGED_HEADING = re.compile(r"^( {0,3})(## )", re.MULTILINE)
"""A line in a message that looks like one of the export's own headings."""


def to_markdown(copy: SessionCopy) -> str:
    """The whole log in order. Hidden messages say what the model sees instead."""
    replaced = replacements(copy)
    compacted = compaction_positions(copy)
    lines = [f"# {_line(session_title(copy))}", ""]
    lines += [f"- {name}: {_line(value)}" for name, value in session_facts(copy).items()]
    for entry in copy.entries:
        lines += _message(entry, message_notes(entry, copy.pins, replaced))
        item = replaced.get(entry.seq)
        if isinstance(item, Stub):
            lines += ["", "The model sees:", "", _fenced(item.text)]
        for record in (record for seq, record in compacted if seq == entry.seq):
            lines += ["", "---", "", f"**Compaction {_line(record.id)}** · {_line(compaction_line(record))}"]
            for summary in new_summaries(copy, record):
                lines += ["", f"{_line(summary_line(summary))}:", "", _fenced(summary.text)]
            lines += ["", "---"]
    return "\n".join(lines) + "\n"


def _message(entry: Entry, notes: list[str]) -> Iterator[str]:
    message = entry.message
    yield from ("", f"## {entry.seq} · {message.role}" + (f" ({_line(', '.join(notes))})" if notes else ""))
    if message.reasoning:
        yield from ("", "Reasoning:", "", _fenced(message.reasoning))
    if text := content_text(shown_content(message)):
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
