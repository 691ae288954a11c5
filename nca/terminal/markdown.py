"""One block of a model's Markdown as a Rich renderable: nothing hidden, nothing clickable, nothing unsafe.

What differs from Rich's own: link targets stand in clear instead of in an escape code; HTML is shown, not dropped;
characters that Markdown's entities bring in (`&#x202e;`) pass the sanitizer too; code has no padding, so that
it can be selected and copied.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import ClassVar

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.console import Console, ConsoleOptions, JustifyMethod, RenderableType, RenderResult
from rich.markdown import CodeBlock, Heading, Markdown, MarkdownElement
from rich.segment import Segment
from rich.syntax import Syntax, SyntaxTheme
from rich.text import Text

from nca.terminal.markdown_blocks import Block
from nca.terminal.sanitize import to_terminal

MAX_HIGHLIGHT_CHARS = 30_000
MAX_HIGHLIGHT_LINE_CHARS = 2_000
"""Larger code is drawn without colours: lexers with lookahead are not linear on long lines."""

_parser = MarkdownIt("commonmark", {"html": False}).enable("strikethrough").enable("table")


def render_block(block: Block, theme: SyntaxTheme) -> RenderableType:
    """What draws one block; its text is already safe for the terminal."""
    match block.kind:
        case "code":
            return highlight(block.text, block.language, theme)
        case "plain":
            return Text(block.text)
        case _:
            return _Trimmed(ClearMarkdown(block.text, theme))


def highlight(code: str, language: str, theme: SyntaxTheme) -> Text:
    """Code in colours, without padding or background; plain where it is too large for a lexer."""
    longest = max((len(line) for line in code.split("\n")), default=0)
    if not language or len(code) > MAX_HIGHLIGHT_CHARS or longest > MAX_HIGHLIGHT_LINE_CHARS:
        return Text(code)
    syntax = Syntax(code, language, theme=theme)
    if syntax.lexer is None:
        return Text(code)
    # Lexers drop blank lines at the ends; the plain text is what counts.
    text = syntax.highlight(code)
    leading = len(code) - len(code.lstrip("\n"))
    text.rstrip()
    result = Text("\n" * leading) + text
    result.append(code[len(result.plain) :])
    return result if result.plain == code else Text(code)


class _Trimmed:
    """A renderable without the empty lines around it and the blanks that fill its lines up."""

    def __init__(self, inside: RenderableType) -> None:
        self._inside = inside

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        lines = [_without_padding(line) for line in console.render_lines(self._inside, options, pad=False)]
        while lines and not lines[-1]:
            lines.pop()
        is_leading = True
        for line in lines:
            is_leading = is_leading and not line
            if not is_leading:
                yield from line
                yield Segment.line()


def _without_padding(line: list[Segment]) -> list[Segment]:
    kept = list(line)
    while kept and not kept[-1].text.strip(" "):
        kept.pop()
    if kept and kept[-1].text.endswith(" "):
        last = kept.pop()
        kept.append(Segment(last.text.rstrip(" "), last.style, last.control))
    return kept


class _Code(CodeBlock):
    @classmethod
    def create(cls, markdown: Markdown, token: Token) -> _Code:
        element = cls(token.info.partition(" ")[0], "")
        assert isinstance(markdown, ClearMarkdown)
        element.syntax_theme = markdown.syntax_theme
        return element

    syntax_theme: SyntaxTheme

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield highlight(str(self.text).rstrip("\n"), self.lexer_name, self.syntax_theme)


class _Heading(Heading):
    LEVEL_ALIGN: ClassVar[dict[str, JustifyMethod]] = {}


class ClearMarkdown(Markdown):
    """Markdown with everything in clear."""

    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "fence": _Code,
        "code_block": _Code,
        "heading_open": _Heading,
    }
    inlines: ClassVar[set[str]] = {*Markdown.inlines, "link", "link_url"}  # type: ignore[misc]  # Rich's is not annotated

    def __init__(self, markup: str, syntax_theme: SyntaxTheme) -> None:
        super().__init__("", hyperlinks=False)
        self.markup = markup
        self.syntax_theme = syntax_theme
        self.parsed = list(_in_clear(_parser.parse(markup)))


def _in_clear(tokens: Iterable[Token]) -> Iterator[Token]:
    """The same tokens, with safe text, and with links and images as text and target."""
    open_links: list[tuple[str, list[str]]] = []
    for token in tokens:
        token.content = to_terminal(token.content)
        token.info = to_terminal(token.info)
        if open_links:
            open_links[-1][1].append(token.content)
        match token.type:
            case "link_open":
                open_links.append((to_terminal(str(token.attrs.get("href", ""))), []))
                yield Token("link_text_open", "link", 1)
            case "link_close":
                target, shown = open_links.pop()
                yield Token("link_text_close", "link", -1)
                if "".join(shown) not in (target, target.removeprefix("mailto:")):
                    yield from _target(target)
            case "image":
                yield Token("text", "", 0, content=f"image: {token.content}".rstrip(": "))
                yield from _target(to_terminal(str(token.attrs.get("src", ""))))
            case _:
                if token.children:
                    token.children = list(_in_clear(token.children))
                yield token


def _target(address: str) -> Iterator[Token]:
    yield Token("text", "", 0, content=" (")
    yield Token("link_url_open", "link_url", 1)
    yield Token("text", "", 0, content=address)
    yield Token("link_url_close", "link_url", -1)
    yield Token("text", "", 0, content=")")
