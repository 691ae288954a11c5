"""Add an entry to a JSON object or list in a text, or remove one, and leave every other character as it is.

The text may have comments and commas after the last entry, as editors and opencode allow.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from nca.config.commented_json import NotJson, parsed, without_comments, without_last_commas
from nca.humanize import one_line

_BLANKS = " \t\r\n"
_INDENT = "  "


class NotInsertable(ValueError):
    """The text is not JSON, or has something else where the entry belongs. The message is a few words."""


class _Part(NamedTuple):
    """A member of an object or an item of a list: where its key begins, if it has one, its value, and its end."""

    key: str | int
    begins: int
    first: int
    end: int


class _Json:
    """A text as JSON, with the places of its parts. Raises NotInsertable if it is none.

    bare   the text with blanks in place of its comments
    plain  the same without commas after the last entry: what the json module reads
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.bare = without_comments(text.replace("\ufeff", " "))
        self.plain = without_last_commas(self.bare)
        try:
            self.value = parsed(self.plain, pairs=_without_twins)
        except NotJson as reason:
            raise NotInsertable(str(reason)) from None
        first = len(self.plain) - len(self.plain.lstrip(_BLANKS))
        self.root = _Part("", first, first, len(self.plain.rstrip(_BLANKS)))

    def parts(self, of: _Part) -> list[_Part]:
        """The parts of an object or a list; of any other value none."""
        return list(self._parts(of)) if self.plain[of.first] in "{[" else []

    def at(self, of: _Part, key: str | int) -> _Part | None:
        return next((part for part in self.parts(of) if part.key == key), None)

    def has_comment_around(self, outer: _Part, part: _Part) -> bool:
        """Whether a comment stands in an object or a list, or after its key, besides its only part."""
        spans = ((outer.begins, part.begins), (part.end, outer.end - 1))
        return any(self.text[begin:end] != self.bare[begin:end] for begin, end in spans)

    def without_comma(self, begin: int, end: int) -> str:
        """A piece of the text between two parts, with its comments."""
        comma = self.bare.find(",", begin, end)
        return self.text[begin:end] if comma < 0 else self.text[begin:comma] + self.text[comma + 1 : end]

    def _parts(self, of: _Part) -> Iterator[_Part]:
        read = json.JSONDecoder().raw_decode
        place, count = self._skip(of.first + 1), 0
        while place < of.end - 1:
            begins = first = place
            key: str | int = count
            if self.plain[of.first] == "{":
                key, place = read(self.plain, begins)
                first = self._skip(self.plain.index(":", place) + 1)
            end = read(self.plain, first)[1]
            yield _Part(key, begins, first, end)
            place, count = self._skip(self._skip(end) + 1), count + 1

    def _skip(self, place: int) -> int:
        """The next place that is not a blank."""
        while place < len(self.plain) and self.plain[place] in _BLANKS:
            place += 1
        return place


def _without_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for key, one in pairs:
        if key in value:
            raise NotJson(f"{one_line(key, 40)!r} is there twice")
        value[key] = one
    return value


def _is_empty(text: str) -> bool:
    return not text.strip(f"\ufeff{_BLANKS}")


def read(text: str) -> Any:
    """The value of JSON with comments. Raises NotInsertable."""
    return {} if _is_empty(text) else _Json(text).value


def appended(text: str, path: Sequence[str], item: Mapping[str, Any]) -> str:
    """The text with `item` at the end of the list at `path`, which is made if it is missing. Raises NotInsertable."""
    if _is_empty(text):
        return inserted(text, path, [dict(item)])
    whole = _Json(text)
    node, value, depth = _reached(whole, path)
    if depth < len(path):
        return inserted(text, path, [dict(item)])
    if not isinstance(value, list):
        raise NotInsertable(f"{'.'.join(path)} is not a list")
    written = _with_part(whole, node, "", item)
    return _checked(written, _merged(whole.value, path, [*value, dict(item)]))


