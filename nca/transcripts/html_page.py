"""A session as one HTML file that loads nothing and runs nothing.

Every text of the session is escaped, and the page's own policy forbids scripts and external addresses, so a mistake
here could still not run anything.

Markdown gives no HTML of its own, no pictures, and links to the web and to mail addresses only; what it may not give is
shown as written. A link shows its address, because its text may name another.
"""

from __future__ import annotations

import html
import json
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path, PurePath
from typing import Literal

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from rich.syntax import Syntax

from nca.context.view import Stub, Summary
from nca.humanize import HIDING
from nca.messages import AttachmentPart, Entry, Message, TextPart, clean_text
from nca.sessions.transfer import SessionCopy
from nca.sessions.views import CompactionRecord
from nca.transcripts import descriptions as describe
from nca.transcripts.timeline import timeline
from nca.wire import content_text, part_text

_FOLDED_CHARS = 2_000
"""Longer tool results are folded."""
_LONG_CHARS, _LONG_LINES = 12_000, 200
"""Whatever else is longer is folded too: who reads the page wants to get past it."""
_LISTED = 8
"""More compactions are folded above the first message."""
_FIRST_CHARS = 80

_SHOWN = "shown"
"""Stands for the messages that nothing replaces."""


def to_html(copy: SessionCopy) -> str:
    """The page: facts, a chart of the context with its compactions, the log, and the usage of each request."""
    return "\n".join(_page(copy)) + "\n"


def page_head(title: str, facts: Mapping[str, str]) -> Iterator[str]:
    """The page from its first line to the facts at its top."""
    head = Path(__file__).with_suffix(".html").read_text(encoding="utf-8")
    yield head.replace("{title}", html_escaped(title), 1)
    yield f'<h1 dir="auto">{html_escaped(title)}</h1>\n<dl>'
    for name, value in facts.items():
        yield f"<dt>{name}</dt><dd>{html_escaped(value)}</dd>"
    yield "</dl>"


def _page(copy: SessionCopy) -> Iterator[str]:
    yield from page_head(describe.session_title(copy), describe.session_facts(copy))
    compactions = describe.compaction_positions(copy)
    if chart := timeline(copy):
        yield f"<figure>{chart}</figure>"
    if compactions:
        rows = [
            f'<li><a href="#c{one.view_after}">{number}</a> {html_escaped(describe.compaction_line(one))}</li>'
            for number, (_, one) in enumerate(compactions, 1)
        ]
        listed = f"<ul>\n{chr(10).join(rows)}\n</ul>"
        yield listed if len(rows) <= _LISTED else _folded(f"{len(rows):,} compactions", listed)
    yield "<main>"
    yield from _Log(copy, compactions).drawn()
    yield "</main>"
    if copy.usage:
        yield from _usage(copy)
    yield "</body>\n</html>"


class _Log:
    """The messages in order, with the compactions between them. What the model no longer sees is folded."""

    def __init__(self, copy: SessionCopy, compactions: Iterable[tuple[int, CompactionRecord]]) -> None:
        self._copy = copy
        self._replaced = describe.replacements(copy)
        self._places = {summary: place for place, summary in enumerate(map(_key, copy.summaries), 1)}
        self._shown: set[str] = set()
        self._compacted: dict[int, list[tuple[int, CompactionRecord]]] = defaultdict(list)
        for number, (seq, record) in enumerate(compactions, 1):
            self._compacted[seq].append((number, record))

    def drawn(self) -> Iterator[str]:
        for item, run in groupby(self._copy.entries, lambda entry: self._replaced.get(entry.seq, _SHOWN)):
            entries = list(run)
            if isinstance(item, (str, Stub)):
                yield from self._messages(entries)
                continue
            messages = describe.range_text(((entries[0].seq, entries[-1].seq),)).capitalize()
            label = html_escaped(f"{messages} · {describe.replaced_line(item)}")
            yield f'<details class="folded"><summary>{label}</summary>'
            if isinstance(item, Summary):
                yield self._summary(item, "open")
            elif item is not None and item.text:
                yield plain(item.text)
            yield from self._messages(entries)
            yield "</details>"

    def _messages(self, entries: Iterable[Entry]) -> Iterator[str]:
        for entry in entries:
            item = self._replaced.get(entry.seq)
            yield from _message(entry, self._copy.pins, item if isinstance(item, Stub) else None)
            for number, record in self._compacted[entry.seq]:
                yield f'<section id="c{record.view_after}">'
                yield f"<h2>Compaction {number} · {describe.utc_time(record.at)}</h2>"
                yield f"<p>{html_escaped(describe.compaction_line(record))}</p>"
                for summary in describe.new_summaries(self._copy, record):
                    yield self._summary(summary)
                yield "</section>"

    def _summary(self, summary: Summary, state: Literal["", "open"] = "") -> str:
        """The summary; a link to it where the page has it already: one in force stands with what it replaces."""
        key = _key(summary)
        line = html_escaped(describe.summary_line(summary))
        if key in self._shown:
            return f'<p><a href="#s{self._places[key]}">{line}</a></p>'
        self._shown.add(key)
        links = ", ".join(f'<a href="#m{first}">{first}–{last}</a>' for first, last in summary.ranges)
        return (
            f'<details id="s{self._places[key]}" {state}><summary>{line}</summary>'
            f"<p>covers {links}</p>{prose(summary.text)}</details>"
        )


