"""What is unusual about a command line, and the names by which permission rules can match it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from nca.tools.shell.command_words import versionless
from nca.visible import WRITTEN_OUT, written_out

LONG_CHARS = 500
_MOST_WORDS_OF_A_RULE = 3
"""Of a rule that denies: it is looked for anywhere in a command."""
_NO_NAME = re.compile(r"[^A-Za-z0-9_./+@:~-]+")
_QUOTING = re.compile(r"[\"'\\]")
_MINOR = re.compile(r"(?<=\d)(?:\.\d+)+$")


def remarks(command: str) -> Iterator[str]:
    """What a person may overlook in the command, one sentence each."""
    lines = command.strip("\n").count("\n") + 1
    if lines > 1:
        yield f"The command has {lines:,} lines."
    if len(command) > LONG_CHARS:
        yield f"The command is long: {len(command):,} characters."
    shown_as = written_out(command)
    if shown_as != command:
        yield WRITTEN_OUT
    if strange := sorted({char for char in command if char in shown_as and not char.isascii()}):
        shown = ", ".join(f"{char} (U+{ord(char):04X})" for char in strange[:5])
        yield f"Not all of the command is ASCII: {shown}{', …' if len(strange) > 5 else ''}."


def mentioned_names(command: str, directory: Path) -> tuple[str, ...]:
    """What a deny rule may match: everything in the command that may be a program or a path.

    Errs on the side of too much: every word, with quotes and backslashes removed, with and without its folder and its
    version (`python3.11`, `python3`, `python`), and two and three words in a row. It does not see what a shell would
    compute first.
    """
    found: dict[str, None] = {}
    for text in (_QUOTING.sub("", command), _QUOTING.sub(" ", command)):
        words = [word for word in _NO_NAME.split(text) if word]
        bases = [word.rpartition("/")[2] for word in words]
        majors = [_MINOR.sub("", base) for base in bases]
        for row in (words, bases, majors, [versionless(base) for base in bases]):
            for count in range(1, _MOST_WORDS_OF_A_RULE + 1):
                found.update((" ".join(row[at : at + count]), None) for at in range(len(row) - count + 1))
        for path in (os.path.join(directory, os.path.expanduser(word)) for word in set(words)):  # noqa: PTH111, PTH118  neither raises
            found.update({os.path.normpath(path): None, os.path.realpath(path): None})
    found.pop("", None)
    return tuple(found)
