"""A session as one HTML file that loads nothing and runs nothing.

Every text of the session is escaped, and the page's own policy forbids scripts and external addresses, so a mistake
here could still not run anything.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from nca.context.view import Stub, Summary
from nca.messages import AttachmentPart, Entry, Message, TextPart
from nca.sessions.transfer import SessionCopy
from nca.sessions.views import CompactionRecord
from nca.transcripts.compactions import compaction_positions, new_summaries, replacements
from nca.transcripts.descriptions import (
    compaction_line,
    message_notes,
    session_facts,
    session_title,
    summary_line,
    utc_time,
)
from nca.transcripts.escaping import html_escaped
from nca.transcripts.timeline import timeline
from nca.wire import content_text, part_text

_FOLDED_CHARS = 2_000
"""Longer tool results are folded."""

_HEAD = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>
{style}</style>
</head>
<body>
"""


def to_html(copy: SessionCopy) -> str:
    """The page: facts, a chart of the context, the log with its compactions, and the usage of each request."""
    return "\n".join(_page(copy)) + "\n"


def _page(copy: SessionCopy) -> Iterator[str]:
    title = html_escaped(session_title(copy))
    style = Path(__file__).with_suffix(".css").read_text(encoding="utf-8")
    yield _HEAD.format(title=title, style=style)
    yield f"<h1>{title}</h1>\n<dl>"
    for name, value in session_facts(copy).items():
        yield f"<dt>{name}</dt><dd>{html_escaped(value)}</dd>"
    yield "</dl>"
    chart = timeline(copy)
    if chart:
        yield f"<figure>{chart}</figure>"
    yield "<main>"
    yield from _log(copy)
    yield "</main>"
    if copy.usage:
        yield from _usage(copy)
    yield "</body>\n</html>"


def _log(copy: SessionCopy) -> Iterator[str]:
    replaced = replacements(copy)
    places = {summary: place for place, summary in enumerate(map(_key, copy.summaries), 1)}
    compacted: dict[int, list[CompactionRecord]] = defaultdict(list)
    for seq, record in compaction_positions(copy):
        compacted[seq].append(record)
    shown: set[str] = set()
    for entry in copy.entries:
        item = replaced.get(entry.seq)
        yield from _message(entry, message_notes(entry, copy.pins, replaced), is_hidden=item is not None)
        if isinstance(item, Stub):
            yield _folded(f"What the model sees of message {entry.seq}", item.text)
        elif isinstance(item, Summary):
            yield f'<a href="#s{places[_key(item)]}">{html_escaped(summary_line(item))}</a>'
        yield "</article>"
        for record in compacted[entry.seq]:
            yield from _compaction(copy, record, places, shown)


def _message(entry: Entry, notes: list[str], *, is_hidden: bool) -> Iterator[str]:
    """An article that is not closed yet."""
    role = entry.message.role
    said = f' <span class="notes">{html_escaped(" · ".join(notes))}</span>' if notes else ""
    yield f'<article id="m{entry.seq}" class="{f"{role} hidden" if is_hidden else role}">'
    yield f"<h2>{entry.seq} · {role}{said}</h2>"
    yield from _content(entry.message)


def _content(message: Message) -> Iterator[str]:
    if message.reasoning:
        yield _folded("Reasoning", message.reasoning)
    if isinstance(message.content, tuple):
        for part in message.content:
            match part:
                case AttachmentPart(path=path, original_bytes=size):
                    yield _folded(f"{path} ({size:,} bytes)", part.text)
                case TextPart(text=text, is_synthetic=True):
                    yield _folded("Added by nca", text)
                case _:
                    yield _pre(part_text(part))
    elif text := content_text(message.content):
        is_long = message.role == "tool" and len(text) > _FOLDED_CHARS
        yield _folded(f"{len(text):,} characters", text) if is_long else _pre(text)
    for call in message.tool_calls:
        yield f"<p>→ <b>{html_escaped(call.name)}</b></p>{_pre(call.arguments)}"


def _compaction(copy: SessionCopy, record: CompactionRecord, places: dict[str, int], shown: set[str]) -> Iterator[str]:
    yield f'<section id="c{record.view_after}" class="compaction">'
    yield f"<h2>Compaction {html_escaped(record.id)} · {utc_time(record.at)}</h2>"
    yield f"<p>{html_escaped(compaction_line(record))}</p>"
    for summary in new_summaries(copy, record):
        key = _key(summary)
        # An id may occur once on a page. A summary that came back after an undo is already on it.
        anchor = "" if key in shown else f' id="s{places[key]}"'
        shown.add(key)
        links = ", ".join(f'<a href="#m{first}">{first}–{last}</a>' for first, last in summary.ranges)
        yield f"<details{anchor}><summary>{html_escaped(summary_line(summary))}</summary>"
        yield f"<p>covers {links}</p>{_pre(summary.text)}</details>"
    yield "</section>"


def _usage(copy: SessionCopy) -> Iterator[str]:
    yield "<details><summary>Usage of each request</summary><table>"
    yield "<tr><th>after message</th><th>model</th><th>in</th><th>cached</th><th>out</th><th>cost</th></tr>"
    for row in copy.usage:
        used = row.usage
        cost = f"${used.cost:.4f}" if used.cost is not None else "?"
        counts = (used.prompt_tokens, used.cache_read_tokens, used.completion_tokens)
        cells = "".join(f"<td>{count:,}</td>" for count in counts)
        yield f"<tr><td>{row.seq}</td><td>{html_escaped(row.model)}</td>{cells}<td>{cost}</td></tr>"
    yield "</table></details>"


def _folded(label: str, text: str) -> str:
    return f"<details><summary>{html_escaped(label)}</summary>{_pre(text)}</details>"


def _pre(text: str) -> str:
    # HTML parsers drop a newline right after <pre>.
    return f"<pre>\n{html_escaped(text)}</pre>"


def _key(summary: Summary) -> str:
    """Identifies a summary: two views may use one id for different summaries."""
    return f"{summary.id}\0{summary.ranges}\0{summary.text}"
