"""Render a model's Markdown with Rich, while it streams: nothing hidden, nothing clickable, nothing unsafe.

It differs from Rich's own Markdown: link targets are shown as text instead of in an escape code. HTML, references,
deeply nested text and all text of table cells are shown, not dropped. Characters from entities (`&#x202e;`) are
sanitized too. Code has no padding, so that it can be selected and copied.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import dropwhile, zip_longest
from typing import ClassVar

from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, JustifyMethod, RenderableType, RenderResult
from rich.markdown import CodeBlock, Heading, ListElement, ListItem, Markdown, MarkdownElement, TableElement
from rich.segment import Segment
from rich.syntax import SyntaxTheme
from rich.table import Table
from rich.text import Text

from nca.terminal.render.code_highlighter import CodeHighlighter, CodeLines
from nca.terminal.render.markdown_blocks import Block, BlockSplitter
from nca.terminal.render.sanitize import StreamSanitizer, to_terminal

MAX_DEPTH = 12
"""Lists and quotes nested deeper than this are shown as source text."""

LEAST_COLUMNS = 12
"""Nested text needs at least this much room; otherwise it is shown as source text."""

MOST_CELL_CHARS = 12
"""A table column must fit this much of its longest word; otherwise the rows are shown as lines."""

_NAME = re.compile(r"__\w{1,80}?__(?!\w)")


def _name(state: StateInline, silent: bool) -> bool:
    """A word between double underscores is a name, such as `__init__`. As strong text it would lose them."""
    found = _NAME.match(state.src, state.pos)
    if found is None:
        return False
    if not silent:
        state.pending += found[0]
    state.pos = found.end()
    return True


# References would hide their targets, and may be defined in another block. The parser drops text deeper than
# maxNesting, so that must be over two token levels for each of MAX_DEPTH. The cost of many open brackets grows with it.
_parser = (
    MarkdownIt("commonmark", {"html": False, "maxNesting": 2 * MAX_DEPTH + 4})
    .enable("strikethrough")
    .enable("table")
    .disable("reference")
)
_parser.inline.ruler.before("emphasis", "name", _name)


def render_block(block: Block, theme: SyntaxTheme) -> RenderableType:
    """The renderable for one block. Its text is already safe for the terminal."""
    match block.kind:
        case "code":
            drawn: RenderableType = CodeLines(CodeHighlighter(block.language, theme).add(block.text))
        case "plain":
            drawn = Text(block.text)
        case _:
            drawn = _Markdown(block.text, theme, block.number)
    return indented(drawn, block)


def indented(drawn: RenderableType, block: Block) -> RenderableType:
    """The renderable, indented to the list item that the block belongs to."""
    # Rich draws bullets one column further to the right than they are written.
    return _Indented(drawn, block.indent + 1) if block.indent else drawn


class _Indented:
    def __init__(self, inside: RenderableType, columns: int) -> None:
        self._inside = inside
        self._columns = columns

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        columns = min(self._columns, options.max_width // 3)
        narrower = options.update(width=max(options.max_width - columns, 1))
        for line in console.render_lines(self._inside, narrower, pad=False):
            if any(segment.text for segment in line):
                yield Segment(" " * columns)
                yield from line
            yield Segment.line()


class _Markdown:
    """Markdown without the empty lines around it and without padding at the ends of lines. Marks alone, such as `#`,
    stay as they are."""

    def __init__(self, text: str, theme: SyntaxTheme, number: int) -> None:
        self._text = text
        self._inside = ClearMarkdown(text, theme, number)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        depth = self._inside.depth
        inside: RenderableType = self._inside
        if depth > MAX_DEPTH or (depth > 0 and options.max_width < 4 * depth + LEAST_COLUMNS):
            inside = Text(self._text)
        yield from _trimmed(console.render_lines(inside, options, pad=False)) or _trimmed(
            console.render_lines(Text(self._text), options, pad=False)
        )


def _trimmed(rendered: list[list[Segment]]) -> list[Segment]:
    lines = [_without_padding(line) for line in rendered]
    while lines and not lines[-1]:
        lines.pop()
    return [part for line in dropwhile(lambda line: not line, lines) for part in (*line, Segment.line())]


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
        yield CodeLines(CodeHighlighter(self.lexer_name, self.syntax_theme).add(str(self.text).rstrip("\n")))


class _Heading(Heading):
    LEVEL_ALIGN: ClassVar[dict[str, JustifyMethod]] = {}


class _Item(ListItem):
    """`written`: the number of an item of a numbered list, as it was written."""

    written: str

    @classmethod
    def create(cls, markdown: Markdown, token: Token) -> _Item:
        item = cls()
        item.written = token.info
        return item


class _List(ListElement):
    """Numbers as written (1. 1. 1. as 1. 2. 3.), in a column of fixed width, because items are drawn one by one."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if self.list_type == "bullet_list_open":
            yield from super().__rich_console__(console, options)
            return
        style = console.get_style("markdown.item.number", default="none")
        number, before = 1 if self.list_start is None else self.list_start, ""
        for item in self.items:
            assert isinstance(item, _Item)
            if before:
                number = number + 1 if item.written == before else int(item.written)
            before = item.written
            mark = f"{number:>2}. "
            narrower = options.update(width=max(options.max_width - len(mark), 1))
            for index, line in enumerate(console.render_lines(item.elements, narrower, style=item.style)):
                yield Segment(" " * len(mark) if index else mark, style)
                yield from line
                yield Segment.line()


