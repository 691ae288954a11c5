"""Put changed code into a file: parts with the same name are replaced, new ones are added, and the rest stays.

For small models. They write a changed function correctly, but copy the text that it replaces with mistakes.
"""

from __future__ import annotations

import ast
import difflib
import json
import re
import tomllib
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile
from pathlib import PurePath
from typing import Any

from nca.humanize import one_line
from nca.tools.files.blocks import Block, indented, lines_of, split
from nca.tools.tool import ToolError

_SIMILAR_RATIO = 0.6
"""A statement replaces the most similar one from here on."""
_INSIDE = re.compile(r"(?:return|yield|break|continue|raise)\b")
"""Statements that are valid only in a function."""
_WORD = re.compile(r"[A-Za-z_$][\w$]*")
_IMPORT = re.compile(r"(?:import|from|use|#include|require|using)\b")
_CHECKED_CHARS = 500_000
"""Larger files are not parsed: it would take seconds."""
_LEFT_OUT = re.compile(r"(?:#|//|--|;|/\*|<!--)?\s*(?:\.\.\.|…)\s*(?:\*/|-->)?|(?:#|//|--).*(?:\.\.\.|…).*")
_FENCE = re.compile(r"\s*```[^\n]*\n(.*?)\n?```\s*", re.DOTALL)
_NUMBER = re.compile(r"\s*\d+\t")


def merged(text: str, code: str, filename: str) -> tuple[str, list[str]]:
    """The file's text with the code in it, and a few words about each part.

    Both texts have plain line ends. Raises ToolError if it is not clear where a part belongs, if nothing changes, or
    if a valid file would become an invalid one.
    """
    code = _bare(code)
    new = split(code.split("\n"), filename)
    if not new:
        raise ToolError("new_text is empty; give the changed function or the changed lines")
    _refuse_gaps(text, code)
    if not text.strip():
        return code + "\n", ["written"]
    lines = text.split("\n")
    above = list(takewhile(lambda line: not line.strip(), lines))
    merge = _Merge(split(lines, filename), filename)
    merge.add_all(new)
    after = "\n".join([*above, *lines_of(merge.blocks)])
    after = after.rstrip("\n") + "\n" if text.endswith("\n") else after
    if after.strip() == text.strip() or not merge.done:
        raise ToolError(f"{filename} already reads so; write only the function that must change, with the change in it")
    _refuse_invalid(text, after, filename)
    return after, merge.done


