"""A session as one HTML file: nothing is loaded, nothing runs, every text of the session is escaped.

The page's own policy forbids scripts and any address, so that even a mistake here could not make a text act.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from nca.context.view import Stub, Summary
from nca.messages import AttachmentPart, Entry, Message, TextPart
from nca.sessions.transfer import SessionCopy
from nca.sessions.views import CompactionRecord
from nca.transcripts import described
from nca.transcripts.inert import escaped
from nca.transcripts.moments import brought, compacted_after, standing_for
from nca.transcripts.timeline import timeline
from nca.wire import content_text, part_text

_FOLDED_CHARS = 2_000
"""A tool's result that is longer opens with a click."""

_HEAD = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>
{style}
</style>
</head>
<body>
"""

_STYLE = """:root { --text: #1b1f24; --back: #fff; --soft: #f3f5f7; --line: #d5dae0; --accent: #0b62c4;
  --mark: #b35900; --fixed: #c9b8e8; --told: #f2cf87; --facts: #e0a93b; --talk: #9ed3dc; --calls: #a9c1ee;
  --results: #6d95dd; --files: #e8a7a1 }
@media (prefers-color-scheme: dark) {
  :root { --text: #e6e8ea; --back: #14171a; --soft: #1e2327; --line: #363d44; --accent: #6cb0ff; --mark: #f0a04b;
    --fixed: #5b4a80; --told: #7d6426; --facts: #a37b1c; --talk: #256a75; --calls: #304a80; --results: #3f66b3;
    --files: #8a4640 }
}
body { font: 15px/1.5 system-ui, sans-serif; color: var(--text); background: var(--back); max-width: 60rem;
  margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.4rem } h2 { font-size: .95rem; margin: 0 0 .4rem } dt { font-weight: 600 } a { color: var(--accent) }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem } dd { margin: 0; overflow-wrap: anywhere }
article, section { border: 1px solid var(--line); border-radius: .4rem; padding: .7rem 1rem; margin: .8rem 0 }
article.user { border-left: 4px solid var(--accent) } article.tool { background: var(--soft) }
article.hidden { border-style: dashed } article.hidden > pre { opacity: .65 }
section.compaction { border-color: var(--mark); background: var(--soft) }
.says { font-weight: 400; color: var(--mark) }
pre { white-space: pre-wrap; overflow-wrap: anywhere; font: 13px/1.45 ui-monospace, monospace; margin: .3rem 0 }
svg { width: 100%; height: auto; font: 11px system-ui, sans-serif; fill: var(--text) }
svg .k { stroke: var(--back); stroke-width: .5 } svg .fixed { fill: var(--fixed) } svg .summaries { fill: var(--told) }
svg .ledger { fill: var(--facts) } svg .conversation { fill: var(--talk) } svg .tool_calls { fill: var(--calls) }
svg .tool_results { fill: var(--results) } svg .attachments { fill: var(--files) }
svg .line { fill: none; stroke: var(--accent); stroke-width: 1.5 } svg .axis { stroke: var(--line) }
svg .mark line { stroke: var(--mark); stroke-dasharray: 3 3 } svg .mark circle { fill: var(--mark) }
svg .mark.undone circle { fill: var(--back); stroke: var(--mark) } svg .mark.undone line { opacity: .4 }
table { border-collapse: collapse; font-size: .85rem } td, th { padding: .1rem .7rem; text-align: right }"""


def to_html(copy: SessionCopy) -> str:
    """The page: facts, the context as a picture, the log with its compactions, the calls."""
    return "\n".join(_parts(copy)) + "\n"


def _parts(copy: SessionCopy) -> Iterator[str]:
    title = escaped(described.title(copy))
    yield _HEAD.format(title=title, style=_STYLE)
    yield f"<h1>{title}</h1>\n<dl>"
    for name, value in described.facts(copy).items():
        yield f"<dt>{name}</dt><dd>{escaped(value)}</dd>"
    yield "</dl>"
    picture = timeline(copy)
    if picture:
        yield f"<figure>{picture}</figure>"
    yield "<main>"
    yield from _log(copy)
    yield "</main>"
    if copy.usage:
        yield from _calls(copy)
    yield "</body>\n</html>"


def _log(copy: SessionCopy) -> Iterator[str]:
    standing = standing_for(copy)
    places = {summary: place for place, summary in enumerate(map(_key, copy.summaries), 1)}
    compacted: dict[int, list[CompactionRecord]] = defaultdict(list)
    for seq, record in compacted_after(copy):
        compacted[seq].append(record)
    shown: set[str] = set()
    for entry in copy.entries:
        item = standing.get(entry.seq)
        yield _message(entry, described.marks(entry, copy.pins, standing), is_hidden=item is not None)
        if isinstance(item, Stub):
            yield f"<details><summary>What the model sees of message {entry.seq}</summary>{_pre(item.text)}</details>"
        elif isinstance(item, Summary):
            yield f'<a href="#s{places[_key(item)]}">{escaped(described.summary_line(item))}</a>'
        yield "</article>"
        for record in compacted[entry.seq]:
            yield from _compaction(copy, record, places, shown)


def _message(entry: Entry, marks: list[str], *, is_hidden: bool) -> str:
    """An article that is still open."""
    message = entry.message
    says = f' <span class="says">{escaped(" · ".join(marks))}</span>' if marks else ""
    kind = f"{message.role} hidden" if is_hidden else message.role
    head = f'<article id="m{entry.seq}" class="{kind}">\n<h2>{entry.seq} · {message.role}{says}</h2>'
    return "\n".join([head, *_content(message)])


def _content(message: Message) -> Iterator[str]:
    if message.reasoning:
        yield f"<details><summary>Reasoning</summary>{_pre(message.reasoning)}</details>"
    if isinstance(message.content, tuple):
        for part in message.content:
            match part:
                case AttachmentPart(path=path, original_bytes=size):
                    yield _folded(f"{path} ({size:,} bytes)", part.text)
                case TextPart(text=text, is_synthetic=True):
                    yield _folded("Added by nca", text)
                case _:
                    yield _pre(part_text(part))
    else:
        text = content_text(message.content)
        if message.role == "tool" and len(text) > _FOLDED_CHARS:
            yield _folded(f"{len(text):,} characters", text)
        elif text:
            yield _pre(text)
    for call in message.tool_calls:
        yield f"<p>→ <b>{escaped(call.name)}</b></p>{_pre(call.arguments)}"


def _compaction(copy: SessionCopy, record: CompactionRecord, places: dict[str, int], shown: set[str]) -> Iterator[str]:
    number = record.view_after
    yield f'<section id="c{number}" class="compaction">'
    yield f"<h2>Compaction {escaped(record.id)} · {described.when(record.at)}</h2>"
    yield f"<p>{escaped(described.compaction(record))}</p>"
    for summary in brought(copy, record):
        key = _key(summary)
        # An id once on a page: a summary that came back after an undo is the one that stands above.
        anchor = "" if key in shown else f' id="s{places[key]}"'
        shown.add(key)
        links = ", ".join(f'<a href="#m{first}">{first}–{last}</a>' for first, last in summary.ranges)
        yield f"<details{anchor}><summary>{escaped(described.summary_line(summary))}</summary>"
        yield f"<p>covers {links}</p>{_pre(summary.text)}</details>"
    yield "</section>"


def _calls(copy: SessionCopy) -> Iterator[str]:
    yield "<details><summary>Usage of each call</summary><table>"
    yield "<tr><th>after message</th><th>model</th><th>in</th><th>cached</th><th>out</th><th>cost</th></tr>"
    for row in copy.usage:
        used = row.usage
        cost = f"${used.cost:.4f}" if used.cost is not None else "?"
        numbers = (used.prompt_tokens, used.cache_read_tokens, used.completion_tokens)
        cells = "".join(f"<td>{number:,}</td>" for number in numbers)
        yield f"<tr><td>{row.seq}</td><td>{escaped(row.model)}</td>{cells}<td>{cost}</td></tr>"
    yield "</table></details>"


def _folded(label: str, text: str) -> str:
    return f"<details><summary>{escaped(label)}</summary>{_pre(text)}</details>"


def _pre(text: str) -> str:
    # A parser drops a newline right behind <pre>.
    return f"<pre>\n{escaped(text)}</pre>"


def _key(summary: Summary) -> str:
    return f"{summary.id}\0{summary.ranges}\0{summary.text}"
