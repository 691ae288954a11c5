"""What is unusual about a command line, and the names by which permission rules can match it."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from nca.tools.shell.command_words import plain_words
from nca.visible import WRITTEN_OUT, written_out

LONG_CHARS = 500
_MOST_WORDS_OF_A_RULE = 3
_NO_NAME = re.compile(r"[^A-Za-z0-9_./+@:~-]+")
_QUOTING = re.compile(r"[\"'\\]")


def remarks(command: str) -> Iterator[str]:
    """What a person may overlook in the command, one sentence each."""
    lines = command.strip("\n").count("\n") + 1
    if lines > 1:
        yield f"It has {lines:,} lines."
    if len(command) > LONG_CHARS:
        yield f"It is long: {len(command):,} characters."
    if written_out(command) != command:
        yield WRITTEN_OUT
    if strange := sorted({char for char in command if char.isprintable() and not char.isascii()}):
        shown = ", ".join(f"{char} (U+{ord(char):04X})" for char in strange[:5])
        yield f"Not all of it is ASCII: {shown}{', …' if len(strange) > 5 else ''}."


def prefixes(command: str) -> tuple[str, ...]:
    """What an allow rule may match: the first one, two, … words of a simple command; nothing for any other command.

    Words with blanks are quoted, so two commands never have the same name. Nothing for a program given by its absolute
    path, because a rule could mistake that for a file.
    """
    words = plain_words(command) or ()
    if command.lstrip().startswith("/"):
        return ()
    return tuple(shlex.join(words[:count]) for count in range(1, len(words) + 1))


def mentioned_names(command: str, directory: Path) -> tuple[str, ...]:
    """What a deny rule may match: everything in the command that may be a program or a path.

    Errs on the side of too much: every word, with quotes and backslashes removed, with and without its folder, and two
    and three words in a row. It does not see what a shell would compute first.
    """
    found: dict[str, None] = {}
    for text in (_QUOTING.sub("", command), _QUOTING.sub(" ", command)):
        words = [word for word in _NO_NAME.split(text) if word]
        bases = [word.rpartition("/")[2] for word in words]
        for row in (words, bases):
            for count in range(1, _MOST_WORDS_OF_A_RULE + 1):
                found.update((" ".join(row[at : at + count]), None) for at in range(len(row) - count + 1))
        for path in (os.path.join(directory, os.path.expanduser(word)) for word in set(words)):  # noqa: PTH111, PTH118  neither raises
            found.update({os.path.normpath(path): None, os.path.realpath(path): None})
    found.pop("", None)
    return tuple(found)
