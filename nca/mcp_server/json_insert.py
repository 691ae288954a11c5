"""Add an entry to a JSON object or list in a text, or remove one, and leave every other character as it is.

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
    """A value, where it begins and ends, and the members of an object or the items of a list.

    begins  where its key begins; `first` for what has none
    """

    value: Any
    first: int
    end: int
    members: dict[str, _Node] = field(default_factory=dict)
    items: list[_Node] = field(default_factory=list)
    begins: int = 0

    @property
    def parts(self) -> list[_Node]:
        return self.items or list(self.members.values())

    def at(self, key: str | int) -> _Node | None:
        if isinstance(key, int):
            return self.items[key] if key < len(self.items) else None
        return self.members.get(key)


def read(text: str) -> Any:
    """The value of JSON with comments. Raises NotInsertable."""
    return _Reader(text).whole().value if text.strip("\ufeff \t\r\n") else {}


def appended(text: str, path: Sequence[str], item: Mapping[str, Any]) -> str:
    """The text with `item` at the end of the list at `path`, which is made if it is missing. Raises NotInsertable."""
    root = _Reader(text).whole() if text.strip("\ufeff \t\r\n") else None
    node = root
    for key in path:
        node = node.at(key) if node is not None else None
    if root is None or node is None:
        return inserted(text, path, [dict(item)])
    if not isinstance(node.value, list):
        raise NotInsertable(f"{'.'.join(path)} is no list")
    written = _with_part(text, node, "", item, _unit(text, root))
    if read(written) != _merged(root.value, path, [*node.value, dict(item)]):
        raise NotInsertable("it is written in an unusual way")
    return written


def removed(text: str, path: Sequence[str | int]) -> str:
    """The text without what is at `path`, and without what holds nothing then. Raises NotInsertable."""
    nodes = [_Reader(text).whole()]
    for key in path:
        node = nodes[-1].at(key)
        if node is None:
            raise NotInsertable(f"{'.'.join(map(str, path))} is not there")
        nodes.append(node)
    while len(nodes) > 2 and len(nodes[-2].parts) == 1:
        nodes.pop()
    gone = nodes[-1]
    parts = nodes[-2].parts
    place = next(place for place, part in enumerate(parts) if part is gone)
    if place:
        before = parts[place - 1].end
        comma = next(one.start() for one in _TOKEN.finditer(text, before, gone.begins) if one["sign"])
        # Comments between stay: they are about what stands before them.
        written = text[:before] + (text[before:comma] + text[comma + 1 : gone.begins]).rstrip() + text[gone.end :]
    elif len(parts) > 1:
        written = text[: gone.begins] + text[parts[1].begins :]
    else:
        written = text[: nodes[-2].first + 1] + text[nodes[-2].end - 1 :]
    if read(written) != _without(nodes[0].value, path[: len(nodes) - 1]):
        raise NotInsertable("it is written in an unusual way")
    return written


def inserted(text: str, path: Sequence[str], entry: Any) -> str:
    """The text with `entry` at `path`, whose objects are made where they are missing. Raises NotInsertable."""
    if not text.strip("\ufeff \t\r\n"):
        return as_json(path, entry) + "\n"
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
    written = _with_part(text, node, path[depth], value, _unit(text, root))
    if read(written) != _merged(root.value, path, entry):
        raise NotInsertable("it is written in an unusual way")
    return written


def _with_part(text: str, node: _Node, key: str, value: Any, unit: str) -> str:
    """The text with one more member of an object, or one more item of a list, which has no key."""
    newline = "\r\n" if "\r\n" in text else "\n"
    opening = _indent_at(text, node.first)
    members = node.parts
    is_on_lines = not members or "\n" in text[node.first : members[0].first]
    indent = opening + unit
    if members and is_on_lines:
        begin = text.rfind("\n", 0, members[-1].first) + 1
        indent = text[begin : begin + len(text[begin:]) - len(text[begin:].lstrip(" \t"))]
    lines = json.dumps(value, indent=unit if is_on_lines else None, ensure_ascii=False).split("\n")
    written = (f"{json.dumps(key)}: " if key else "") + (newline + indent).join(lines)
    closing = node.end - 1
    # Behind what stands last, a comment too, so that each comment stays behind what it is about.
    inside = text[node.first + 1 : closing]
    last = node.first + 1 + len(inside.rstrip())
    head, between, tail = text[:last], text[last:closing], text[closing:]
    if members and not any(one["sign"] == "," for one in _TOKEN.finditer(text, members[-1].end, closing)):
        head = text[: members[-1].end] + "," + text[members[-1].end : last]
    if not is_on_lines:
        return f"{head} {written}{between}{tail}"
    return f"{head}{newline}{indent}{written}{between if chr(10) in between else newline + opening}{tail}"


def _unit(text: str, root: _Node) -> str:
    """What the file indents with."""
    first = next(iter(root.members.values()), None)
    indent = _indent_at(text, first.first) if first and "\n" in text[: first.first] else ""
    return indent or _INDENT


def _indent_at(text: str, place: int) -> str:
    begin = text.rfind("\n", 0, place) + 1
    line = text[begin:place]
    return line[: len(line) - len(line.lstrip(" \t"))]


def as_json(path: Sequence[str], entry: Any) -> str:
    """A text with nothing but the entry."""
    return json.dumps(_nested(path, entry), indent=2, ensure_ascii=False)


def _nested(path: Sequence[str], entry: Any) -> Any:
    for key in reversed(path):
        entry = {key: entry}
    return entry


def _merged(value: dict[str, Any], path: Sequence[str], entry: Any) -> dict[str, Any]:
    key, *rest = path
    return {**value, key: _merged(value.get(key, {}), rest, entry) if rest else entry}


def _without(value: Any, path: Sequence[str | int]) -> Any:
    key, *rest = path
    if isinstance(value, list):
        place = int(key)
        return [*value[:place], *([_without(value[place], rest)] if rest else []), *value[place + 1 :]]
    return {name: _without(one, rest) if name == key else one for name, one in value.items() if rest or name != key}


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
            key, begins = json.loads(token[0]), token.start()
            colon = self._next()
            if key in members or colon is None or colon[0] != ":":
                raise NotInsertable(f"{key[:40]!r} is there twice" if key in members else "it is not whole JSON")
            members[key] = self._value(depth + 1)
            members[key].begins = begins
            if not self._goes_on("}"):
                break
        return _Node({key: one.value for key, one in members.items()}, first, self._place, members)

    def _array(self, first: int, depth: int) -> _Node:
        found: list[_Node] = []
        while True:
            place = self._place
            token = self._next()
            if token is not None and token[0] == "]":
                break
            self._place = place
            found.append(self._value(depth + 1))
            found[-1].begins = found[-1].first
            if not self._goes_on("]"):
                break
        return _Node([one.value for one in found], first, self._place, items=found)

    def _goes_on(self, closing: str) -> bool:
        """Whether a comma follows, not the closing sign."""
        token = self._next()
        if token is None or token[0] not in (",", closing):
            raise NotInsertable("it is not whole JSON")
        return token[0] == ","