def _message(entry: Entry, pins: Collection[int], stub: Stub | None) -> Iterator[str]:
    role = entry.message.role
    notes = describe.message_notes(entry, pins, {entry.seq: stub} if stub else None)
    said = f' <span class="notes">{html_escaped(" · ".join(notes))}</span>' if notes else ""
    heading = f"<h2>{entry.seq} · {role}{said}</h2>"
    yield f'<article id="m{entry.seq}" class="{role}">'
    if stub:
        yield f"<details><summary>{heading}</summary>{plain(stub.text)}"
        yield from _content(entry.message)
        yield "</details>"
    else:
        yield heading
        yield from _content(entry.message)
    yield "</article>"


def _content(message: Message) -> Iterator[str]:
    written = prose if message.role == "assistant" else plain
    if message.reasoning:
        yield _folded("Reasoning", prose(message.reasoning))
    content = describe.shown_content(message)
    if isinstance(content, tuple):
        for part in content:
            match part:
                case AttachmentPart(path=path, original_bytes=size):
                    yield _folded(f"{path} ({size:,} bytes)", code(part.text, _extension(path)))
                case TextPart(text=text, source="nca"):
                    yield _folded("Added by nca", plain(text))
                case _:
                    yield _unless_long(part_text(part), written)
    elif text := content_text(content):
        is_long = message.role == "tool" and len(text) > _FOLDED_CHARS
        yield _folded(f"{len(text):,} characters", plain(text)) if is_long else _unless_long(text, written)
    for call in message.tool_calls:
        yield f"<p>→ <b>{html_escaped(call.name)}</b></p>{_arguments(call.arguments)}"


def _arguments(text: str) -> str:
    """A call's arguments. A value of several lines has a box of its own, as code of the file that the call names."""
    try:
        given = json.loads(text)
        blocks = {name: value for name, value in given.items() if isinstance(value, str) and "\n" in value}
        rest = json.dumps({name: value for name, value in given.items() if name not in blocks}, ensure_ascii=False)
    except (ValueError, AttributeError, RecursionError):
        return plain(text)
    if not blocks:
        return code(text, "json")
    language = _extension(str(given.get("path", "")))
    shown = (_unless_long(blocks[name], lambda text: code(text, language)) for name in blocks)
    return code(rest, "json") + "".join(
        f"<p>{html_escaped(name)}</p>{one}" for name, one in zip(blocks, shown, strict=True)
    )


def _extension(path: str) -> str:
    return PurePath(path).suffix.removeprefix(".")


def _usage(copy: SessionCopy) -> Iterator[str]:
    yield "<details><summary>Usage of each request</summary><table>"
    yield "<tr><th>after message</th><th>model</th><th>in</th><th>cached</th><th>out</th><th>cost</th></tr>"
    for row in copy.usage:
        used = row.usage
        cost = f"${used.cost:.4f}" if used.cost is not None else "?"
        counts = (used.prompt_tokens, used.cache_read_tokens, used.completion_tokens)
        cells = "".join(f"<td>{count:,}</td>" for count in counts)
        after = describe.REQUESTS.get(row.seq, f"{row.seq:,}")
        yield f"<tr><td>{after}</td><td>{html_escaped(row.model)}</td>{cells}<td>{cost}</td></tr>"
    yield "</table></details>"


def _unless_long(text: str, written: Callable[[str], str]) -> str:
    """The text as `written` draws it; a long one folded after its first words and its size."""
    lines = text.count("\n") + 1
    if len(text) <= _LONG_CHARS and lines <= _LONG_LINES:
        return written(text)
    first = next((line.strip() for line in text.splitlines() if line.strip()), "")
    label = first if len(first) <= _FIRST_CHARS else f"{first[: _FIRST_CHARS - 1]}…"
    return _folded(f"{label} · {lines:,} lines, {len(text):,} characters", written(text))


def _folded(label: str, content: str) -> str:
    return f"<details><summary>{html_escaped(label)}</summary>{content}</details>"


def _key(summary: Summary) -> str:
    """Identifies a summary: two views may use one id for different summaries."""
    return f"{summary.id}\0{summary.ranges}\0{summary.text}"


_CONTROLS = re.compile(f"\r\n?|[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f{HIDING}]")
_CONTROL_PICTURES = 0x2400
"""The first of Unicode's pictures of control characters (U+2400, for NUL)."""


def visible(text: str) -> str:
    """The text with control characters, and those that reorder or hide text, made visible. Newlines and tabs stay."""
    return _CONTROLS.sub(_picture, clean_text(text))


