"""Texts of a session as inert HTML (Markdown, highlighted code, text as written), and stored text made safe for files.

Markdown gives no HTML of its own, no pictures, and links to the web and to mail addresses only; what it may not give is
shown as written. A link shows its address, because its text may name another.
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from rich.syntax import Syntax

from nca.messages import clean_text
from nca.visible import HIDING

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
"""The parts of names of Pygments' token types that html_page.css has a colour for."""


def plain(text: str) -> str:
    # HTML parsers drop a newline right after <pre>.
    return f"<pre>\n{html_escaped(text)}</pre>"


def code(text: str, language: str = "") -> str:
    """Code in a box. `language`: a name or an extension that Pygments knows; others, and "", give no colours."""
    return f"<pre><code>{_highlighted(visible(text).rstrip(chr(10)), language)}</code></pre>"


def prose(text: str) -> str:
    """Markdown as HTML. Text that is too long or nests too deeply is shown as written."""
    if len(text) > MOST_MARKDOWN_CHARS:
        return plain(text)
    tokens = _parser.parse(visible(text))
    # The parser drops what nests deeper than it goes.
    if any(token.level >= _MAX_NESTING - 1 for token in tokens):
        return plain(text)
    for token in tokens:
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
