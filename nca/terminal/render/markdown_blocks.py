"""Split streaming Markdown into blocks that will not change any more.

The result depends on the text only, not on how it was chunked. The cost is linear in the text, and blocks have a
maximum size, so that no answer freezes the terminal. Code is returned line by line and a list a few items at a time,
so that as little as possible stays unfinished. A table is returned whole, because its last row may widen a column.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

MAX_BLOCK_CHARS = 24_000
"""A larger block is split; the rest of it is plain text."""

MAX_LINE_CHARS = 8_000
"""A longer line (base64, for example) is split, and is plain text."""

LIST_PIECE_LINES = 8
"""A list is split before the first item after this many lines. To draw each item alone takes four times as long."""

MOST_TABLE_PIECES = 4
"""A large table is split into at most this many blocks with the same heading; the rest is plain text."""

_FENCE = re.compile(r"([ \t]*)(`{3,}|~{3,})[ \t]*([^`\n]*)$")
_ITEM = re.compile(r"( {0,3})([-*+]|(\d{1,9})[.)])(?:( {1,4})(?=[^ ])|[ \t]|$)")
_ITEM_FENCE = re.compile(r"(?:`{3,}(?=[^`]*$)|~{3,})")
_RULE = re.compile(r" {0,3}([-*_])[ \t]*(?:\1[ \t]*){2,}$")
_TABLE_RULE = re.compile(r" {0,3}\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$")

_CONTINUES_FROM = 2
"""After an empty line, a line indented this far still belongs to the list item."""


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of Markdown that can be drawn by itself.

    language   of a code block
    is_joined  continues the previous block, without an empty line between them
    indent     the columns of its list item, already removed from its lines
    fence      numbers the code blocks from 1; all pieces of a block have the same number
    number     the number of its first list item; 0 is the written one
    head       the first two lines of a table, for a caller that shows only its end
    """

    kind: Literal["markdown", "code", "plain"]
    text: str
    language: str = ""
    is_joined: bool = False
    indent: int = 0
    fence: int = 0
    number: int = 0
    head: str = ""


@dataclass(frozen=True, slots=True)
class _Fence:
    marker: str
    language: str
    indent: int
    number: int


@dataclass(slots=True)
class _Item:
    """The current top-level list item: the column of its text, and its number if it has one."""

    content_indent: int
    written: int | None
    drawn: int = 0


