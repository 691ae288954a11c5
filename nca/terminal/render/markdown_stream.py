"""Render Markdown while it streams: finished blocks are printed once, and only the unfinished tail is redrawn.

The tail is bounded, so the cost of a stream is linear in its length.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from rich.console import Group, RenderableType
from rich.syntax import SyntaxTheme
from rich.text import Text

from nca.terminal.render.code_highlighter import CodeHighlighter, CodeLines
from nca.terminal.render.markdown import indented, render_block
from nca.terminal.render.markdown_blocks import Block, BlockSplitter
from nca.terminal.render.sanitize import StreamSanitizer

TAIL_CHARS = 4_000
"""The most of an unfinished block that is drawn."""


@dataclass(slots=True)
class MarkdownStream:
    """`feed` and `finish` return what is final; `tail` is what to show below it for now."""

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
