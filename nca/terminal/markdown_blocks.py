"""Cuts Markdown that is still being written into blocks that will not change any more.

The cut depends on the text alone, never on how it was chunked. Each character is looked at a fixed number of times,
so the cost is linear in the text, and no block is larger than a fixed size, so that no answer freezes the terminal.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

MAX_BLOCK_CHARS = 24_000
"""A block that grows larger is drawn in pieces, as plain text from there on."""

MAX_LINE_CHARS = 8_000
"""A line that grows longer (one line of base64, say) is drawn in pieces, as plain text."""

CODE_PIECE_LINES = 60
"""Code is drawn in pieces: at the first blank line after this many lines, or at twice as many."""

_FENCE = re.compile(r"( *)(`{3,}|~{3,})[ \t]*([^`\n]*)$")
_LIST_ITEM = re.compile(r" {0,3}(?:[-*+]|\d{1,9}[.)])(?:[ \t]|$)")
_INDENTED = re.compile(r"(?: {2,}|\t)")


@dataclass(frozen=True, slots=True)
class Block:
    """A stretch of Markdown that can be drawn by itself.

    `language` is that of code; `is_joined`: it goes on from the block before, with no empty line between.
    """

    kind: Literal["markdown", "code", "plain"]
    text: str
    language: str = ""
    is_joined: bool = False


class BlockSplitter:
    """Feed it text as it comes; `feed` returns the blocks that are finished, `tail` is what still may change."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._chars = 0
        self._partial: list[str] = []
        self._partial_chars = 0
        self._fence: tuple[str, str] | None = None
        self._inner_fence = ""
        self._is_list = False
        self._after_blank = False
        self._is_joined = False
        self._is_overlong = False
        self._done: list[Block] = []

    def feed(self, text: str) -> list[Block]:
        """Finished blocks, in order. `text` is already safe for the terminal."""
        first, *rest = text.split("\n")
        self._add_partial(first)
        for piece in rest:
            self._end_line()
            self._add_partial(piece)
        self._end_block_early()
        return self._take()

    def finish(self) -> list[Block]:
        """The rest, at the end of the text."""
        if self._partial:
            self._end_line()
        self._emit()
        self._fence = None
        return self._take()

    @property
    def tail(self) -> Block | None:
        """What is not finished yet, at most about MAX_BLOCK_CHARS long."""
        text = "\n".join([*self._lines, "".join(self._partial)])
        if not text.strip():
            return None
        if self._fence:
            return Block("code", text, self._fence[1], self._is_joined)
        return Block("plain" if self._is_overlong else "markdown", text, "", self._is_joined)

    def _take(self) -> list[Block]:
        done, self._done = self._done, []
        return done

    def _add_partial(self, text: str) -> None:
        while self._partial_chars + len(text) > MAX_LINE_CHARS:
            room = MAX_LINE_CHARS - self._partial_chars
            self._flush_overlong("".join(self._partial) + text[:room])
            text = text[room:]
        if text:
            self._partial.append(text)
            self._partial_chars += len(text)

    def _end_block_early(self) -> None:
        """A new paragraph's first character tells that the block before it is finished; its end may be far off."""
        if not self._after_blank or not self._partial or self._fence or self._inner_fence or self._is_overlong:
            return
        first = self._partial[0][0]
        may_belong_to_list = self._is_list and (first in "-*+" or first.isdigit())
        if not first.isspace() and not may_belong_to_list:
            self._emit()
            self._after_blank = False

    def _flush_overlong(self, line: str) -> None:
        """A line that is too long leaves in pieces; what stood before it leaves first."""
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
            self._code_line(line, self._fence[0])
        elif self._inner_fence:
            self._add_line(line)
            if _closes(line, self._inner_fence):
                self._inner_fence = ""
        else:
            self._text_line(line)

    def _end_overlong(self, line: str) -> None:
        """Plain text goes on to the next empty line: what is a paragraph too large for Markdown."""
        if line.strip():
            self._add_line(line)
            if self._chars > MAX_LINE_CHARS:
                self._emit(joined=True)
        else:
            self._emit()
            self._is_overlong = self._is_joined = False

    def _code_line(self, line: str, fence: str) -> None:
        if _closes(line, fence):
            self._emit()
            self._fence = None
            return
        self._add_line(line)
        count = len(self._lines)
        is_good_place = count >= CODE_PIECE_LINES and not line.strip()
        if is_good_place or count >= 2 * CODE_PIECE_LINES or self._chars > MAX_BLOCK_CHARS:
            self._emit(joined=True)

    def _text_line(self, line: str) -> None:
        if not line.strip():
            self._after_blank = True
            if self._lines:
                self._add_line("")
            return
        fence = _FENCE.match(line)
        is_item = _LIST_ITEM.match(line) is not None
        if self._after_blank and not (self._is_list and (is_item or _INDENTED.match(line))):
            self._emit()
        self._after_blank = False
        if fence and not (self._is_list and len(fence[1]) >= 2) and len(fence[1]) <= 3:
            self._emit()
            self._fence = (fence[2], fence[3].partition(" ")[0].strip())
            return
        if fence:
            self._inner_fence = fence[2]
        if self._chars > MAX_BLOCK_CHARS:
            self._emit(joined=is_item)
            self._is_overlong = not is_item
        self._is_list = self._is_list or is_item
        self._add_line(line)

    def _add_line(self, line: str) -> None:
        self._lines.append(line)
        self._chars += len(line) + 1

    def _emit(self, *, joined: bool = False) -> None:
        """What is collected becomes a block; `joined`: what follows belongs to it."""
        text = "\n".join(self._lines)
        if self._fence is not None:
            if text or self._lines:
                self._done.append(Block("code", text, self._fence[1], self._is_joined))
        elif text.strip():
            kind: Literal["markdown", "plain"] = "plain" if self._is_overlong else "markdown"
            self._done.append(Block(kind, text.rstrip("\n"), "", self._is_joined))
        else:
            joined = joined or (self._is_joined and not self._lines)
        self._lines, self._chars = [], 0
        self._is_joined = joined
        self._is_list = False
        self._inner_fence = ""


def _closes(line: str, fence: str) -> bool:
    """A closing fence is at least as long as the opening one, of the same character, and alone."""
    stripped = line.strip()
    return len(stripped) >= len(fence) and set(stripped) == {fence[0]}