class _Merge:
    """blocks: of the file, changed by `add_all`. done: the report."""

    def __init__(self, blocks: list[Block], filename: str) -> None:
        self.blocks = blocks
        self.done: list[str] = []
        self._filename = filename
        self._repeated: set[str] = set()
        """Names that the new code has more than once."""

    def _note_repeated(self, new: Sequence[Block]) -> None:
        self._repeated |= {name for name, count in Counter(block.name for block in new).items() if count > 1}

    def add_all(self, new: Sequence[Block]) -> None:
        names = {block.name for block in new}
        self._note_repeated(new)
        is_statement = [block.kind == "statement" for block in new]
        is_lost = all(is_statement) and not any(self._place(one, names) or _owner(self.blocks, one) for one in new)
        is_code = not self._filename.endswith((".md", ".rst", ".txt"))
        if is_lost or (is_code and any(_INSIDE.match(block.name) for block in new)):
            raise ToolError(
                f"no line of new_text shows where in {self._filename} it belongs;"
                " write all of the function that changes, from its first line on"
            )
        only = self.blocks[0]
        inner = only.children if only.name == "{" and "{" not in names else None
        self._add_to(self.blocks if inner is None else inner, new, names)

    def _add_to(self, blocks: list[Block], new: Sequence[Block], names: set[str]) -> None:
        """`names`: of all that is new."""
        at: int | None = None
        for block in new:
            place = self._place(block, names, blocks)
            if place is not None:
                where, index = place
                self._replace(where, index, block, names)
                at = index if where is blocks else at
            else:
                at = self._insert(blocks, block, at)

    def _place(
        self, block: Block, names: set[str], blocks: list[Block] | None = None
    ) -> tuple[list[Block], int] | None:
        """The list and index of the replaced statement; None if the block is new. Raises ToolError if unclear."""
        blocks = self.blocks if blocks is None else blocks
        if found := self._of_same_name(blocks, block):
            return blocks, found[0]
        if block.kind == "statement":
            return _similar(blocks, block, names)
        inside = [
            (level, index)
            for level in _levels(blocks)
            if level is not blocks
            for index, one in enumerate(level)
            if _is_same(one, block)
        ]
        if len(inside) > 1:
            raise ToolError(
                f"{block.name} is in {self._filename} {len(inside)} times; write it inside its class or section"
            )
        if inside:
            return inside[0]
        missing = [index for index, one in enumerate(blocks) if one.name not in names]
        # A new method may well do the same as another: it is a new name only if all others are shown.
        has_room = blocks is self.blocks or len(missing) == 1
        renamed = [index for index in missing if has_room and _is_renamed(blocks[index], block)]
        return (blocks, renamed[0]) if len(renamed) == 1 else None

    def _of_same_name(self, blocks: list[Block], block: Block) -> list[int]:
        """The index of the block with the same name, if there is one. Raises ToolError if it is not clear which."""
        found = [index for index, one in enumerate(blocks) if _is_same(one, block)]
        if len(found) < 2 and block.name not in self._repeated:
            return found
        # Such as the two halves of a property; a statement may simply be there twice.
        attribute = "lines" if block.kind == "statement" else "decorators"
        alike = [index for index in found if getattr(blocks[index], attribute) == getattr(block, attribute)]
        if len(alike) == 1 or (alike and block.kind == "statement") or (not alike and block.name in self._repeated):
            return alike
        raise ToolError(f"{block.name} is in {self._filename} {len(found)} times; it is not clear which is meant")

    def _replace(self, blocks: list[Block], index: int, block: Block, names: set[str]) -> None:
        old = blocks[index]
        head = [] if block.decorators else old.decorators
        # Missing parts of a class or a mapping stay: they are more often left out than meant to go.
        if old.children is not None and block.children is not None:
            if block.kind == "definition" and (new := [*head, *indented(block.head, old.indent)]) != old.head:
                old.head = new
                self.done.append(f"{_called(old)} changed")
            self._note_repeated(block.children)
            self._add_to(old.children, block.children, names | {one.name for one in block.children})
            return
        lines = [*head, *_same_unit(indented(block.lines, old.indent), old.lines)]
        if old.kind == "value" and old.indent:
            lines[-1] = lines[-1].rstrip(",") + "," * old.lines[-1].endswith(",")
        if lines == old.lines:
            return
        self.done.append(f"{_called(old)} replaced" if old.name == block.name else f"{old.name} is now {block.name}")
        blocks[index] = Block(block.name, block.kind, lines, after=old.after)

    def _insert(self, blocks: list[Block], block: Block, after: int | None) -> int:
        """Insert after the block of this index, or in the usual place of such a block; returns its index."""
        index = _where_new(blocks, block) if after is None else after + 1
        indent = blocks[0].indent if blocks else ""
        new = Block(block.name, block.kind, _same_unit(indented(block.lines, indent), lines_of(blocks)))
        is_last = index == len(blocks)
        if index:
            before = blocks[index - 1]
            there = before.after
            if "definition" in (block.kind, before.kind):
                wide = 2 if self._filename.endswith(".py") and not indent else 1
                before.after = there if len(there) >= wide else [""] * wide
                new.after = [] if is_last else before.after
            else:
                before.after, new.after = [], there
            if indent and block.kind == "value":
                self._separate(blocks, before, new, is_last=is_last)
        elif blocks and block.kind == "definition":
            new.after = [""]
        blocks.insert(index, new)
        self.done.append(f"{_called(block)} added")
        return index

    def _separate(self, blocks: list[Block], before: Block, new: Block, *, is_last: bool) -> None:
        """Commas between the values of a mapping, as it has them."""
        has_commas = any(one.lines[-1].endswith(",") for one in blocks)
        if not has_commas and not self._filename.endswith(".json"):
            return
        ends = not is_last or before.lines[-1].endswith(",")
        new.head[-1] = new.head[-1].rstrip(",") + "," * ends
        last = before.tail or before.head
        last[-1] = last[-1].rstrip(",") + ","


def _called(block: Block) -> str:
    return f"{block.name!r}" if block.kind == "statement" else block.name


def _is_same(one: Block, other: Block) -> bool:
    return one.name == other.name and (one.kind == "statement") == (other.kind == "statement")


