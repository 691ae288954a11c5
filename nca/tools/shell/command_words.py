"""Parse simple command lines into words, and refuse everything else.

What this parser accepts means the same to every shell, and without a shell. Python's bash parsers do not fit: they
accept what must be refused here, and bashlex is GPL.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from string import ascii_letters, digits

MOST_CHARS = 4_000
MOST_COMMANDS = 20
"""Of one list: each is checked by itself, and one of git takes 30 ms."""


def word_set(text: str) -> frozenset[str]:
    """The words of a list that is written as one string."""
    return frozenset(text.split())


_BARE = frozenset(ascii_letters + digits + "-_./:=@%+,^~")
_IN_SINGLE = frozenset(chr(code) for code in range(0x20, 0x7F)) - {"'"}
_IN_DOUBLE = _IN_SINGLE - frozenset('"$`\\!') | {"'"}
"""In double quotes a shell expands after these characters."""
_STAGE = re.compile(r"""((?: 2>&1|'[^']*'|"[^"]*"|[^|&;'"])+)(\|\||&&|[|;]|\Z)""")
"""A command of a list, and the operator behind it."""
_VERSION = re.compile(r"(?<=[a-z])-?\d+(?:\.\d+)*$")
_ERRORS = re.compile(r"(?: 2>(?:&1|/dev/null))+ *\Z")


def plain_words(command: str) -> tuple[str, ...] | None:
    """The words of one simple command; None for anything else, or if in doubt.

    Accepted: bare words and quoted printable ASCII without expansion, separated by blanks. Refused: operators,
    redirections, expansions (variables, substitutions, tilde, braces, patterns), escapes, comments, assignments before
    the program, newlines, tabs, other control characters, non-ASCII characters, empty words, and a program that is
    quoted in whole or in part.
    """
    if len(command) > MOST_CHARS:
        return None
    words: list[str] = []
    position, line = 0, command.strip(" ")
    while position < len(line):
        word, position, is_bare = _word(line, position)
        if not word or (not words and (not is_bare or "=" in word)):
            return None
        words.append(word)
        while position < len(line) and line[position] == " ":
            position += 1
    return tuple(words) or None


@dataclass(frozen=True, slots=True)
class Stage:
    """A simple command of a list.

    errors    where its errors go: "", ` 2>&1` or ` 2>/dev/null`
    operator  what joins the next one to it: `|`, `&&`, `||` or `;`; "" for the last
    """

    words: tuple[str, ...]
    errors: str
    operator: str


def command_list(command: str) -> tuple[Stage, ...] | None:
    """Simple commands joined by `|`, `&&`, `||` and `;`; None for anything else."""
    if len(command) > MOST_CHARS:
        return None
    stages: list[Stage] = []
    position = 0
    while not stages or stages[-1].operator:
        found = _STAGE.match(command, position)
        if found is None or len(stages) == MOST_COMMANDS:
            return None
        text, operator = found.groups()
        errors = _ERRORS.search(text)
        words = plain_words(text[: errors.start()] if errors else text)
        if words is None:
            return None
        stages.append(Stage(words, errors[0].rstrip() if errors else "", operator))
        position = found.end()
    return tuple(stages)


def pipeline(command: str) -> tuple[Stage, ...] | None:
    """Simple commands joined by `|`; None for anything else."""
    stages = command_list(command) or ()
    return stages if stages and all(stage.operator in ("|", "") for stage in stages) else None


def versionless(program: str) -> str:
    """The name of a program without a version: `python3.11` and `python` are one program."""
    return _VERSION.sub("", program)


def _word(line: str, start: int) -> tuple[str, int, bool]:
    """The word at `start`, where it ends, and whether no part of it is quoted; "" if it must be refused."""
    word, position, is_bare = "", start, True
    while position < len(line) and line[position] != " ":
        char = line[position]
        if char in ("'", '"'):
            end = line.find(char, position + 1)
            quoted = line[position + 1 : end] if end > 0 else "\0"
            if not set(quoted) <= (_IN_SINGLE if char == "'" else _IN_DOUBLE):
                return "", len(line), False
            word, position, is_bare = word + quoted, end + 1, False
        elif char in _BARE and not (char == "~" and word[-1:] in ("", "=", ":")):
            word, position = word + char, position + 1
        else:
            return "", len(line), False
    # zsh replaces =program with its path.
    return ("" if line[start] == "=" else word), position, is_bare