class _Table(TableElement):
    """A table that never cuts its cells. In a window too narrow for it, each row is shown as lines."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        heads = [cell.content for cell in self.header.row.cells] if self.header and self.header.row else []
        rows = [[cell.content for cell in row.cells] for row in self.body.rows] if self.body else []
        columns = list(zip_longest(heads, *rows, fillvalue=Text()))
        least = sum(max(_least_width(cell) for cell in column) + 2 for column in columns)
        if least > options.max_width:
            yield from _as_lines(heads, rows)
            return
        table = Table(
            box=box.SIMPLE, pad_edge=False, style="markdown.table.border", show_edge=True, collapse_padding=True
        )
        for head in heads:
            table.add_column(head, header_style="markdown.table.header", overflow="fold")
        for row in rows:
            table.add_row(*row)
        yield table


def _least_width(cell: Text) -> int:
    return min(max(map(cell_len, cell.plain.split()), default=0), MOST_CELL_CHARS)


def _as_lines(heads: list[Text], rows: list[list[Text]]) -> Iterator[RenderableType]:
    """Each cell after its column's name, with an empty line between rows."""
    for index, row in enumerate(rows or [[]]):
        if index:
            yield Text()
        for head, cell in zip_longest(heads, row, fillvalue=Text()):
            line = Text.assemble((head.plain, "markdown.table.header"), ": ", cell)
            line.justify, line.overflow = "left", "fold"
            yield line


class ClearMarkdown(Markdown):
    """Markdown that shows everything as text. `depth` is how deeply lists and quotes are nested."""

    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "fence": _Code,
        "code_block": _Code,
        "heading_open": _Heading,
        "list_item_open": _Item,
        "ordered_list_open": _List,
        "table_open": _Table,
    }
    inlines: ClassVar[set[str]] = {*Markdown.inlines, "link", "link_url"}  # type: ignore[misc]  # Rich's is not annotated

    def __init__(self, markup: str, syntax_theme: SyntaxTheme, number: int = 0) -> None:
        """`number`: the number of the first list item, if it is not the written one."""
        super().__init__("", hyperlinks=False)
        self.markup = markup
        self.syntax_theme = syntax_theme
        tokens = _parser.parse(markup)
        self.depth = _depth(tokens)
        first = next((token for token in tokens if token.type == "ordered_list_open"), None)
        if number and first is not None:
            first.attrs["start"] = number
        self.parsed = list(_in_clear(tokens))