class BlockSplitter:
    """Takes text as it streams. `feed` returns finished blocks; `tail` is what may still change."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._chars = 0
        self._partial: list[str] = []
        self._partial_chars = 0
        self._fence: _Fence | None = None
        self._fences = 0
        self._inner_fence = ""
        self._item: _Item | None = None
        self._number = 0
        self._indent = 0
        self._head = ""
        self._table_pieces = 0
        self._after_blank = False
        self._is_joined = False
        self._is_overlong = False
        self._done: list[Block] = []

    def feed(self, text: str) -> list[Block]:
        """The blocks that `text` finishes, in order. It must be safe for the terminal already."""
        first, *rest = text.split("\n")
        self._add_partial(first)
        for piece in rest:
            self._end_line()
            self._add_partial(piece)
        self._end_block_early()
        if self._fence and self._lines:
            self._emit(joined=True)
        return self._take()

    def finish(self) -> list[Block]:
        """The remaining blocks, at the end of the text."""
        if self._partial:
            self._end_line()
        self._emit()
        self._fence = None
        return self._take()

    @property
    def is_between(self) -> bool:
        """Whether what comes next is a block of its own, not more of the last one."""
        return self._fence is None and not self._is_joined

    @property
    def tail(self) -> Block | None:
        """The unfinished block, at most about MAX_BLOCK_CHARS long."""
        partial = "".join(self._partial)
        if self._fence:
            partial = _dedented(partial, self._fence.indent)
            mark = partial.strip()
            # This may become the closing fence, so it is not shown as code yet.
            return self._code(partial) if mark and not _closes(self._fence.marker, mark) else None
        text = "\n".join([*self._lines, _dedented(partial, self._indent)])
        return self._text(text) if text.strip() else None

    def _code(self, text: str) -> Block:
        assert self._fence
        fence = self._fence
        return Block("code", text, fence.language, self._is_joined, fence.indent, fence.number)

    def _text(self, text: str) -> Block:
        kind: Literal["markdown", "plain"] = "plain" if self._is_overlong else "markdown"
        return Block(kind, text, "", self._is_joined, self._indent, number=self._number, head=self._head)

    def _take(self) -> list[Block]:
        done, self._done = self._done, []
        return done

    def _add_partial(self, text: str) -> None:
        while self._partial_chars + len(text) > MAX_LINE_CHARS:
            whole = "".join(self._partial) + text
            # No word is cut, except for one that is half as long as all this.
            end = whole.rfind(" ", MAX_LINE_CHARS // 2, MAX_LINE_CHARS) + 1 or MAX_LINE_CHARS
            self._flush_overlong(whole[:end])
            text = whole[end:]
        if text:
            self._partial.append(text)
            self._partial_chars += len(text)

    def _end_block_early(self) -> None:
        """Finish the previous block at the first character of a new paragraph; its end may be far off."""
        if not self._after_blank or not self._partial or self._fence or self._inner_fence or self._is_overlong:
            return
        first = self._partial[0][0]
        may_belong_to_list = self._item is not None and (first in "-*+" or first.isdigit())
        if not first.isspace() and not may_belong_to_list:
            self._leave_list()
            self._after_blank = False

    def _flush_overlong(self, line: str) -> None:
        """Emit a piece of a line that is too long, after the text before it."""
        self._partial, self._partial_chars = [], 0
        if self._fence is None and not self._is_overlong:
            self._emit()
            self._is_overlong = True
        self._add_line(line)
        self._emit(joined=True)

    def _end_line(self) -> None:
        line = "".join(self._partial)
        self._partial, self._partial_chars = [], 0
        if self._is_overlong:
            self._end_overlong(line)
        elif self._fence is not None:
            self._code_line(line, self._fence)
        elif self._inner_fence:
            self._add_line(line)
            if _closes(line, self._inner_fence):
                self._inner_fence = ""
        else:
            self._text_line(line)

    def _end_overlong(self, line: str) -> None:
        """Plain text continues to the next empty line: a paragraph that is too large for Markdown."""
        if line.strip():
            self._add_line(line)
            if self._chars > MAX_LINE_CHARS:
                self._emit(joined=True)
        else:
            self._leave_list()
            self._is_overlong = False

    def _code_line(self, line: str, fence: _Fence) -> None:
        if _closes(line, fence.marker):
            self._emit(joined=self._item is not None)
            self._fence = None
            self._indent = self._item.content_indent if self._item else 0
            return
        self._add_line(_dedented(line, fence.indent))
        if self._chars > MAX_BLOCK_CHARS:
            self._emit(joined=True)

    def _text_line(self, line: str) -> None:
        if not line.strip():
            self._after_blank = True
            if self._lines:
                self._add_line("")
            return
        indent = _indentation(line)
        if found := self._begins_item(line, indent):
            self._begin_item(found)
        elif self._item and indent < _CONTINUES_FROM and (self._after_blank or self._indent):
            self._leave_list()
        elif self._after_blank and not self._item:
            self._emit()
        self._after_blank = False
        fence = _FENCE.match(line)
        if fence and (indent < 4 or self._item):
            self._open_fence(fence, indent)
            return
        self._keep_in_bounds(line)
        if self._lines and "|" in self._lines[-1] and _TABLE_RULE.match(line):
            self._head, self._table_pieces = f"{self._lines[-1]}\n{line}", 0
        self._add_line(_dedented(line, self._indent))

    def _open_fence(self, fence: re.Match[str], indent: int) -> None:
        is_inner = self._item is not None and indent >= _CONTINUES_FROM
        if is_inner:
            self._emit(joined=True)
        else:
            self._leave_list()
        self._fences += 1
        language = fence[3].strip().partition(" ")[0]
        self._fence = _Fence(fence[2], language, indent if is_inner else 0, self._fences)

    def _begins_item(self, line: str, indent: int) -> re.Match[str] | None:
        """The match if the line begins a top-level item. A line further in belongs to the current item."""
        found = _ITEM.match(line)
        if found is None or _RULE.match(line) or (self._item and indent >= self._item.content_indent):
            return None
        is_in_paragraph = self._item is None and bool(self._lines) and not self._after_blank
        if is_in_paragraph and (not line[found.end() :].strip() or found[3] not in (None, "1")):
            return None  # Markdown does not let these interrupt a paragraph
        return found

    def _begin_item(self, found: re.Match[str]) -> None:
        before, written = self._item, int(found[3]) if found[3] else None
        is_next = before is not None and (before.written is None) == (written is None)
        is_long = len(self._lines) >= LIST_PIECE_LINES or bool(self._indent)
        if (is_long or not is_next) if before is not None else self._after_blank:
            self._emit(joined=is_next)
        drawn = written or 0
        if is_next and before is not None and before.written == written:
            drawn = before.drawn + 1  # 1. 1. 1. is drawn as 1. 2. 3.
        item = _Item(len(found[1]) + len(found[2]) + len(found[4] or " "), written, drawn)
        self._item, self._indent = item, 0
        if not self._lines:
            self._number = item.drawn
        if fence := _ITEM_FENCE.match(found.string, found.end()):
            self._inner_fence = fence[0]

    def _leave_list(self) -> None:
        self._emit()
        self._item, self._indent, self._is_joined = None, 0, False

    def _keep_in_bounds(self, line: str) -> None:
        if self._chars <= MAX_BLOCK_CHARS:
            return
        head = self._head
        self._emit(joined=True)
        if head and "|" in line and self._table_pieces < MOST_TABLE_PIECES:
            # The table continues under its heading.
            self._table_pieces += 1
            self._head = head
            for one in head.split("\n"):
                self._add_line(one)
        elif self._item is None:
            self._is_overlong = True

    def _add_line(self, line: str) -> None:
        self._lines.append(line)
        self._chars += len(line) + 1

    def _emit(self, *, joined: bool = False) -> None:
        """Make a block of the collected lines. `joined`: the next block continues it."""
        text = "\n".join(self._lines)
        if self._fence is not None:
            if self._lines:
                self._done.append(self._code(text))
        elif text.strip():
            self._done.append(self._text(text.rstrip("\n")))
        else:
            joined = joined or (self._is_joined and not self._lines)
        self._lines, self._chars = [], 0
        self._is_joined = joined
        self._number = 0
        self._head = self._inner_fence = ""


def _closes(line: str, fence: str) -> bool:
    """A closing fence is at least as long as the opening one, of the same character, and alone."""
    stripped = line.strip()
    return len(stripped) >= len(fence) and set(stripped) == {fence[0]}


def _indentation(line: str) -> int:
    """The columns before the text. A tab reaches to the next multiple of four."""
    blank = line[: len(line) - len(line.lstrip(" \t"))]
    return len(blank.expandtabs(4))


def _dedented(line: str, columns: int) -> str:
    """The line without its first `columns` blank columns."""
    if not columns:
        return line
    text = line.lstrip(" \t")
    return " " * max(_indentation(line) - columns, 0) + text