def html_escaped(text: str) -> str:
    """`visible` text, escaped for HTML content and quoted attributes."""
    return html.escape(visible(text), quote=True)


def _picture(found: re.Match[str]) -> str:
    char = found[0]
    if char == "\r\n":
        return "\n"
    if char < " ":
        return chr(_CONTROL_PICTURES + ord(char))
    return "␡" if char == "\x7f" else f"<U+{ord(char):04X}>"


MOST_MARKDOWN_CHARS = 100_000
"""Longer text is shown as written: hostile brackets cost the parser 20 µs a character."""

MOST_CODE_CHARS, MOST_LINE_CHARS = 20_000, 2_000
"""Longer code, or code with a longer line, has no colours: lexers with lookahead are not linear."""

_MAX_NESTING = 20
_SAFE_LINK = re.compile(r"(?:https?://|mailto:)", re.IGNORECASE)
_COLOURED = frozenset(
    {"Comment", "Keyword", "Word", "String", "Number", "Function", "Class", "Decorator", "Tag", "Attribute"}
    | {"Inserted", "Deleted", "Heading", "Subheading"}
)
"""The parts of names of Pygments' token types that html_page.html has a colour for."""


def plain(text: str) -> str:
    # HTML parsers drop a newline right after <pre>.
    return f'<pre dir="auto">\n{html_escaped(text)}</pre>'


def code(text: str, language: str = "") -> str:
    """Code in a box. `language`: a name or an extension that Pygments knows; others, and "", give no colours."""
    return f"<pre><code>{_highlighted(visible(text).rstrip(chr(10)), language)}</code></pre>"


def prose(text: str) -> str:
    """Markdown as HTML. Text that is too long or nests too deeply is shown as written, and so are marks alone."""
    if len(text) > MOST_MARKDOWN_CHARS:
        return plain(text)
    tokens = _parser.parse(visible(text))
    has_content = any(token.content or token.type in ("hr", "list_item_open") for token in tokens)
    # The parser drops what nests deeper than it goes.
    if not has_content or any(token.level >= _MAX_NESTING - 1 for token in tokens):
        return plain(text)
    for token in tokens:
        if token.nesting == 1:
            token.attrSet("dir", "auto")
        if token.type in ("heading_open", "heading_close"):
            # Those of the page itself are h1 and h2.
            token.tag = f"h{min(int(token.tag[1]) + 2, 6)}"
    return f'<div class="prose">{_parser.renderer.render(tokens, _parser.options, {})}</div>'


class _Parser(MarkdownIt):
    def validateLink(self, url: str) -> bool:  # noqa: N802  # The name is the parser's.
        return _SAFE_LINK.match(url) is not None


class _Renderer(RendererHTML):
    """A method for each kind of token that differs from the parser's own."""

    def text(self, tokens: Sequence[Token], idx: int, *_: object) -> str:
        # Entities may have become control characters.
        return html_escaped(tokens[idx].content)

    def fence(self, tokens: Sequence[Token], idx: int, *_: object) -> str:
        return code(tokens[idx].content, (tokens[idx].info.split() or [""])[0])

    def code_block(self, tokens: Sequence[Token], idx: int, *_: object) -> str:
        return code(tokens[idx].content)

    def link_open(self, tokens: Sequence[Token], idx: int, *_: object) -> str:
        address = str(tokens[idx].attrs["href"])
        if not address:
            # The parser does not ask about `[words]()`.
            return "<a>"
        # The page shows the title behind the link.
        title = "" if tokens[idx + 1].content == address else f' title="{html_escaped(address)}"'
        return f'<a href="{html_escaped(address)}" rel="noreferrer"{title}>'


# References would hide their targets. A picture would be loaded; without the rule it is a link after a "!".
_parser = (
    _Parser("commonmark", {"html": False, "maxNesting": _MAX_NESTING}, renderer_cls=_Renderer)
    .enable(["strikethrough", "table"])
    .disable(["reference", "image"])
)


def _highlighted(text: str, language: str) -> str:
    # A tab size of 0 keeps tabs.
    lexer = Syntax("", language, tab_size=0).lexer if language and len(text) <= MOST_CODE_CHARS else None
    if lexer is None or max(map(len, text.split("\n"))) > MOST_LINE_CHARS:
        return html.escape(text)
    tokens = list(lexer.get_tokens(text))
    # The result of a lexer that changes the text is not used.
    if "".join(piece for _, piece in tokens) != f"{text}\n":
        return html.escape(text)
    return "".join(_coloured(kind, html.escape(piece)) for kind, piece in tokens).removesuffix("\n")


def _coloured(kind: tuple[str, ...], escaped: str) -> str:
    """`kind`: a token type of Pygments, which is a tuple of names from the general to the special."""
    name = next((name for name in reversed(kind) if name in _COLOURED), "")
    return f'<span class="{name.lower()}">{escaped}</span>' if name else escaped