def _depth(tokens: Iterable[Token]) -> int:
    depth = deepest = 0
    for token in tokens:
        if token.type in ("bullet_list_open", "ordered_list_open", "blockquote_open"):
            depth += 1
            deepest = max(deepest, depth)
        elif token.type in ("bullet_list_close", "ordered_list_close", "blockquote_close"):
            depth -= 1
    return deepest


def _in_clear(tokens: Iterable[Token], quotes: int = 0) -> Iterator[Token]:
    """The same tokens with safe text, and with links and images as text and target.

    A line that is quoted stays one: it is somebody's text, where Markdown would join it with the next. `quotes`: how
    many are open.
    """
    open_links: list[tuple[str, list[str]]] = []
    before = ""
    for token in tokens:
        if token.type == "list_item_close" and before == "list_item_open":
            # Without a line of its own it would not be drawn at all.
            yield from (Token("paragraph_open", "p", 1), Token("text", "", 0), Token("paragraph_close", "p", -1))
        before = token.type
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
            case "softbreak" if quotes:
                yield Token("hardbreak", "br", 0)
            case _:
                quotes += token.nesting if token.tag == "blockquote" else 0
                if token.children:
                    token.children = list(_in_clear(token.children, quotes))
                yield token


def _target(address: str) -> Iterator[Token]:
    yield Token("text", "", 0, content=" (")
    yield Token("link_url_open", "link_url", 1)
    yield Token("text", "", 0, content=address)
    yield Token("link_url_close", "link_url", -1)
    yield Token("text", "", 0, content=")")


TAIL_CHARS = 4_000
"""The most of an unfinished block that is drawn."""


@dataclass(slots=True)
class MarkdownStream:
    """`feed` and `finish` return final parts; `tail` is the part to show below them for now."""

    theme: SyntaxTheme
    _sanitizer: StreamSanitizer = field(default_factory=StreamSanitizer)
    _splitter: BlockSplitter = field(default_factory=BlockSplitter)
    _has_printed: bool = False
    _code: CodeHighlighter | None = None
    _fence: int = 0

    def feed(self, chunk: str) -> list[RenderableType]:
        return self._rendered(self._splitter.feed(self._sanitizer.feed(chunk)))

    def finish(self) -> list[RenderableType]:
        blocks = self._splitter.feed(self._sanitizer.finish())
        return self._rendered([*blocks, *self._splitter.finish()])

    @property
    def is_between(self) -> bool:
        """Whether the last final part ended a block."""
        return self._has_printed and self._splitter.is_between

    @property
    def tail(self) -> RenderableType | None:
        """The last TAIL_CHARS characters of the unfinished block; None if there is none."""
        block = self._splitter.tail
        if block is None:
            return None
        part = _last_part(block)
        if block.kind == "code":
            shown = indented(CodeLines(self._code_of(block).open_line(part.text)), block)
        else:
            shown = render_block(part, self.theme)
        return Group(Text(""), shown) if self._has_printed and not block.is_joined else shown

    def _rendered(self, blocks: list[Block]) -> list[RenderableType]:
        printable: list[RenderableType] = []
        for block in blocks:
            if self._has_printed and not block.is_joined:
                printable.append(Text(""))
            if block.kind == "code":
                printable.append(indented(CodeLines(self._code_of(block).add(block.text)), block))
            else:
                printable.append(render_block(block, self.theme))
            self._has_printed = True
        return printable

    def _code_of(self, block: Block) -> CodeHighlighter:
        """The highlighter for the block: one for all pieces of a code block."""
        if self._code is None or self._fence != block.fence:
            self._code, self._fence = CodeHighlighter(block.language, self.theme), block.fence
        return self._code


def _last_part(block: Block) -> Block:
    """The end of a block, from the start of a line if possible. A table keeps its heading."""
    if len(block.text) <= TAIL_CHARS:
        return block
    part = block.text[-TAIL_CHARS:]
    _, newline, lines = part.partition("\n")
    if newline and lines.strip():
        part = f"{block.head}\n{lines}" if block.head else lines
    return replace(block, text=part)