def _levels(blocks: list[Block]) -> Iterator[list[Block]]:
    yield blocks
    for block in blocks:
        if block.children is not None:
            yield from _levels(block.children)


def _similar(blocks: list[Block], block: Block, names: set[str]) -> tuple[list[Block], int] | None:
    """The only statement that the new one resembles and that is not itself among the new ones."""
    found = [
        (difflib.SequenceMatcher(None, one.name, block.name, autojunk=False).ratio(), index)
        for index, one in enumerate(blocks)
        if one.kind == "statement" and one.name not in names
    ]
    best = max(found, default=(0.0, 0))
    # Two imports resemble each other and are both meant.
    return (blocks, best[1]) if best[0] >= _SIMILAR_RATIO and not _IMPORT.match(block.name) else None


def _is_renamed(old: Block, new: Block) -> bool:
    """Whether two definitions differ in nothing but their name. A second copy under another name is not likely."""
    return old.kind == new.kind == "definition" and _without_name(old) == _without_name(new)


def _without_name(block: Block) -> list[str]:
    text = re.sub(rf"\b{re.escape(block.name)}\b", "", "\n".join(block.lines)).replace('"', "'")
    return [line.strip() for line in text.split("\n") if line.strip()]


def _same_unit(lines: list[str], like: Sequence[str]) -> list[str]:
    """The lines with tabs for their indentation, if the file has tabs and they have none."""
    if not any(line.startswith("\t") for line in like) or any(line.startswith("\t") for line in lines):
        return lines
    return [re.sub(r"^(?: {4})+", lambda found: "\t" * (len(found[0]) // 4), line) for line in lines]


def _owner(blocks: Sequence[Block], statement: Block) -> int:
    """The place after what a statement begins with, as in `COLORS["blue"] = 1`; 0: it begins with no name."""
    found = _WORD.match(statement.name)
    return next((index for index, one in enumerate(blocks, 1) if found and one.name == found[0]), 0)


def _where_new(blocks: Sequence[Block], block: Block) -> int:
    """The index for something new: imports and values before the first definition, others at the end."""
    if block.kind == "statement" and (index := _owner(blocks, block)):
        return index
    if block.kind != "definition" and not (blocks and blocks[0].indent):
        imports = [index for index, one in enumerate(blocks) if _IMPORT.match(one.name)]
        if _IMPORT.match(block.name):
            return imports[-1] + 1 if imports else 0
        return next((index for index, one in enumerate(blocks) if one.kind == "definition"), len(blocks))
    is_main = bool(blocks) and blocks[-1].name.startswith("if __name__")
    return len(blocks) - is_main


def _bare(code: str) -> str:
    """The code without a fence and without line numbers around it."""
    fenced = _FENCE.fullmatch(code)
    lines = (fenced[1] if fenced else code).replace("\r\n", "\n").strip("\n").split("\n")
    if all(_NUMBER.match(line) for line in lines if line.strip()):
        lines = [_NUMBER.sub("", line, count=1) for line in lines]
    return "\n".join(line.rstrip() for line in lines)


def _refuse_gaps(text: str, code: str) -> None:
    """Raises ToolError if a line of the code is a placeholder for lines that it leaves out."""
    there = {line.strip() for line in text.split("\n")}
    for line in code.split("\n"):
        said = line.strip()
        if said and said not in there and _LEFT_OUT.fullmatch(said):
            raise ToolError(
                f"new_text leaves something out ({one_line(said, 40)}); write all of the function that changes"
            )


def _refuse_invalid(before: str, after: str, filename: str) -> None:
    """Raises ToolError if a Python, JSON or TOML file was valid before and is not after."""
    parse = _PARSERS.get(PurePath(filename).suffix.lower())
    if parse is None or len(after) > _CHECKED_CHARS or _fault(parse, before):
        return
    if fault := _fault(parse, after):
        raise ToolError(f"{filename} would not be valid any more ({fault}); nothing is changed; write whole functions")


def _python(text: str) -> None:
    # A deprecated escape in a string is no fault of the change.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ast.parse(text)


_PARSERS: dict[str, Callable[[str], Any]] = {".py": _python, ".json": json.loads, ".toml": tomllib.loads}


def _fault(parse: Callable[[str], Any], text: str) -> str:
    """The fault of the text, in one line; "" if it is valid."""
    try:
        parse(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError) as error:
        return " ".join(str(error).split()) or type(error).__name__
    return ""
