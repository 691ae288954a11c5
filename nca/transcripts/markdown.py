"""A session as Markdown: what was said as it was written, tools and summaries in fences, compactions in place."""

from __future__ import annotations

import re

from nca.context.view import Stub
from nca.messages import Entry
from nca.sessions.transfer import SessionCopy
from nca.transcripts import described
from nca.transcripts.inert import visible
from nca.transcripts.moments import brought, compacted_after, standing_for
from nca.wire import content_text

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})(.*)$")
_TICKS = re.compile(r"`{3,}")
_FORGED = re.compile(r"^( {0,3})(## )", re.MULTILINE)
"""A line of somebody's text that would pass for one of our headings."""


def to_markdown(copy: SessionCopy) -> str:
    """The whole log in order; hidden messages say what stands for them."""
    standing = standing_for(copy)
    compacted = compacted_after(copy)
    lines = [f"# {_line(described.title(copy))}", ""]
    lines += [f"- {name}: {_line(value)}" for name, value in described.facts(copy).items()]
    for entry in copy.entries:
        lines += ["", *_message(entry, described.marks(entry, copy.pins, standing))]
        item = standing.get(entry.seq)
        if isinstance(item, Stub):
            lines += ["", "The model sees:", "", _fenced(item.text)]
        for seq, record in compacted:
            if seq == entry.seq:
                lines += ["", "---", "", f"**Compaction {_line(record.id)}** · {_line(described.compaction(record))}"]
                for summary in brought(copy, record):
                    lines += ["", f"{_line(described.summary_line(summary))}:", "", _fenced(summary.text)]
                lines += ["", "---"]
    return "\n".join(lines) + "\n"


def _message(entry: Entry, marks: list[str]) -> list[str]:
    message = entry.message
    said = f" ({', '.join(_line(mark) for mark in marks)})" if marks else ""
    lines = [f"## {entry.seq} · {message.role}{said}"]
    if message.reasoning:
        lines += ["", "Reasoning:", "", _fenced(message.reasoning)]
    text = content_text(message.content)
    if text:
        lines += ["", _fenced(text) if message.role in ("tool", "system") or message.attachments else _whole(text)]
    for call in message.tool_calls:
        lines += ["", f"→ {_line(call.name)}", "", _fenced(call.arguments)]
    return lines


def _fenced(text: str) -> str:
    """In a fence that is longer than any in the text."""
    text = visible(text)
    ticks = "`" * max([3] + [len(found) + 1 for found in _TICKS.findall(text)])
    return f"{ticks}\n{text}\n{ticks}"


def _whole(text: str) -> str:
    """Somebody's Markdown with its last fence closed: an answer that was cut short takes nothing else with it."""
    open_fence = ""
    for line in (text := _FORGED.sub(r"\1\\\2", visible(text))).splitlines():
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
