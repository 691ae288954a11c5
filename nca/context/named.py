"""The names that texts use: identifiers, paths and the like. Those of a message are looked for once in a session."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from nca.context.file_reads import arguments_of, texts_in
from nca.messages import Message, ToolCall

TEXT_CHARS, ARGUMENT_CHARS = 20_000, 4_000
"""So much of a message's text, and of the arguments of each of its calls, is looked at."""
SHORTEST, LONGEST = 5, 100
LINES_REMEMBERED = 4_096
_FIRST = r"A-Za-z0-9_\u00c0-\u024f\u0300-\u036f\u1e00-\u1eff"
"""Latin script, with all its marks: other scripts have no identifiers, and some put no blanks between words."""
_NAME = re.compile(rf"(?:/(?<=[\s\"'`(=\[]/))?[{_FIRST}][{_FIRST}$-]*+(?:[./:@#-]+[{_FIRST}$-]++)*+%?")
_DIGITS = "0123456789"
_COLOUR, _NUMBERS = "\x1b[", f"{_DIGITS};?"
"""The beginning of a code that colours output or clears the screen: numbers and a letter follow, which would be read as
part of a word."""
_SHAPE = re.compile(r"(?=.*[A-Za-z])(?:.*[/_.\d]|.*[a-z][A-Z])")
"""A name has a letter, and a mark that plain words have not: no time and no number is one, with a unit or without."""


def names_in(message: Message) -> tuple[frozenset[str], frozenset[str]]:
    """The names in a message's text and in the arguments of its calls, and those of the calls alone."""
    called = _names_of(" ".join(map(_said, message.tool_calls)))
    return _names_of(message.text[:TEXT_CHARS]) | called, called


def _names_of(text: str) -> frozenset[str]:
    if _COLOUR in text:
        before, *behind = text.split(_COLOUR)
        text = " ".join([before, *(part.lstrip(_NUMBERS)[1:] for part in behind)])
    # Most words are plain: one method call tells them from names.
    words = (name for name in set(_NAME.findall(text)) if not (name.isalpha() and name[1:].islower()))
    found = (_without_place(name).rstrip("/").strip(".:@#-") for name in words)
    return frozenset(
        name for name in found if SHORTEST <= len(name) <= LONGEST and _SHAPE.match(name) and not _is_quantity(name)
    )


def _is_quantity(name: str) -> bool:
    """A number and its unit: 0.21s, 102ms, 4096MB."""
    return name[0] in _DIGITS and name.count(".") <= 1 and name.lstrip(f"{_DIGITS}.").isalpha()


def _without_place(name: str) -> str:
    """A file's name without a line's number behind it, and what stands there: a place in a file is no name."""
    path, colon, behind = name.partition(":")
    rest = behind.lstrip(_DIGITS)
    is_place = colon and rest != behind and rest[:1] in ("", ":", "-")
    return path if is_place and path.rpartition(".")[2].isidentifier() and "." in path else name


names_of = lru_cache(maxsize=LINES_REMEMBERED)(_names_of)
"""The names in a line of a record, which the next compaction mostly writes again."""


def _said(call: ToolCall) -> str:
    """The values of a call's arguments, without their names and JSON's marks."""
    arguments = arguments_of(call)
    return (" ".join(texts_in(arguments)) if arguments else call.arguments)[:ARGUMENT_CHARS]


class Named:
    """By the identity of a message, which is kept with its names, so that no other can take that identity."""

    def __init__(self) -> None:
        self._names: dict[int, tuple[Message, frozenset[str], frozenset[str]]] = {}

    def of(self, message: Message) -> frozenset[str]:
        """The names in its text and in its calls."""
        return self._known(message)[1]

    def called(self, message: Message) -> frozenset[str]:
        """The names in its calls."""
        return self._known(message)[2]

    def _known(self, message: Message) -> tuple[Message, frozenset[str], frozenset[str]]:
        known = self._names.get(id(message))
        if known is None:
            known = self._names[id(message)] = (message, *names_in(message))
        return known

    def keep(self, messages: Iterable[Message]) -> None:
        """Forget all messages but these."""
        kept = set(map(id, messages))
        self._names = {key: known for key, known in self._names.items() if key in kept}
