"""Highlight code line by line while it streams.

Pygments cannot resume where it stopped, so each piece is highlighted together with the code before it, back to a line
where no string and no comment is open. That context is bounded, so the cost is linear in the code.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions
from rich.style import Style
from rich.syntax import ANSISyntaxTheme, Syntax, SyntaxTheme
from rich.text import Text

from nca.terminal.render.layout import hung
from nca.terminal.render.theme import PALETTES, background

MAX_LINE_CHARS = 2_000
"""Code with a longer line is not highlighted: lexers with lookahead are not linear on long lines."""

CONTEXT_CHARS = 3_000
"""A longer context is cut at the next good place."""

MOST_CONTEXT_CHARS = 8_000
"""If there is no good place for this long (a string of many pages), highlighting starts afresh."""

PIECE_CHARS = 8_000
"""More code than this at once is highlighted in pieces."""

FURTHER_CELLS = 2
"""The further indent of a wrapped line, so that it does not look like two lines."""

_CLOSERS = {"/*": "*/", "<!--": "-->"}
"""Comments that many lexers recognize only when closed: while one is open, its end is added for the lexer."""

_Tokens = list[tuple[tuple[str, ...], str]]
"""Pygments' token types, which are tuples of names, and their texts."""


@dataclass(frozen=True, slots=True)
class CodeLines:
    """Code; a line wider than the window wraps indented."""

    code: Text

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        columns = options.max_width
        for line in self.code.split(allow_blank=True):
            line.expand_tabs(console.tab_size)
            yield from [line] if line.cell_len <= columns else hung(line, console, columns, further=FURTHER_CELLS)


class CodeHighlighter:
    """Highlights one code block. `add` takes finished lines, `open_line` the unfinished one."""

    def __init__(self, language: str, theme: SyntaxTheme) -> None:
        self._theme = theme
        # A tab size of 0 keeps tabs.
        self._lexer = Syntax("", language, tab_size=0).lexer if language else None
        self._context = ""

    def add(self, code: str) -> Text:
        """Highlight whole lines, joined by newlines, without a newline at the end."""
        coloured = Text()
        for piece in _pieces(code):
            coloured.append_text(self._coloured(f"{piece}\n"))
        coloured.right_crop(1)
        return coloured

    def open_line(self, code: str) -> Text:
        """Highlight the text after all lines so far, without remembering it."""
        tokens = self._tokens(self._context + code)
        return self._styled(tokens, len(self._context), len(code)) if tokens else Text(code)

    def _coloured(self, piece: str) -> Text:
        whole = self._context + piece
        tokens = self._tokens(whole)
        if tokens is None:
            self._context = ""
            return Text(piece)
        text = self._styled(tokens, len(self._context), len(piece))
        self._context = whole[_good_cut(tokens, whole) :]
        return text

    def _tokens(self, code: str) -> _Tokens | None:
        """The tokens; None if there is no lexer, or a line is too long for one."""
        if self._lexer is None or max(map(len, code.split("\n"))) > MAX_LINE_CHARS:
            return None
        closer = next((end for start, end in _CLOSERS.items() if code.rfind(start) > code.rfind(end)), "")
        tokens = list(self._lexer.get_tokens(code + closer))
        joined = "".join(text for _, text in tokens)
        # The result of a lexer that changes the text is not used.
        return tokens if joined.startswith(code) and len(joined) <= len(code) + len(closer) + 1 else None

    def _styled(self, tokens: _Tokens, start: int, length: int) -> Text:
        """The styled `length` characters from `start` on. The rest was context for the lexer."""
        parts = []
        at = -start
        for kind, text in tokens:
            if at + len(text) > 0 and at < length:
                parts.append((text[max(-at, 0) : length - at], self._theme.get_style_for_token(kind)))
            at += len(text)
        return Text.assemble(*parts)


def _pieces(code: str) -> Iterator[str]:
    """Split the code into pieces of whole lines."""
    start = 0
    while len(code) - start > PIECE_CHARS:
        end = code.rfind("\n", start, start + PIECE_CHARS)
        if end < 0 and (end := code.find("\n", start)) < 0:
            break
        yield code[start:end]
        start = end + 1
    yield code[start:]


def _good_cut(tokens: _Tokens, code: str) -> int:
    """The place where the context for the next piece may start: an unindented line outside of strings and comments."""
    if len(code) <= CONTEXT_CHARS:
        return 0
    at, found = 0, 0
    for kind, text in tokens:
        if "String" not in kind and "Comment" not in kind and "\n" in text:
            place = at + text.rfind("\n") + 1
            if place < len(code) and not code[place].isspace():
                found = place
        at += len(text)
    return found or (len(code) if len(code) > MOST_CONTEXT_CHARS else 0)


def code_theme(theme: str, environment: Mapping[str, str] = os.environ) -> SyntaxTheme:
    """The colours for the setting terminal.theme: auto, dark or light."""
    colours = PALETTES[background(theme, environment)]
    # The keys are Pygments' token types, which are tuples of names.
    styles = {
        (): Style(),
        ("Comment",): Style(dim=True, italic=True),
        ("Keyword",): Style(color=colours.keyword),
        ("Operator", "Word"): Style(color=colours.keyword),
        ("Name", "Function"): Style(color=colours.accent),
        ("Name", "Class"): Style(color=colours.accent, bold=True),
        ("Name", "Decorator"): Style(color=colours.accent),
        ("Name", "Tag"): Style(color=colours.keyword),
        ("Name", "Attribute"): Style(color=colours.accent),
        ("Literal", "Number"): Style(color=colours.notice),
        ("Literal", "String"): Style(color=colours.added),
        ("Generic", "Inserted"): Style(color=colours.added),
        ("Generic", "Deleted"): Style(color=colours.failure),
        ("Generic", "Heading"): Style(bold=True),
        ("Generic", "Subheading"): Style(color=colours.accent),
    }
    return ANSISyntaxTheme(styles)
