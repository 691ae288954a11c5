"""Add an entry to a JSON object in a text, and leave every other character as it is.

The text may have comments and commas behind the last entry, as editors and opencode allow.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

_TOKEN = re.compile(
    r"""(?P<space>[\s\ufeff]+|//[^\n]*|/\*.*?\*/)|(?P<string>"(?:[^"\\\x00-\x1f]|\\.)*")|(?P<sign>[{}\[\],:])"""
    r"""|(?P<literal>[^\s{}\[\],:"/]+)""",
    re.DOTALL,
)
_DEEPEST = 200
_INDENT = "  "


class NotInsertable(ValueError):
    """The text is not JSON, or has something else where the entry belongs. The message is a few words."""


@dataclass(slots=True)
class _Node:
    """A value, where it begins and ends, and the members of an object."""

    value: Any
    first: int
    end: int
    members: dict[str, _Node] = field(default_factory=dict)


def read(text: str) -> Any:
    """The value of JSON with comments. Raises NotInsertable."""
    return _Reader(text).whole().value if text.strip("\ufeff \t\r\n") else {}


def inserted(text: str, path: Sequence[str], entry: Mapping[str, Any]) -> str:
    """The text with `entry` at `path`, whose objects are made where they are missing. Raises NotInsertable."""
    if not text.strip("\ufeff \t\r\n"):
        return json.dumps(_nested(path, entry), indent=2, ensure_ascii=False) + "\n"
    root = node = _Reader(text).whole()
    depth = 0
    while True:
        if not isinstance(node.value, dict):
            raise NotInsertable(f"{'.'.join(path[:depth]) or 'the file'} is no object")
        if path[depth] not in node.members or depth == len(path) - 1:
            break
        node = node.members[path[depth]]
        depth += 1
    if path[depth] in node.members:
        raise NotInsertable(f"{'.'.join(path)} is there already")
    value = entry if depth == len(path) - 1 else _nested(path[depth + 1 :], entry)
    written = _with_member(text, node, path[depth], value, _unit(text, root))
    if read(written) != _merged(root.value, path, entry):
        raise NotInsertable("it is written in an unusual way")
    return written


def _with_member(text: str, node: _Node, key: str, value: Any, unit: str) -> str:
    newline = "\r\n" if "\r\n" in text else "\n"
    opening = _indent_at(text, node.first)
    members = list(node.members.values())
    is_on_lines = not members or "\n" in text[node.first : members[0].first]
    indent = opening + unit
    if members and is_on_lines:
        begin = text.rfind("\n", 0, members[-1].first) + 1
        indent = text[begin : begin + len(text[begin:]) - len(text[begin:].lstrip(" \t"))]
    lines = json.dumps(value, indent=unit if is_on_lines else None, ensure_ascii=False).split("\n")
    written = f"{json.dumps(key)}: " + (newline + indent).join(lines)
    closing = node.end - 1
    # Behind what stands last, a comment too, so that each comment stays behind what it is about.
    inside = text[node.first + 1 : closing]
    last = node.first + 1 + len(inside.rstrip())
    head, between, tail = text[:last], text[last:closing], text[closing:]
    if members and not _has_comma(text, members[-1].end, closing):
        head = text[: members[-1].end] + "," + text[members[-1].end : last]
    if not is_on_lines:
        return f"{head} {written}{between}{tail}"
    return f"{head}{newline}{indent}{written}{between if chr(10) in between else newline + opening}{tail}"


def _has_comma(text: str, first: int, end: int) -> bool:
    return any(match["sign"] == "," for match in _TOKEN.finditer(text, first, end))


def _unit(text: str, root: _Node) -> str:
    """What the file indents with."""
    first = next(iter(root.members.values()), None)
    indent = _indent_at(text, first.first) if first and "\n" in text[: first.first] else ""
    return indent or _INDENT


def _indent_at(text: str, place: int) -> str:
    begin = text.rfind("\n", 0, place) + 1
    line = text[begin:place]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _nested(path: Sequence[str], entry: Any) -> Any:
    for key in reversed(path):
        entry = {key: entry}
    return entry


def _merged(value: dict[str, Any], path: Sequence[str], entry: Any) -> dict[str, Any]:
    key, *rest = path
    return {**value, key: _merged(value.get(key, {}), rest, entry) if rest else dict(entry)}


class _Reader:
    """Reads one value with the places of its parts. Raises NotInsertable."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._place = 0

    def whole(self) -> _Node:
        node = self._value(0)
        if self._next() is not None:
            raise NotInsertable("it is not one JSON value")
        return node

    def _next(self) -> re.Match[str] | None:
        """The next token that is no space and no comment; None at the end."""
        while self._place < len(self._text):
            match = _TOKEN.match(self._text, self._place)
            if match is None:
                line = self._text.count("\n", 0, self._place) + 1
                raise NotInsertable(f"line {line} is not JSON")
            self._place = match.end()
            if match["space"] is None:
                return match
        return None

    def _value(self, depth: int) -> _Node:
        token = self._next()
        if token is None or depth > _DEEPEST:
            raise NotInsertable("it is not whole JSON")
        first = token.start()
        if token[0] == "{":
            return self._object(first, depth)
        if token[0] == "[":
            return self._array(first, depth)
        try:
            return _Node(json.loads(token[0]), first, token.end())
        except ValueError:
            line = self._text.count("\n", 0, first) + 1
            raise NotInsertable(f"line {line} is not JSON") from None

    def _object(self, first: int, depth: int) -> _Node:
        members: dict[str, _Node] = {}
        while True:
            token = self._next()
            if token is not None and token[0] == "}":
                break
            if token is None or token["string"] is None:
                raise NotInsertable("it is not whole JSON")
            key = json.loads(token[0])
            colon = self._next()
            if key in members or colon is None or colon[0] != ":":
                raise NotInsertable(f"{key[:40]!r} is there twice" if key in members else "it is not whole JSON")
            members[key] = self._value(depth + 1)
            if not self._goes_on("}"):
                break
        return _Node({key: one.value for key, one in members.items()}, first, self._place, members)

    def _array(self, first: int, depth: int) -> _Node:
        found: list[Any] = []
        while True:
            place = self._place
            token = self._next()
            if token is not None and token[0] == "]":
                break
            self._place = place
            found.append(self._value(depth + 1).value)
            if not self._goes_on("]"):
                break
        return _Node(found, first, self._place)

    def _goes_on(self, closing: str) -> bool:
        """Whether a comma follows, not the closing sign."""
        token = self._next()
        if token is None or token[0] not in (",", closing):
            raise NotInsertable("it is not whole JSON")
        return token[0] == ","
