"""Source text as blocks: definitions, assignments and statements, found by indentation and by names.

No grammar of any language is used, so this works for all that are written with indentation as usual. A section of an
INI or TOML file is a block, and so is one of a Markdown file.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import PurePath

_MODIFIERS = (
    r"(?:(?:export|default|public|private|protected|internal|static|async|abstract|final|virtual|override|inline|unsafe"
    r"|pub(?:\(\w+\))?|const|let|var|val|local)\s+)*"
)
_DEFINITION = re.compile(
    _MODIFIERS + r"(?P<kind>def|class|function\*?|func|fun|fn|struct|interface|enum|trait|impl|module|namespace|record|"
    r"object|sub|type)\s+(?:\([^)]*\)\s*)?(?P<name>[A-Za-z_$][\w$]*)"
)
_FUNCTION_WITH_BRACE = re.compile(r"(?:[\w<>\[\],:*&~]+\s+)*[*&]?(?P<name>[A-Za-z_$~][\w$]*)\s*\([^;]*\{$")
_ASSIGNMENT = re.compile(
    _MODIFIERS + r"(?P<quote>[\"']?)(?P<name>[A-Za-z_$][\w.$-]*)(?P=quote)\s*(?::[^=\n]*)?(?:=(?![=>])|:(?=\s|$))"
)
_CONTAINERS = frozenset({"class", "struct", "interface", "enum", "trait", "impl", "module", "namespace", "object"})
_NO_NAMES = frozenset(
    {"if", "for", "while", "switch", "catch", "return", "try", "else", "finally", "do", "default", "with"}
)
_GOES_ON = re.compile(r"[)\]}{]|(?:end|else|elif|except|finally|catch|fi|done|esac|then|do)\b")
_STANDS_BEFORE = re.compile(r"@\w|#\[|\[\w+\]$")
"""A decorator or an attribute, which belongs to what follows."""
_SECTIONS = {".toml": r"\[.+\]", ".ini": r"\[.+\]", ".cfg": r"\[.+\]", ".md": r"#{1,6}\s"}


@dataclass(slots=True)
class Block:
    """Some lines that belong together.

    name      that it defines or assigns; for anything else its first line
    kind      "definition", "value" or "statement"
    head      its lines; of a container only those before its children
    children  the blocks in a container (a class, a mapping, a section); None for anything else
    tail      the lines after the children, such as a closing brace
    after     the blank lines that follow
    """

    name: str
    kind: str
    head: list[str]
    children: list[Block] | None = None
    tail: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)

    @property
    def lines(self) -> list[str]:
        return [*self.head, *lines_of(self.children or ()), *self.tail]

    @property
    def decorators(self) -> list[str]:
        return list(takewhile(lambda line: _STANDS_BEFORE.match(line.strip()), self.head))

    @property
    def indent(self) -> str:
        return indent_of(self.head[0])


def lines_of(blocks: Sequence[Block]) -> list[str]:
    """The blocks as text."""
    return [line for block in blocks for line in (*block.lines, *block.after)]


def split(lines: Sequence[str], filename: str = "") -> list[Block]:
    """The blocks of a file. Blank lines at its beginning are left out."""
    suffix = PurePath(filename).suffix.lower()
    section = re.compile(_SECTIONS[suffix]) if suffix in _SECTIONS else None
    return [_block(one, after, section) for one, after in _groups(lines, section)]


def indent_of(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def indented(lines: Sequence[str], indent: str) -> list[str]:
    """The lines moved so that the first of them has this indentation."""
    own = len(indent_of(lines[0])) if lines else 0
    return [indent + line[min(own, len(indent_of(line))) :] if line.strip() else "" for line in lines]


def _groups(lines: Sequence[str], section: re.Pattern[str] | None) -> list[tuple[list[str], list[str]]]:
    """The lines of each block, and the blank lines after it."""
    base = min((len(indent_of(line)) for line in lines if line.strip()), default=0)
    groups: list[tuple[list[str], list[str]]] = []
    current: list[str] = []
    blank: list[str] = []
    is_in_string = is_in_section = False
    for line in lines:
        bare = line.strip()
        if not bare and not is_in_string:
            blank += [line] if current else []
            continue
        is_section = section is not None and section.match(line) is not None
        is_outer = len(indent_of(line)) <= base and not _GOES_ON.match(bare) and not is_in_section
        waits = bool(current) and section is None and _STANDS_BEFORE.match(current[-1].strip()) is not None
        if current and not is_in_string and not waits and (is_section or is_outer):
            groups.append((current, blank))
            current, blank = [], []
        current += [*blank, line]
        blank = []
        is_in_section = is_in_section or is_section
        is_in_string ^= (line.count('"""') + line.count("'''")) % 2 == 1
    return [*groups, (current, blank)] if current else groups


def _block(lines: list[str], after: list[str], section: re.Pattern[str] | None) -> Block:
    first = next((line.strip() for line in lines if not _STANDS_BEFORE.match(line.strip())), lines[0].strip())
    if section is not None and section.match(lines[0]):
        block = Block(lines[0].strip(), "definition", lines, after=after)
        # The text of a Markdown section is not a list of names.
        return block if lines[0].startswith("#") else _with_children(block, 1)
    if found := _DEFINITION.match(first):
        block = Block(found["name"], "definition", lines, after=after)
        return _with_children(block) if found["kind"] in _CONTAINERS else block
    if (found := _FUNCTION_WITH_BRACE.match(first)) and found["name"] not in _NO_NAMES:
        return Block(found["name"], "definition", lines, after=after)
    if (found := _ASSIGNMENT.match(first)) and found["name"] not in _NO_NAMES:
        block = Block(found["name"], "value", lines, after=after)
        return _with_children(block) if first.endswith(("{", ":")) else block
    if first == "{":
        return _with_children(Block(first, "value", lines, after=after))
    return Block(first, "statement", lines, after=after)


def _with_children(block: Block, head_lines: int = 0) -> Block:
    """The block with its contents as blocks of their own, if it has lines of its own."""
    lines = block.head
    outer = len(block.indent)
    start = head_lines or len(list(takewhile(lambda line: len(indent_of(line)) <= outer, lines)))
    tail = (
        0 if head_lines else len(list(takewhile(lambda line: len(indent_of(line)) <= outer, reversed(lines[start:]))))
    )
    inner = lines[start : len(lines) - tail]
    if inner:
        gap = len(list(takewhile(lambda line: not line.strip(), inner)))
        block.head, block.tail = lines[: start + gap], lines[len(lines) - tail :]
        block.children = split(inner)
    return block