def removed(text: str, path: Sequence[str | int]) -> str:
    """The text without what is at `path`, and without what holds nothing then, not even a comment.

    Raises NotInsertable.
    """
    whole = _Json(text)
    nodes = [whole.root]
    for key in path:
        node = whole.at(nodes[-1], key)
        if node is None:
            raise NotInsertable(f"{'.'.join(map(str, path))} is not there")
        nodes.append(node)
    while len(nodes) > 2 and len(whole.parts(nodes[-2])) == 1 and not whole.has_comment_around(*nodes[-2:]):
        nodes.pop()
    around, gone = nodes[-2:]
    parts = whole.parts(around)
    place = parts.index(gone)
    if place:
        before = parts[place - 1].end
        # Comments between stay: they are about the entry before them.
        written = text[:before] + _joined(whole.without_comma(before, gone.begins), text[gone.end :])
    elif len(parts) > 1:
        written = (
            text[: gone.begins] + whole.without_comma(gone.end, parts[1].begins).lstrip() + text[parts[1].begins :]
        )
    elif whole.has_comment_around(around, gone):
        left = _joined(text[around.first + 1 : gone.begins], whole.without_comma(gone.end, around.end - 1))
        written = text[: around.first + 1] + left + text[around.end - 1 :]
    else:
        written = text[: around.first + 1] + text[around.end - 1 :]
    return _checked(written, _without(whole.value, path[: len(nodes) - 1]))


def _joined(before: str, after: str) -> str:
    """Two texts, with the blanks of the second one only, unless a comment at the end of the first one has to end."""
    kept = before.rstrip()
    is_open = "//" in kept.rpartition("\n")[2] and not after.lstrip(" \t").startswith(("\r", "\n", "//"))
    return (before if is_open else kept) + after


def inserted(text: str, path: Sequence[str], entry: Any) -> str:
    """The text with `entry` at `path`; missing objects on the path are made. Raises NotInsertable."""
    if _is_empty(text):
        return as_json(path, entry) + "\n"
    whole = _Json(text)
    node, value, depth = _reached(whole, path)
    if depth == len(path):
        raise NotInsertable(f"{'.'.join(path)} already exists")
    if not isinstance(value, dict):
        raise NotInsertable(f"{'.'.join(path[:depth]) or 'the file'} is not an object")
    written = _with_part(whole, node, path[depth], _nested(path[depth + 1 :], entry))
    return _checked(written, _merged(whole.value, path, entry))


def _reached(whole: _Json, path: Sequence[str]) -> tuple[_Part, Any, int]:
    """The deepest part on a path that is there, its value, and how many keys lead to it."""
    node, value = whole.root, whole.value
    for depth, key in enumerate(path):
        found = whole.at(node, key) if isinstance(value, dict) else None
        if found is None:
            return node, value, depth
        node, value = found, value[key]
    return node, value, len(path)


def _checked(written: str, expected: Any) -> str:
    if read(written) != expected:
        raise NotInsertable("it is written in an unusual way")
    return written


def _with_part(whole: _Json, node: _Part, key: str, value: Any) -> str:
    """The text with one more member of an object, or one more item of a list, which has no key."""
    text, unit = whole.text, _unit(whole)
    newline = "\r\n" if "\r\n" in text else "\n"
    opening = _indent_at(text, node.first)
    members = whole.parts(node)
    is_on_lines = not members or "\n" in text[node.first : members[0].first]
    indent = opening + unit
    if members and is_on_lines:
        begin = text.rfind("\n", 0, members[-1].first) + 1
        indent = text[begin : begin + len(text[begin:]) - len(text[begin:].lstrip(" \t"))]
    lines = json.dumps(value, indent=unit if is_on_lines else None, ensure_ascii=False).split("\n")
    written = (f"{json.dumps(key)}: " if key else "") + (newline + indent).join(lines)
    closing = node.end - 1
    # After the last entry or comment, so that each comment stays after its own entry.
    inside = text[node.first + 1 : closing]
    last = node.first + 1 + len(inside.rstrip())
    head, between, tail = text[:last], text[last:closing], text[closing:]
    if members and "," not in whole.bare[members[-1].end : closing]:
        head = text[: members[-1].end] + "," + text[members[-1].end : last]
    if not is_on_lines:
        return f"{head} {written}{between}{tail}"
    return f"{head}{newline}{indent}{written}{between if chr(10) in between else newline + opening}{tail}"


def _unit(whole: _Json) -> str:
    """The file's indent."""
    first = next(iter(whole.parts(whole.root)), None)
    indent = _indent_at(whole.text, first.first) if first and "\n" in whole.text[: first.first] else ""
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
